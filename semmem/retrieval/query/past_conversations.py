"""Does a question ask what was said in conversations before, and what about?

"What did we discuss last week about the move?", "remind me what you suggested for the garden", "where did we leave
off?". Who asks so wants the conversation, and what was learnt of it (a fact) is a part of that at best. Not: what the
user alone did or said to others ("what did I tell my boss?"), this conversation, and what is asked of the model now
("what do you suggest?").

Looked for are forms of a few verbs of saying with "we" or "you" before them, and nouns for former conversations.

"my loaves burned at the bottom, you had something with rice, what was it" has no word for a conversation. Where it was
learnt for the embedding model, a logistic regression on the question's vector, its words (by the place that their
spelling hashes to), its pronouns and its form gives the log-odds that it asks for one; training/train_looks_back.py
makes the weights."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from semmem.memory import Vector
from semmem.retrieval.decide import request_words
from semmem.retrieval.decide.trained import Floats, Weights
from semmem.retrieval.time_filter import span, time_filter
from semmem.text import stop_words
from semmem.text.terms import terms
from semmem.text.times import Interval
from semmem.text.times.calendar import MONTHS, WEEKDAYS
from semmem.text.words import words

QUERY_CHARS_MAX = 2000
TERMS_MAX = 24
BUCKETS = 4096
WORDS_SCALE, FLAGS_SCALE = 0.5, 0.5
"""Beside a vector of length 1."""
SHIPPED = Path(__file__).with_name("looks_back.npz")
_WORDS = Path(__file__).with_suffix(".json")

_SAID = (
    r"say|said|discuss(?:ed)?|talk(?:ed)?|spoken?|speak|chat(?:ted)?|cover(?:ed)?|g[oe](?:ne)? over|went over"
    r"|concluded?|agreed?|decided?|settled?|brainstorm(?:ed)?|c[oa]me up with"
)
_TOLD = (
    r"suggest(?:ed)?|recommend(?:ed)?|propos(?:e|ed)|advis(?:e|ed)|explain(?:ed)?|mention(?:ed)?|say|said"
    r"|t(?:ell|old) me|g[ai]ven? me|g[ai]ve me|show(?:ed|n)? me|wr[oi]te(?: me)?|written|answer(?:ed)?|c[oa]me up with"
)
_SPACE = r"(?: \w{1,12}){0,2}? "
_FORMER = r"last|previous|past|earlier|prior|other|former|old(?:er)?|recent"
_TALK = r"(?:conversation|chat|discussion|session|thread|talk)s?"
_ENGLISH = re.compile(
    rf"\b(?:did|had|have|were|was) (?:we|you and i|you and me){_SPACE}?"
    rf"(?:{_SAID}|discussing|talking|chatting|speaking)\b"
    rf"|\b(?:we|we['’]ve|we['’]d|you and i)(?: (?:have|had|already|just|both|once|last|were|ever)){{0,3}}"
    r" (?:said|discussed|talked|spoken?|chatted|covered|went over|gone over|concluded|agreed|decided|settled"
    r"|brainstormed|came up with|discussing|talking about|chatting|speaking)\b"
    rf"|\b(?:did|had|have) you(?: \w{{1,12}}){{0,2}}? (?:{_TOLD})\b"
    r"|\byou(?:['’]ve|['’]d)?(?: (?:have|had|already|just|once|last)){0,3}"
    r" (?:suggested|recommended|proposed|advised|explained|mentioned|said|told me|gave me|given me|showed me|shown me"
    r"|wrote|written|answered|came up with)\b"
    r"|\b(?:did|had|have) i(?: \w{1,12}){0,2}? (?:t(?:ell|old)|ask(?:ed)?) you\b"
    r"|\bi(?:['’]ve|['’]d)?(?: (?:have|had|already|just|once|last)){0,3} (?:told|asked) you\b"
    rf"|\b(?:our|my|the|an?|any|those|these) (?:{_FORMER}) (?:few |two |three |\w{{1,12}} )?{_TALK}\b"
    rf"|\bour (?:\w{{1,12}} ){{0,2}}?{_TALK}\b"
    rf"|\b(?:the|that|any|an?|which) (?:\w{{1,12}} )?{_TALK} (?:(?:where|when|in which|that) )?(?:we|you|i) \w"
    rf"|\b(?:{_FORMER}) (?:conversations|chats|discussions)\b"
    rf"|\b{_TALK} (?:from|of) (?:last|yesterday|earlier|the other day)\b"
    r"|\b(?:we|did we|i) (?:leave|left) (?:off|it)\b|\blast time we\b|\bpick up where\b"
)
_OTHERS = re.compile(
    r"(?:我们|咱们)(?:上次|之前|以前|昨天|上周|上个月|前几天)?[^。？！\n]{0,12}?(?:聊|说|讨论|谈|提|商量|决定)"
    r"|(?:上次|之前|以前|昨天|上周|上个月|前几天)[^。？！\n]{0,8}?(?:聊|讨论|谈|商量|对话|会话|告诉我|建议)"
    r"|\b(?:hablamos|discutimos|comentamos|quedamos en|acordamos|conversamos|me (?:dijiste|recomendaste|sugeriste))\b"
    r"|\b(?:nuestra (?:última|anterior) (?:conversación|charla))\b"
    r"|\bwir(?: \w{1,12}){0,6}? (?:gesprochen|besprochen|geredet|diskutiert|beschlossen|vereinbart)\b"
    r"|\b(?:haben|hatten) wir\b[^.?!\n]{0,60}? (?:gesprochen|besprochen|geredet|diskutiert|beschlossen|vereinbart)\b"
    r"|\bhast du mir\b[^.?!\n]{0,60}? (?:gesagt|empfohlen|vorgeschlagen|erklärt)\b|\bunser\w* letzte\w* gespräch\b"
    r"|\bavons[- ]nous (?:parlé|discuté|dit|décidé|convenu)\b|\bnous avons (?:parlé|discuté|décidé|convenu)\b"
    r"|\b(?:tu m['’]as|m['’]as-tu|vous m['’]avez) (?:dit|conseillé|recommandé|suggéré|expliqué)\b"
    r"|\bnotre (?:dernière|précédente) (?:conversation|discussion)\b"
)
_ASKS = re.compile(
    r"[?？]|\b(?:what|which|where|when|how|who|why|did|do|have|remind|tell|list|show|recall|remember|summari[sz]e|find|continue"
    r"|pick up|look up|search|recap|bring up|go back|qué|was|worüber|quoi|que|dónde|resume|fass|recuérdame|erinner\w*"
    r"|rappelle\w*)\b|什么|哪|吗|提醒|回顾|总结|找"
)
_AHEAD = re.compile(
    r"\b(?:should|shall|could|can|would|will|do|don['’]t|let['’]s|if)(?: not)? (?:we|you|i)"
    r" (?:discuss|talk|speak|chat|cover|suggest|recommend|propose|explain|mention|say)\b"
)
_CHINESE_FRAME = re.compile(
    r"我们|咱们|上次|之前|以前|昨天|上周|上个月|前几天|聊|说|讨论|谈|提醒|提|商量|决定|对话|会话|告诉我|建议|你|了|过|什么|吗"
    r"|哪些?|回顾|总结|找|关于|的"
)
_AS_AGREED = re.compile(r"\bas (?:we|you|i)\b")
_SENTENCES = re.compile(r"[^.!?。！？\n]+[.!?。！？]?")
_LISTS = {name: " ".join(lines).split() for name, lines in json.loads(_WORDS.read_text("utf-8")).items()}
_FRAME = frozenset(terms([*_LISTS["frame"], *MONTHS, *WEEKDAYS]))
"""Terms of the question that say that one asks, and when, not about what."""
_GRAMMAR = frozenset(terms([*_LISTS["others"], *stop_words.SPANISH, *stop_words.GERMAN, *stop_words.FRENCH]))


@dataclass(frozen=True, slots=True)
class AskedBefore:
    """What of conversations is asked for: ``terms`` of their matter (empty: whatever it was) and ``during`` (None: at
    any time)."""

    terms: tuple[str, ...]
    during: Interval | None

    @property
    def is_latest(self) -> bool:
        """Neither a matter nor a time: the last conversations are meant."""
        return not self.terms and self.during is None


def asked_before(question: str, now: float, *, known: bool = False) -> AskedBefore | None:
    """What conversations the user's question looks for; None where its form looks for none. ``known``: it looks for
    one, whatever its form is. Its first QUERY_CHARS_MAX characters are read. ``now``: seconds since the epoch, for
    "last week"."""
    said = question[:QUERY_CHARS_MAX]
    asking = _looking_for_talk(said) or (_sentences(said) if known else [])
    if not asking:
        return None
    matter = (term for sentence in asking for term in terms(words(_CHINESE_FRAME.sub(" ", sentence))))
    telling = dict.fromkeys(term for term in matter if term not in _FRAME and term not in _GRAMMAR)
    during = span(asking, now)
    return AskedBefore(tuple(telling)[:TERMS_MAX], time_filter(question, now) if during is None else during)


def has_form(question: str) -> bool:
    """Whether the form of a question says that it looks for conversations."""
    return bool(_looking_for_talk(question[:QUERY_CHARS_MAX]))


def _sentences(text: str) -> list[str]:
    return [sentence for part in _SENTENCES.findall(text) if (sentence := part.strip())]


def _looking_for_talk(question: str) -> list[str]:
    """The sentences that name conversations and ask; with one that only names them goes the next one, which asks."""
    sentences = _sentences(question)
    found: dict[int, None] = {}
    for at, sentence in enumerate(sentences):
        line = sentence.lower()
        if _AHEAD.search(line) or _AS_AGREED.search(line) or not (_ENGLISH.search(line) or _OTHERS.search(line)):
            continue
        asking = [near for near in (at, at + 1) if near < len(sentences) and _ASKS.search(sentences[near].lower())]
        if asking:
            found.update(dict.fromkeys([at, *asking[:1]]))
    return [sentences[at] for at in found]


# --- what was learnt -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LooksBack(Weights):
    """``vector`` (d,), ``words`` (BUCKETS,), ``flags`` (1 + request_words.FLAGS,): the form, then pronouns. ``cut`` is
    the least log-odds of a question that asks for a conversation."""

    writer = "training.train_looks_back"
    precision = np.float32

    vector: Floats
    words: Floats
    flags: Floats
    bias: float
    cut: float

    def asks(self, question: str, vector: Vector, *, in_form: bool) -> bool:
        """Whether the question asks for a former conversation; ``vector`` is its own, of the same model."""
        return self.logit(question, vector, in_form=in_form) >= self.cut

    def logit(self, question: str, vector: Vector, *, in_form: bool) -> float:
        """The log-odds of it."""
        said, flags = places(question), flags_of(question, in_form=in_form)
        by_words = WORDS_SCALE * self.words[said].sum() / max(len(said), 1) ** 0.5
        return float(self.vector @ vector + self.flags @ flags + by_words + self.bias)

    def _shapes(self) -> list[tuple[int, ...]]:
        return [(self.vector.size,), (BUCKETS,), (1 + request_words.FLAGS,)]


def places(question: str) -> list[int]:
    """Where the weights of its words stand."""
    return sorted({place % BUCKETS for place in request_words.places(question)})


def flags_of(question: str, *, in_form: bool) -> Floats:
    """Its form, and whom it speaks of."""
    return np.array([1.0 if in_form else 0.0, *request_words.flags(question)], dtype=np.float32) * FLAGS_SCALE
