"""Cuts a message into clauses that the user speaks in their own voice. Quotes, mail and computer text are cut out.

Linear in the length of the text: white space is made single first, and every pattern is anchored or bounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from semmem.extraction.rules import lexicon
from semmem.extraction.rules.grammar import expand
from semmem.extraction.rules.patterns import folded

CUT = "\ufffc"
"""Stands where somebody else's words were. A clause that holds it says nothing about the user."""

QUOTED_WORDS_MAX = 8

_BLANKS = re.compile(r"[^\S\n]+")
_LINES = re.compile(r"\n\s*")
_FENCE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_TAGGED = re.compile(r"<(\w{2,20})>[^<]{0,4000}</\1>")
_FIRST_PERSON = folded(r"\b(?:I|i'm|my|me|we|our|us|ich|mein\w{0,2}|je|mon|ma|yo|mi)\b|j'|我")
_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»", "「": "」", "‘": "’", "`": "`", "'": "'"}
_MAIL = folded(
    r"""(?:from|to|subject|sent|date|cc)\s?: ?\S
    |dear \w[^.]{0,60},\s*$
    |on .{5,80} wrote:"""
)
_CODE_LINE = folded(
    r"""\s*(?:[$>#]\s|//|/\*|traceback|file \"|at \w[\w.$]{1,80}\(|\d{4}-\d\d-\d\d[t ]\d\d:\d\d|from \w{1,40} import
    |\[?(?:error|warn|info|debug)\b
    |(?-i:def|class|function|import|const|let|var|return|public|private|export|print|SELECT|INSERT|UPDATE)\b
    .{0,200}[(){};=*])"""
)
_CODE_END = re.compile(r"(?:[{};]|\)\s*=>.{0,80}|\);.{0,80})\s*$")
_CODE_ANYWHERE = re.compile(r"\w ?= ?[\"'\d\[{]|\w\(\w{0,40}[\"',)]|=>|==|::|\bconsole\.|</?\w{1,20}>")

_END = re.compile(
    r"(?<=[.!?…])[\"')\]]{0,3} |\n|(?<=[。！？])|(?<=[^\W\d]) (?:—|–|--|-|•|\*) (?=[^\W\d])|(?<=[)\w]); |(?<=\w)—(?=\w)"
)
_ABBREVIATION = folded(r"\b(?:mr|mrs|ms|dr|st|prof|vs|e\.g|i\.e|approx|nr|bzw|z\.b|a\.m|p\.m|[a-z])\.$")
_OWN = r"(?:I|my|we|our)"
_ASK = r"""(?:what|which|how|where|why|can|could|would|should|shall|do|does|did|is|are|will|any|please|suggest
|recommend|give|tell|help|guide|find|show)"""
_TRAILING = folded(r",? (?:but|so|and|or|because|since|then)\Z")
_TRAILING_CHARS_MAX = len(", because")
_KIN = "|".join(sorted(lexicon.RELATIONS))
_BOTH = folded(rf"\b((?:my|our) (?:\w{{1,20}} )?(?:{_KIN})(?: (?-i:[A-Z])\w{{1,20}})? and) I\b")
_HOW_LONG = folded(r"(?:.{0,40} )?how (?:long|many \w+)\b")
_CLAUSE = folded(
    rf"""(?:,| and)? (?:so that|so|because|since|cause|cuz|coz|but|although|though|while|whereas)
    (?= (?:{_OWN}|there is|it is|our|mine)\b)
    |,? (?:so|but|and|hence|therefore)(?: then)?(?= {_ASK}\b)
    |,? (?:and|then)(?: also)?(?= I\b)
    |,? and(?= (?:my|our) (?:[\w'-]{{1,20}} ){{1,3}}
    (?:is|are|was|has|have|lives?|works?|loves?|likes?|hates?|just|turns|turned|studies|runs?|plays?|cannot)\b)
    |[,:](?: and| so| but)?(?= (?:{_OWN}|there is) (?!and\b)\S)
    |,? (?:and|but)(?= (?:need|want|would like|wonder|wondering|please|alert|tell|let|(?:am|was) (?:wondering
    |not sure|trying|looking))\b)
    |,(?= (?:please|alert|notify|send|which one|thanks)\b)
    |,(?= {_ASK} (?:I|you|me|we|us|my|to|a|an|the|is|are|do|does|did|can|should|some|it|they|there|this|that|was|would
    |could|will|kind|sort|much|many)\b)
    |(?:,|,? (?:so|and|but))?(?= (?:what|how|where|when|why) (?:do|does|did|is|are|can|could|should|would|will|much
    |many|long|far
    |often|kind|type|sort)\b)
    |,?(?= (?:who|which) (?:do|does|did|can|could|should|would)\b)
    |(?<=\w)(?= (?:can|could|would|will|do) you\b)
    |(?<=\w)(?= (?:should|can|could|am|do) I\b)
    |,(?= (?:which|what|how|any) (?!is\b|are\b|was\b|were\b|means|has\b|makes|I\b|we\b)\w+)
    |(?<=\w) \((?=\w)|\)(?!\w)"""
)


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause, contractions written out. ``asked``: it is what a question asks."""

    text: str
    asked: bool


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence, contractions written out, whole and in clauses."""

    text: str
    clauses: tuple[Clause, ...]


_ROMAN = re.compile(
    r"\b((?:World War|WW|War|Part|Chapter|Phase|Type|type|Volume|Book|Act|Constantine|Elizabeth|Charles|James|George"
    r"|Napoleon|Henry"
    r"|Louis|Francis|Nicholas|Alexander|Peter|Darius|Leopold|Pope [A-Z]\w+|King [A-Z]\w+"
    r"|Emperor [A-Z]\w+)) I(?![\w'’])"
)


def squeezed(text: str) -> str:
    """The text with single spaces and single newlines, and without the Roman numeral I."""
    return _ROMAN.sub(r"\1 1", _LINES.sub("\n", _BLANKS.sub(" ", text))).strip()


def own_words(text: str) -> str:
    """The squeezed text with CUT in place of quotes, code, logs and tagged blocks, up to where an e-mail begins."""
    kept = []
    for line in _without_quotes(_TAGGED.sub(CUT, _FENCE.sub(CUT, text))).split("\n"):
        if _MAIL.match(line.strip()):
            break
        kept.append(CUT if _is_code(line) else line)
    return "\n".join(kept)


def sentences_in(text: str) -> list[Sentence]:
    """The sentences of ``own_words``."""
    pieces: list[str] = []
    for piece in _END.split(text):
        if pieces and _ABBREVIATION.search(pieces[-1][-8:]):
            pieces[-1] += f" {piece}"
        elif piece.strip():
            pieces.append(piece.strip())
    return [_sentence(piece) for piece in pieces]


def _sentence(text: str) -> Sentence:
    asked = text.rstrip("\"') ").endswith(("?", "？"))
    plain = expand(text)
    parts = [plain] if _HOW_LONG.match(plain) else [_freed(part) for part in _CLAUSE.split(_BOTH.sub(r"\1_I", plain))]
    parts = [_ended(part) for part in parts if part]
    last = len(parts) - 1
    return Sentence(plain, tuple(Clause(part, asked and index == last) for index, part in enumerate(parts)))


def _ended(part: str) -> str:
    """Without the conjunctions at its end. One after another from behind: to look for all of them at once costs the
    square of their number."""
    end = len(part)
    while last := _TRAILING.search(part, max(0, end - _TRAILING_CHARS_MAX), end):
        end = last.start()
    return part[:end]


def _freed(part: str) -> str:
    return part.replace(" and_I ", " and I ").strip(" ,:")


def _is_code(line: str) -> bool:
    return bool(_CODE_LINE.match(line) or _CODE_END.search(line[-120:]) or _CODE_ANYWHERE.search(line))


def _without_quotes(text: str) -> str:
    """Quoted passages that are long or speak in the first person become CUT; short names and titles stay."""
    out: list[str] = []
    position = 0
    for start, end in _quoted(text):
        inside = text[start + 1 : end]
        if len(inside.split()) > QUOTED_WORDS_MAX or _FIRST_PERSON.search(inside):
            out += [text[position:start], CUT]
            position = end + 1
    return "".join(out) + text[position:]


def _quoted(text: str) -> list[tuple[int, int]]:
    """Where quotation marks open and close, not nested. An apostrophe inside or after a word opens nothing."""
    spans = []
    start, closing = -1, ""
    for index, char in enumerate(text):
        if not closing:
            if char in _QUOTES and not (index and text[index - 1].isalnum()):
                start, closing = index, _QUOTES[char]
        elif char == closing and not (char in "'’" and text[index + 1 : index + 2].isalnum()):
            spans.append((start, index))
            closing = ""
        elif char == "\n" and closing in "'’":
            closing = ""
    return spans
