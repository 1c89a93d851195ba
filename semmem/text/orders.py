"""Whether a text gives orders to a model, or says something about somebody: by its form and by what it is made of.

A logistic regression over hashed words and pairs of neighbouring words, no list of phrases: the weights come from
``training/train_orders.py``, which also says what they were trained on and how the two cuts were chosen. Markup that
only a prompt has is known by its form alone. Who hides an order is read as a model would read it (``disguise``)."""

import json
import math
import re
from base64 import b64decode
from collections.abc import Iterator
from enum import IntEnum
from itertools import pairwise
from pathlib import Path
from zlib import crc32

import numpy as np

from semmem.text.disguise import is_spelt_out, readings, turned
from semmem.text.words import UNSPACED, is_unspaced

BUCKETS = 1 << 16
"""Places for the weights: with a quarter of them a dozen languages share too many. A feature's place is the CRC-32 of
its spelling: the same everywhere, and fast."""
STEM_CHARS = 5
"""So much of a word stands for all of its forms, in any language that has spaces."""
FEATURES_MIN = 40
"""The root of the number of features is divided by, so that length does not count; of fewer each says too much."""
SENTENCE_TOKENS_MAX = 60
SHARED_TOKENS = 15
"""What has no end is read in pieces of so many tokens, of which so many are the end of the one before."""
CLAUSE_MARGIN = 0.4
"""A clause alone has to be more than a certain order: many an innocent one sounds like half an order."""


class Order(IntEnum):
    """How sure it is that a text gives orders."""

    NONE = 0
    SUSPECTED = 1
    CERTAIN = 2


def order_in(text: str) -> Order:
    """What the most commanding sentence of a text is, read plainly and without its disguises. Linear in the text."""
    read = readings(text)
    if any(form.search(reading) for form in _FORMS for reading in read):
        return Order.CERTAIN
    odds = max(map(_odds, read), default=-math.inf)
    clause = _odds(_CLAUSE_END.sub("\n", read[0])) - CLAUSE_MARGIN
    if max(odds, clause, *map(_odds, turned(text))) >= CUTS["certain"]:
        return Order.CERTAIN
    is_suspected = odds >= CUTS["suspected"] or is_spelt_out(text) or any(map(_ADDRESSED.search, read))
    return Order.SUSPECTED if is_suspected else Order.NONE


def _odds(reading: str) -> float:
    return max(map(score, pieces(reading)), default=-math.inf)


def score(piece: list[str]) -> float:
    """The logarithm of the odds that the tokens of one sentence are an order."""
    at = features(piece)
    return float(_WEIGHTS[at].sum()) / math.sqrt(max(len(at), FEATURES_MIN)) + _BIAS if at else -math.inf


def pieces(text: str) -> Iterator[list[str]]:
    """The tokens of each sentence, and those of the whole text when it is short."""
    whole: list[str] = []
    for sentence in _SENTENCE_END.split(text):
        found = tokens(sentence)
        whole += found if len(whole) <= SENTENCE_TOKENS_MAX else ()
        for start in range(0, len(found), SENTENCE_TOKENS_MAX - SHARED_TOKENS):
            if piece := found[start : start + SENTENCE_TOKENS_MAX]:
                yield piece
    if len(whole) <= SENTENCE_TOKENS_MAX:
        yield whole


def tokens(sentence: str) -> list[str]:
    """Words, numbers as 0, addresses and what mixes letters and digits as one token each, the signs of code; two signs
    each of scripts without spaces. A name (a capital inside of a sentence) keeps its capital."""
    found: list[str] = []
    for match in _TOKEN.finditer(sentence):
        token, kind = match.group(), match.lastgroup
        if kind == "unspaced":
            found += [token[at : at + 2] for at in range(max(1, len(token) - 1))]
        else:
            found.append(_PLAIN.get(kind or "", token))
    return found


def features(piece: list[str]) -> list[int]:
    """The places of what one sentence is made of, each once."""
    stems = [stem_of(token) for token in piece]
    spelt = {*stems, *("=" + token.casefold() for token in piece), *map(" ".join, pairwise(stems))}
    spelt.update(f"^{' '.join(stems[:count])}" for count in (1, 2))
    spelt.update(f"{stem} Name" for stem, token in zip(stems, piece[1:], strict=False) if token[0].isupper())
    return places(spelt, BUCKETS)


def stem_of(token: str) -> str:
    """What stands for all forms of a token."""
    return token if is_unspaced(token) else token.casefold()[:STEM_CHARS]


def places(spelt: set[str], buckets: int) -> list[int]:
    """Of features by the CRC-32 of their spelling: the same everywhere, and fast."""
    return sorted({crc32(feature.encode("utf-8", "surrogatepass")) % buckets for feature in spelt})


_TOKEN = re.compile(
    rf"(?P<mail>[\w.+-]{{1,64}}@[\w-]{{1,64}}(?:\.[\w-]{{1,64}})+)|(?P<url>\b(?:https?://|www\.)\S+)"
    rf"|(?P<unspaced>[{UNSPACED}]+)|(?P<code>(?:[A-Za-z]++\d++[A-Za-z]|\d++[A-Za-z]++\d)[A-Za-z\d]*+)"
    rf"|(?P<number>\d+)|(?P<word>[^\W\d_{UNSPACED}]+)|(?P<sign>[=:(){{}}\[\]<>\"`|*/_!])"
)
_PLAIN = {"mail": "@mail", "url": "@url", "code": "@code", "number": "0"}
_CLAUSE_END = re.compile(r"[,:]\s|\b(?:and|but|says|said|und|y|et|и)\b")
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s|[\n。！？；؟]")

# Nothing but a prompt has these: the delimiters of chat templates, roles, calls of tools.
_FORMS = tuple(
    re.compile(source, re.IGNORECASE)
    for source in (
        r"</?\s*(?:system|assistant|developer|user|human|tool|function|instructions?|conversation|context|invoke)"
        r"(?:_\w{1,20})?\b[^>]{0,80}>",
        r"<\|[^|>]{1,40}\|>|\[/?(?:inst|sys|system)\]|<</?sys>>|<(?:start|end)_of_turn>|</?s>(?=\S)",
        r"(?<!#)#{2,}+\s*+(?:instructions?|system|assistant)\b",
        r"(?:^|[.!?]\s|\bnote:\s*)(?:system|assistant|developer)\s*:",
        r"(?:\[\w{2,40}\s?=[^\]\[]{1,300}\]\s?){2,}",
        r"[\"']role[\"']\s{0,9}:\s{0,9}[\"'](?:system|assistant|developer|tool)",
        r"[\"'](?:arguments|parameters|tool|tool_name|function|function_call|tool_calls?)[\"']\s{0,9}:\s{0,9}[{\[\"']",
    )
)

# Whoever speaks of himself does not begin so: it is said to the reader, whatever it is that he must.
_ADDRESSED = re.compile(
    r"(?:^|[.!?:]\s|\n)\s{0,3}(?:you|the (?:assistant|model|ai)) (?:must|should|shall|have to|need to|are to) "
    r"(?:always|never|not|only)\b",
    re.IGNORECASE,
)

_TRAINED = json.loads(Path(__file__).with_name("order_weights.json").read_text(encoding="utf-8"))
CUTS: dict[str, float] = _TRAINED["cuts"]
"""The least odds of an order that is ``suspected`` or ``certain``, as logarithms."""
_BIAS = float(_TRAINED["bias"])
_WEIGHTS = np.frombuffer(b64decode(_TRAINED["weights"]), dtype=np.int8).astype(np.float32) * float(_TRAINED["unit"])
