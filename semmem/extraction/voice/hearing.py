"""What of a message the user says in their own voice, told by what is seen of its units: the words they are made of,
their vectors, their signs, and where they stand.

A unit is a sentence, or the part of one before and behind a colon, a dash or a quotation: what one voice speaks. All of
it takes linear time: every pattern is anchored or bounded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from semmem.extraction.lasting.features import formal
from semmem.memory import Vector
from semmem.ports.embedder import learnt_for
from semmem.text.orders import places, stem_of, tokens
from semmem.text.words import ABBREVIATION, counted

UNITS_MAX = 200
"""Of one message so many units are read: those of its beginning and of its end, half and half."""
UNIT_CHARS_MAX = 400
"""A sentence that is longer is cut."""
UNITS_EMBEDDED_MAX = 40
"""Of one message so many are embedded: the first and the last, half and half."""
QUOTED_WORDS_MAX = 8
"""Longer passages within quotation marks are somebody's words; shorter ones may be names and titles."""

_END = re.compile(
    r"""(?<=[.!?…])["'”’)\]]{0,3}[ ](?=\S) | (?<=[。！？])["”’」』）)]{0,3}
      | (?<=[?!])(?=[\u3040-\u30ff\u3400-\u9fff]) | [:：](?:[ ]|(?=["“„«「『])) | ：
      | (?<=\S)[ ](?:[-–—]{1,3}|<-{1,2}|-{1,2}>|[→←])[ ](?=\S)""",
    re.VERBOSE,
)
_LINE_END = re.compile("\n")
_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»", "「": "」", "『": "』", "‘": "’", "`": "`", "'": "'"}
_FENCE = re.compile(r"\s*(?:```|~~~)")
_TAG = re.compile(r"\s*<(/?)([a-zA-Z][\w-]{1,20})>")
_MAILED = re.compile(r"\s*>")
_UNSPACED = "「『“"
"""Those that open a quotation behind a letter too, where a script has no spaces; others may end one there: »Emma«."""
_FIRST_PERSON = re.compile(
    r"\b(?:I|i'm|me|my|mine|we|us|our|ich|mein\w{0,2}|je|mon|ma|yo|mi|eu|meu|minha)\b|[我私僕俺]"
)


@dataclass(frozen=True, slots=True)
class Unit:
    """``start`` and ``end``: its place in the text. ``line``: the number of its line, blank ones counted; ``opens``: it
    is the first of its line. ``quoted``: it stands within quotation marks that hold somebody's words, or is marked as a
    text of its own: code, a tag and what stands in it, a quoted line of a mail."""

    start: int
    end: int
    line: int
    opens: bool
    quoted: bool


def units(text: str) -> list[Unit]:
    """In the order of the text. What is left out of a text with more than UNITS_MAX of them is nobody's voice."""
    found: list[Unit] = []
    quotes = _merged([*quotations(text), *marked(text)])
    quote = line = 0
    opens = True
    for start, end in pairwise(_cuts(text, quotes)):
        while quote < len(quotes) and quotes[quote][1] <= start:
            quote += 1
        piece = text[start:end]
        if piece.strip():
            quoted = quote < len(quotes) and quotes[quote][0] <= start
            found.append(Unit(start, start + len(piece.rstrip()), line, opens, quoted))
            opens = False
        if piece.endswith("\n"):
            line, opens = line + 1, True
    half = UNITS_MAX // 2
    return found if len(found) <= UNITS_MAX else found[:half] + found[-half:]


def _cuts(text: str, quotes: list[tuple[int, int]]) -> list[int]:
    """Where units begin and end, in order."""
    cuts = {0, len(text), *(place for quote in quotes for place in quote)}
    cuts.update(match.end() for match in _LINE_END.finditer(text))
    for match in _END.finditer(text):
        if not ABBREVIATION.search(text[max(0, match.start() - 8) : match.start()]):
            cuts.add(match.end())
    ends = sorted(cuts)
    return [place for start, end in pairwise(ends) for place in range(start, end, UNIT_CHARS_MAX)] + ends[-1:]


def quotations(text: str) -> list[tuple[int, int]]:
    """Where somebody's words stand within quotation marks: long passages, and those in the first person. Not nested. An
    apostrophe inside or behind a word opens nothing, and a single quote does not go over a line's end."""
    found = []
    start, closing = -1, ""
    for index, char in enumerate(text):
        if not closing:
            if char in _QUOTES and (char in _UNSPACED or not (index and text[index - 1].isalnum())):
                start, closing = index, _QUOTES[char]
        elif char == closing and not (char in "'’" and text[index + 1 : index + 2].isalnum()):
            inside = text[start + 1 : index]
            if counted(inside) > QUOTED_WORDS_MAX or _FIRST_PERSON.search(inside):
                found.append((start, index + 1))
            closing = ""
        elif char == "\n" and closing in "'’":
            closing = ""
    return found


def marked(text: str) -> list[tuple[int, int]]:
    """Where lines stand in a fence or a tag, or begin as a mail quotes another one. A fence or tag that nothing ends
    goes on to the end of the text."""
    found = []
    fenced, tag, start = False, "", 0
    for line in text.split("\n"):
        end = start + len(line)
        opening, fence = _TAG.match(line), _FENCE.match(line) is not None
        if fenced or tag or opening or fence or _MAILED.match(line):
            found.append((start, end))
        if fence:
            fenced = not fenced
        elif opening and not fenced:
            tag = "" if opening[1] and opening[2] == tag else tag or ("" if opening[1] else opening[2])
        start = end + 1
    return found


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans in order, none of which overlaps the next."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start < found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


DOUBTED_MIN = -2.0
"""From these odds on (their logarithm) a unit is perhaps somebody else's (docs/learning.md)."""
SURE_EACH, SURE_LEAST, SURE_MIN = 1.0, 0.5, 2.5
"""From so many times the number of the message's other units on it surely is, never below SURE_LEAST, and in any
message from SURE_MIN on: of many units one is sooner misjudged, and beside a single one stands nothing that tells whose
it is. With SURE_LEAST in place of 0, of 261 pasted messages none more went through, and of 931 of users' own three less
were taken (5)."""
SURE_LED = 0.0
"""The same behind a line that ends with a colon: it says that what follows is somebody's text, or a list of one's own,
which the odds tell apart: with earlier weights, of 728 messages of users' own that they were not learnt from it took
none, of 68 messages of RealMem with such a line 8, 7 of them pasted."""
OTHERS_MIN = -0.5
"""The least for any other unit of a message in which one surely is: a text has more than one. At -2, of what users say
beside a pasted text 32 of 60 facts stayed, at this 37, and of 495 sentences of such texts one more."""
DETAIL_MIN = -3.5
"""The least for a unit with a payment or contact detail, in a message that is the user's otherwise."""
_DATE_OR_SUM = r"(?:19|20)\d\d(?:[-/.]\d\d?){2}\b|(?:\d\d?[-/.]){2}(?:19|20)\d\d\b|\d{1,3}[.,/]\d{3}\b"
DETAIL = re.compile(
    rf"""(?<!\d)(?<!\d[-/.])(?!{_DATE_OR_SUM})(?:\d(?:[ \u00a0()./–-]{{0,3}}\d){{5}} | \d{{1,3}}-\d{{1,3}}-\d)
      | \S@\S | :// | \bwww\. | \b[a-z]{{2}}\d\d[ ]?[a-z\d]{{4}} | (?<![a-z\d])(?=[a-z]{{0,20}}\d)[a-z\d]{{12}}
      | \b\d{{1,4}}\w?,?[ ](?:(?-i:[A-Z]\w{{1,20}}[ ]){{1,3}}(?:street|road|avenue|lane)|rue|avenue|boulevard|place)\b
      | (?:stra(?:ß|ss)e|str\.|weg|platz)[ ]\d | \b(?:calle|avenida|plaza)[ ][^\d\n]{{1,30}}\d""",
    re.IGNORECASE | re.VERBOSE,
)
"""By which somebody is paid or reached: six digits at least of an account, a card or a telephone, an IBAN, the name of
a wallet, the address of a mail, a page or a house."""
_INTRODUCES = re.compile(
    r"\W*(?:(?:this|these|dies\w*|das|hier|ceci|ça|voici|voilà|est[aeo]s?|aquí)\b|c['’]est|これ|この|以下|次の|这|這|以下)"
    r"|[^:：]*[:：]\s*$",
    re.IGNORECASE,
)
"""What points at somebody's text or ends with a colon, and says nothing of the user beside such a text."""


@dataclass(frozen=True, slots=True)
class Heard:
    """``text``: what the user says in their own voice, each line where it was. ``alone``: nobody else speaks in the
    message, not even perhaps, and all of it was read, so that it may end or change what is known of the user.
    ``mixed``: somebody else surely does."""

    text: str
    alone: bool
    mixed: bool = False


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors of units by their text, of an embedder of that signature, which has weights. What is missing was not
    embedded, and is told by its words alone."""

    signature: str = ""
    vectors: Mapping[str, Vector] = field(default_factory=dict)


NOTHING_EMBEDDED = Embedded()


def to_embed(text: str) -> list[str]:
    """The units whose vectors ``heard`` reads, as they are embedded. Linear in the length of the text."""
    found = units(text)
    half = UNITS_EMBEDDED_MAX // 2
    chosen = found if len(found) <= UNITS_EMBEDDED_MAX else found[:half] + found[-half:]
    return [_said(text, unit) for unit in chosen]


def _said(text: str, unit: Unit) -> str:
    return text[unit.start : unit.end].strip()


def heard(text: str, embedded: Embedded = NOTHING_EMBEDDED) -> Heard:
    """Linear in the length of the text; never raises."""
    found = units(text)
    if not found:
        return Heard(text, alone=True)
    rows = [words_of(text[unit.start : unit.end]) for unit in found]
    vectors = [embedded.vectors.get(_said(text, unit)) for unit in found] if embedded.vectors else None
    odds = _weights(embedded.signature).odds(rows, shapes(text, found), vectors)
    highest = float(max(odds))
    surely = SURE_MIN if len(found) == 1 else min(SURE_MIN, max(SURE_LEAST, SURE_EACH * (len(found) - 2)))
    mixed = highest >= surely or any(odd >= SURE_LED for odd in odds[_led(text, found) :])
    alone = highest < DOUBTED_MIN and len(found) < UNITS_MAX and not any(unit.quoted for unit in found)

    def is_own(unit: Unit, odd: float) -> bool:
        if unit.quoted or (mixed and (odd >= OTHERS_MIN or _INTRODUCES.match(text, unit.start, unit.end))):
            return False
        return (alone and odd < DETAIL_MIN) or DETAIL.search(text, unit.start, unit.end) is None

    own = [unit for unit, odd in zip(found, odds, strict=True) if is_own(unit, odd)]
    return Heard(_joined(text, own), alone and len(own) == len(found), mixed)


def _led(text: str, found: Sequence[Unit]) -> int:
    """The number of the first unit behind a line that ends with a colon; ``len(found)`` where none does."""
    for number, (unit, after) in enumerate(pairwise(found), 1):
        if after.line > unit.line and text[unit.start : unit.end].endswith((":", "：")) and not unit.quoted:
            return number
    return len(found)


def _joined(text: str, own: list[Unit]) -> str:
    """The units; a line begins where something was left out before one."""
    parts: list[str] = []
    end = 0
    for unit in own:
        between = text[end : unit.start]
        parts += [between if not between.strip() else "\n", text[unit.start : unit.end]]
        end = unit.end
    return "".join(parts).strip("\n")


WEIGHTS_FILE = Path(__file__).with_name("weights.npz")
WORD_SIZE, VECTOR_SIZE, INNER_SIZE, STATE_SIZE = 32, 32, 64, 32
WORDS_MIN = 4
"""The root of the number of words is divided by, so that length does not count; of fewer each says too much."""
VECTOR_SCALE = 20.0
"""What vectors of length 1 are multiplied with, so that each of their few hundred numbers is about 1."""

Matrix = npt.NDArray[np.float32]


@cache
def _weights(signature: str) -> Weights:
    """For these vectors; the default's where there are none."""
    return Weights(learnt_for(WEIGHTS_FILE, signature))


class Weights:
    """The odds that a unit of a message is not the user's own voice; what ``save`` has written. A small recurrent
    network reads the units in both directions: each is its words (hashed, a vector each), its shape and, where it was
    embedded, its vector. It was taught with some vectors missing, so it needs none. The weights come from
    ``training/train_voice.py``."""

    def __init__(self, file: Path) -> None:
        with np.load(file) as held:
            self._words: Matrix = held["words.weight"].astype(np.float32) * held["words.unit"].astype(np.float32)
            self._rest = {name: held[name].astype(np.float32) for name in held.files if not name.startswith("words.")}

    def odds(
        self,
        words: Sequence[Sequence[int]],
        shapes: Sequence[Sequence[float]],
        vectors: Sequence[Vector | None] | None = None,
    ) -> Matrix:
        """Logarithms of the odds, one a unit of one message."""
        held = self._rest
        spelt = np.stack([self._words[row].sum(axis=0) / max(len(row), WORDS_MIN) ** 0.5 for row in words])
        meant = np.tanh(self._given(len(words), vectors) @ held["meant.weight"].T + held["meant.bias"])
        seen = np.hstack([spelt, np.array(shapes, dtype=np.float32), meant])
        inner = np.tanh(seen @ held["inner.weight"].T + held["inner.bias"])
        forward = self._read(inner, "")
        backward = self._read(inner[::-1], "_reverse")[::-1]
        both = np.hstack([forward, backward, inner])
        return np.asarray((both @ held["out.weight"].T + held["out.bias"])[:, 0], dtype=np.float32)

    def _given(self, count: int, vectors: Sequence[Vector | None] | None) -> Matrix:
        given = np.zeros((count, self._rest["meant.weight"].shape[1]), dtype=np.float32)
        for place, vector in enumerate(vectors or ()):
            if vector is not None:
                given[place] = VECTOR_SCALE * np.asarray(vector)
        return given

    def _read(self, inner: Matrix, direction: str) -> Matrix:
        """The states of a gated recurrent unit (Cho et al. 2014, as PyTorch computes it) behind each unit."""
        held = self._rest
        given = inner @ held[f"gru.weight_ih_l0{direction}"].T + held[f"gru.bias_ih_l0{direction}"]
        recurrent, bias = held[f"gru.weight_hh_l0{direction}"].T, held[f"gru.bias_hh_l0{direction}"]
        state = np.zeros(STATE_SIZE, dtype=np.float32)
        states = []
        for row in given:
            kept = state @ recurrent + bias
            gates = 1 / (1 + np.exp(-(row[: 2 * STATE_SIZE] + kept[: 2 * STATE_SIZE])))
            reset, update = gates[:STATE_SIZE], gates[STATE_SIZE:]
            new = np.tanh(row[2 * STATE_SIZE :] + reset * kept[2 * STATE_SIZE :])
            state = (1 - update) * new + update * state
            states.append(state)
        return np.stack(states)


def save(file: Path, state: Mapping[str, npt.NDArray[Any]]) -> None:
    """The words' vectors as one signed byte each, all else in half precision."""
    words = state["words.weight"]
    unit = float(np.abs(words).max()) / 127
    rest = {name: value.astype(np.float16) for name, value in state.items() if name != "words.weight"}
    packed = {"words.weight": np.round(words / unit).astype(np.int8), "words.unit": np.float32(unit)}
    np.savez_compressed(file, **packed, **rest)  # type: ignore[arg-type]


BUCKETS = 1 << 13
"""Places for the words' vectors. A word's place is the CRC-32 of its spelling: the same everywhere, and fast."""
WORDS_READ = 60
"""Of a unit; no sentence has more."""

_SHAPES = tuple(
    re.compile(source, re.IGNORECASE)
    for source in (
        r"\s*(?:[-*•·–]|\d{1,3}[.)])\s",  # an item of a list
        r"\s*>",  # quoted in a mail
        r"\s*(?:```|~~~|[-=_*#+]{3,}|\[/?\w+\]|</?\w)",  # a fence, a rule, a tag
        r"\s*#{1,6}\s",  # a heading
        r"\s*[\[(]?\d{1,4}[:./-]\d{1,2}(?:[:./-]\d{1,4})?",  # a date or a time
        r".*\b\d{1,2}:\d\d",
        r".*https?://|.*\bwww\.|.*\w@\w",
        r"\s*[^\W\d]{1,20}(?: [^\W\d]{1,20}){0,2}\s*[:：]",  # a name or a word with a colon
        r"\s*(?:from|to|subject|sent|date|cc|von|an|betreff|de|para|à|asunto|objet)\s?:",
        r"\s*(?:dear|hi|hello|hey|hallo|liebe[rs]?|bonjour|hola|caro|cara)\b.{0,40}[,!]\s*$",
        r".*[{}<>=|\\]",
        r".*[\"“”„«»「」『』]",
        r".*[:：]\s*$",
        r".*[?？]\W*$",
        r".*[.!。！…]\W*$",
        r".*[,，、;]\s*$",
        r"\W*[a-zà-ÿа-я]",  # begins with a small letter
        r".*[★☆⭐]|.*\b\d/(?:5|10)\b",
    )
)
_CAPITALS = re.compile(r"[A-ZÀ-Þ]{4,}")


def words_of(text: str) -> list[int]:
    """The places of the words, pairs of neighbours and openings of a unit."""
    stems = [stem_of(token) for token in tokens(text)[:WORDS_READ]]
    spelt = {*stems, *map(" ".join, pairwise(stems)), *(f"^{' '.join(stems[:count])}" for count in (1, 2, 3))}
    return places(spelt, BUCKETS)


def shapes(text: str, found: Sequence[Unit]) -> list[list[float]]:
    """One row a unit, each value in [0, 1]."""
    lines = len({unit.line for unit in found})
    rows = []
    for index, unit in enumerate(found):
        said, below = text[unit.start : unit.end], unit.line - found[index - 1].line if index else 0
        seen = [*(shape.match(said) is not None for shape in _SHAPES), _CAPITALS.search(said) is not None]
        stands = (unit.opens, unit.quoted, below == 1, below > 1, index == 0, index == len(found) - 1)
        sizes = (index / 10, len(found) / 10, lines / 10, (unit.end - unit.start) / 200)
        rows.append([*formal(said), *map(float, seen), *map(float, stands), *(min(1.0, size) for size in sizes)])
    return rows
