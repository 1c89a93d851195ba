"""Cuts a message into sentences and clauses, as they are written, in any language. Linear in the text's length."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby, islice
from pathlib import Path

from semmem.extraction.lasting.features import BEFORE_OWN, Clause
from semmem.text.words import ABBREVIATION, behind_courtesies

CLAUSES_MAX = 200
"""Of one message, as many clauses are looked at: those of its beginning and of its end, half and half."""
WORDS_MIN = 3
WIDE_MIN = 5
"""A shorter clause, in words, or in characters where a script has no spaces, belongs to the one before it."""

_END = re.compile(
    r"""(?<=[.!?…])["'”’)\]]{0,3}[ ](?=\S) | (?<=[。！？])["”’」』）)]{0,3}
      | (?<=[?!])(?=[\u3040-\u30ff\u3400-\u9fff]) | (?<=[^\W\d]);[ ]""",
    re.VERBOSE,
)
_PRONOUN = (
    r"(?:i|i'm|i’m|im|i've|i’ve|i'll|i’ll|i'd|we|we're|we’re|my|our|he|she|it's|it|they|there|his|her|their|this|that)"
)
_ASKING = (
    r"(?:what|what's|whats|which|who|where|when|why|how|can|could|would|should|shall|do|does|did|is|are|will|please"
    r"|any|give|tell|help|write|suggest|recommend|show|find|make)"
)
_JOINT = r"(?:and|but|so|because|since|cause|cuz|although|though|while|whereas|which|who|if|as|or|then|plus)"
_BREAK = re.compile(
    rf"""
      [,;:](?:[ ]|$) | [，；：、]
    | (?<=[\u3040-\u30ff\u3400-\u9fff])[ ～~](?=[\u3040-\u30ff\u3400-\u9fff]) | (?<=[\u3040-\u30ff\u3400-\u9fff])[,;:]
    | [ ][-–—]{{1,3}}[ ] | (?<=\w)[–—]{{1,2}}(?=\w) | [ ]?[()（）][ ]?
    | [ ](?={_JOINT}[ ]{_PRONOUN}[ ])
    | [ ](?=(?:and|but|so)[ ]{_ASKING}[ ])
    | [ ](?=(?:that|because|since|so[ ]that)[ ]{_PRONOUN}[ ])
    | [ ](?={BEFORE_OWN})
    """,
    re.VERBOSE | re.IGNORECASE,
)
_TAG = re.compile(
    r", (?:ok|okay|alright|all right|right|yes|yeah|please|pls|deal|ja|bitte|vale|sí|d['’]accord|stp|va bene|tá)"
    r"\s?\?\s*$",
    re.IGNORECASE,
)
"""A sentence with it at its end asks for nothing but a nod."""
_ITEM = re.compile(r"\s*(?:[-*•·]|\d{1,2}[.)])\s+")
BREAKS_MAX = 40
"""Of a sentence, so many places where an order to remember may begin."""
LINE_CHARS_READ = 200
"""Of a line's end so much is looked at for a colon."""
_BLANKS = re.compile(r"[^\S\n]+")
_CONTRACTION = re.compile(r"\w['’]\w")
"""It is two words: "I'm celiac, suggest a dinner" says two things."""
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def squeezed(text: str) -> str:
    """The text with single spaces, which ``clauses`` expects."""
    return _BLANKS.sub(" ", text)


def clauses(text: str, *, clauses_max: int = CLAUSES_MAX) -> list[Clause]:
    """The clauses of a squeezed text, in order."""
    found: list[Clause] = []
    starts: list[int] = []
    for number, (start, end, introduced, listed) in enumerate(_sentences(text)):
        starts.append(start)
        asked = text[start:end].rstrip("\"'”’)） ").endswith(("?", "？"))
        asked = asked and not _TAG.search(text, max(start, end - 20), end)
        lead = lead_in(text, start, end, asked=asked)
        colon = text.find(":", lead.said, end)
        places = _places(text, lead.said, end)
        if lead.linked and asked and [first for first, _ in places] == [lead.said]:
            asked, places = False, [(lead.said, lead.said + len(text[lead.said : places[0][1]].rstrip(" ?？")))]
        for index, (first, last) in enumerate(places):
            said, leads = " ".join(text[first:last].split()), first == lead.said
            begin, led, to_keep = lead.written if leads else first, 0 <= colon < first, leads and lead.to_keep
            where = index == 0, index == len(places) - 1, led, introduced, listed
            found.append(Clause(said, number, begin, last, asked, *where, to_keep))
    found = list(_with_requests(text, starts, found))
    half = clauses_max // 2
    return found if len(found) <= clauses_max else found[: clauses_max - half] + found[-half:]


def _with_requests(text: str, starts: list[int], found: list[Clause]) -> Iterator[Clause]:
    """The clauses with what is asked of them: to remember what the same sentence says, or, where a sentence says
    nothing else, the ones before and behind it. ``starts``: where the sentences begin."""
    sentences = [list(sentence) for _, sentence in groupby(found, key=lambda clause: clause.sentence)]
    orders: list[Order | None] = []
    bare: list[bool] = []
    for sentence in sentences:
        start, end = starts[sentence[0].sentence], sentence[-1].end
        # An order may begin with the sentence, and behind what parts clauses.
        behind = (match.end() for match in islice(_BREAK.finditer(text, start, end), BREAKS_MAX))
        order = order_in(text, [start, *behind], end)
        orders.append(order)
        bare.append(order is not None and all(is_only(order, text, each.start, each.end) for each in sentence))
    for place, (order, sentence) in enumerate(zip(orders, sentences, strict=True)):
        beside = any(bare[max(0, place - 1) : place]) or any(bare[place + 1 : place + 2])
        for clause in sentence:
            requests = order is not None and is_only(order, text, clause.start, clause.end)
            requested = not requests and (order is not None or beside)
            plainly = requested and order is not None and order.plain and clause.start <= order.end
            told = replace(clause, requested=requested, plainly=plainly, requests=requests)
            yield _without(told, text, order) if requested and order is not None else told


def _without(clause: Clause, text: str, order: Order) -> Clause:
    """The clause without the order that it begins or ends with."""
    start = order.end if order.start == clause.start else clause.start
    end = order.start if clause.start < order.start and order.end >= clause.end - 1 else clause.end
    return replace(clause, start=start, end=end, text=" ".join(text[start:end].split()))


def _sentences(text: str) -> Iterator[tuple[int, int, bool, bool]]:
    """Where each begins and ends, whether a line before it ends with a colon, and whether its own is one of a list."""
    start, introduced = 0, False
    for written in text.split("\n"):
        item = _ITEM.match(written)
        begin = start + (item.end() if item else 0)
        for first, end in _ends(text, begin, start + len(written)):
            yield first, end, introduced, item is not None
        introduced = introduced or written[-LINE_CHARS_READ:].rstrip().endswith((":", "："))
        start += len(written) + 1


def _ends(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the sentences of one line begin and end."""
    for match in _END.finditer(text, start, end):
        if match.start() > start and (
            text.startswith(("¿", "¡"), match.end())
            or not ABBREVIATION.search(text, max(start, match.start() - 8), match.start())
        ):
            yield start, match.start() + len(match[0].rstrip())
            start = match.end()
    if text[start:end].strip():
        yield start, end


def _places(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Where the clauses of one sentence begin and end; what is too short to stand alone belongs to its neighbour."""
    places: list[tuple[int, int]] = []
    for match in [*_BREAK.finditer(text, start, end), None]:
        stop = match.start() if match else end
        if text[start:stop].strip(" ,;:"):
            if places and (_is_short(text[start:stop]) or _is_short(text[slice(*places[-1])])):
                places[-1] = places[-1][0], stop
            else:
                places.append((start, stop))
        start = match.end() if match else end
    return places


def _is_short(piece: str) -> bool:
    words = len(piece.split()) + len(_CONTRACTION.findall(piece))
    return words < WORDS_MIN and len(_WIDE.findall(piece)) < WIDE_MIN


OWN_WORDS_MIN = 3
"""Fewer words of one's own tell nothing: "remember my name"."""

_ASIDE = (
    r"(?:(?:please|pls|ok|okay|oh|hey|hi|hello|so|well|also|btw|by the way|fyi|just so you know|so you know"
    r"|for the record|for your information|for (?:future )?reference|to be clear|one more thing|another thing|heads up"
    r"|quick note|side note|note|reminder|update|important|übrigens|por cierto|au fait)[,:][ ]"
    r"|(?:btw|by the way|fyi|ok so|okay so|ok|okay|so|oh|well|also)[ ](?=(?:i|my|we|our|im)(?:['’]\w+)?[ ]))"
)
_CORRECTING = r"(?:(?:actually|sorry|wait|oops|correction|eigentlich|perdón|pardon)[,:][ ])"
_LEAD = re.compile(rf"(?P<aside>{_ASIDE}*)(?P<correcting>{_CORRECTING}?)", re.IGNORECASE)
_OWN = re.compile(
    r"(?:(?:that|dass)[ ])?(?:i|i['’](?:m|ve|ll|d)|im|my|we|we['’](?:re|ve)|our|ich|mein\w*|wir|unser\w*|yo|mi|mis|soy"
    r"|tengo|je|mon|ma|mes|nous|notre|nos)\b|j['’]",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class LeadIn:
    """What people put before the thing itself: "Remember:", "By the way,", "Actually,".

    It says nothing of the user, and with it a clause looks less like what the classifier was taught. What is to be
    remembered is kept because the user says so, where it is of their own.

    ``said``: where the thing itself begins; ``written``: from where a memory is written, since a correction is told
    by its first word. ``to_keep``: the user asks to remember it, and it is of their own. ``linked``: they ask it with
    "that", so that it is no question whatever stands at its end."""

    said: int
    written: int
    to_keep: bool
    linked: bool = False


def lead_in(text: str, start: int, end: int, *, asked: bool) -> LeadIn:
    """Of the sentence at these places; ``asked``: it ends with a question mark, as "can you remember that" may."""
    last = min(end, start + READ_CHARS_MAX)
    found = _LEAD.match(text, start, last)
    aside, behind = (start, start) if found is None else (found.end("aside"), found.end())
    order = order_in(text, dict.fromkeys((behind, start)), last)
    said = behind if order is None else order.end
    if said >= end or not text[said:end].strip(" .,:;!?…"):
        return LeadIn(start, start, to_keep=False)
    rest = text[said:end]
    own = _OWN.match(rest) is not None and len(rest.split()) >= OWN_WORDS_MIN
    if order is None and behind > aside and not own:  # "Sorry, 14 not 12." is nothing without it
        return LeadIn(aside, aside, to_keep=False)
    if order is None:
        return LeadIn(said, aside, to_keep=False)
    return LeadIn(said, said, own and (not asked or order.linked), order.linked)


BEFORE_MAX, BEHIND_MAX = 4, 1
"""A clause with an order and no more words before and behind it says nothing else."""
_SIGNS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
READ_CHARS_MAX = 80
"""No order is longer."""


@dataclass(frozen=True, slots=True)
class Order:
    """``start`` and ``end``: places in the text, with the words that belong to it. ``linked``: it ends with "that";
    ``plain``: with that or a colon."""

    start: int
    end: int
    linked: bool
    plain: bool


def raised(probability: float, *, plainly: bool) -> float:
    """Of being lasting, for what the user asks to remember: the square root, so that 0.21 does for 0.45; where an
    order stands before it and ends with a colon or "that", the fourth root, so that 0.05 does."""
    return float(probability ** (1 / (4 if plainly else 2)))


def order_in(text: str, starts: Iterable[int], end: int) -> Order | None:
    """The first order that begins, behind words of courtesy, at one of these places of a sentence that ends at ``end``.
    Linear in the sentence's length."""
    for start in starts:
        said = text[start : min(end, start + READ_CHARS_MAX)]
        for opener in behind_courtesies(said):
            found = _orders().match(said, opener)
            if found is not None:
                linked = found["link"] is not None
                return Order(start, start + found.end(), linked, linked or found[0].rstrip().endswith((":", "：")))
    return None


def is_only(order: Order, text: str, start: int, end: int) -> bool:
    """Whether these places hold the order and hardly anything else."""
    if order.start >= end or order.end <= start:
        return False
    before, behind = text[start : max(start, order.start)], text[min(end, order.end) : end]
    return _counted(before) <= BEFORE_MAX and _counted(behind) <= BEHIND_MAX


def _counted(text: str) -> int:
    return len(re.findall(r"\w+", text)) + len(_SIGNS.findall(text)) // 2


@cache
def _orders() -> re.Pattern[str]:
    forms = json.loads(Path(__file__).with_name("remember_requests.json").read_text("utf-8"))
    fillers = rf"(?:[\s,]+(?:{forms['fillers']})(?=[\s,.:;!?…—–-]|$))*"
    step = r"(?!\s+(?:to|when|how|if|whether|what|where|who|why|(?:this|that|the) (?:rule|instruction|command))\b)"
    # a script without spaces has no end of a word to look for
    apart = r"(?=[\s,.:;!?…—–-]|$|[\u3040-\u30ff\u3400-\u9fff：。，、！])"
    links = rf"(?:\s*[:：,，;—–-]+\s*|\s+)?(?P<link>(?:{forms['links']})(?:\s+|(?<=['’])))?"
    return re.compile(rf"(?:{'|'.join(forms['orders'])}){apart}{step}{fillers}{links}", re.IGNORECASE)
