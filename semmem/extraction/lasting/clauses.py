"""Cuts a message into sentences and clauses, as they are written, in any language. Linear in the text's length."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from semmem.extraction.lasting.elsewhere import BEFORE_OWN
from semmem.extraction.lasting.lead_ins import lead_in

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
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:mr|mrs|ms|dr|st|prof|vs|approx|nr|bzw|ca|etc|e\.g|i\.e|z\.b|a\.m|p\.m|[a-z]|\d{1,3})\.$", re.I
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
    | [ ][-–—]{{1,3}}[ ] | (?<=\w)[–—](?=\w) | [ ]?[()（）][ ]?
    | [ ](?={_JOINT}[ ]{_PRONOUN}[ ])
    | [ ](?=(?:and|but|so)[ ]{_ASKING}[ ])
    | [ ](?=(?:that|because|since|so[ ]that)[ ]{_PRONOUN}[ ])
    | [ ](?={BEFORE_OWN})
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ITEM = re.compile(r"\s*(?:[-*•·]|\d{1,2}[.)])\s+")
LINE_CHARS_READ = 200
"""Of a line's end so much is looked at for a colon."""
_BLANKS = re.compile(r"[^\S\n]+")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class Clause:
    """``text`` as written, white space made single. ``sentence`` is the number of the one it belongs to; ``start`` and
    ``end`` its place in the message. ``asked``: its sentence ends with a question mark. ``first`` and ``last`` of its
    sentence. ``led``: a colon stands before it in its sentence. ``to_keep``: the user asks to remember it.
    ``introduced``: its line stands below one that ends with a colon. ``listed``: its line is an item of a list."""

    text: str
    sentence: int
    start: int
    end: int
    asked: bool
    first: bool
    last: bool
    led: bool
    introduced: bool
    listed: bool
    to_keep: bool = False


def squeezed(text: str) -> str:
    """The text with single spaces, which ``clauses`` expects."""
    return _BLANKS.sub(" ", text)


def clauses(text: str, *, clauses_max: int = CLAUSES_MAX) -> list[Clause]:
    """The clauses of a squeezed text, in order."""
    found: list[Clause] = []
    for number, (start, end, line) in enumerate(_sentences(text)):
        asked = text[start:end].rstrip("\"'”’)） ").endswith(("?", "？"))
        lead = lead_in(text, start, end, asked=asked)
        colon = text.find(":", lead.said, end)
        places = _places(text, lead.said, end)
        if lead.to_keep and asked and [first for first, _ in places] == [lead.said]:
            asked, places = False, [(lead.said, lead.said + len(text[lead.said : places[0][1]].rstrip(" ?？")))]
        found += [
            Clause(
                " ".join(text[first:last].split()),
                number,
                lead.written if first == lead.said else first,
                last,
                asked,
                index == 0,
                index == len(places) - 1,
                0 <= colon < first,
                line.introduced,
                line.listed,
                lead.to_keep and first == lead.said,
            )
            for index, (first, last) in enumerate(places)
        ]
    half = clauses_max // 2
    return found if len(found) <= clauses_max else found[: clauses_max - half] + found[-half:]


@dataclass(frozen=True, slots=True)
class _Line:
    introduced: bool
    listed: bool


def _sentences(text: str) -> Iterator[tuple[int, int, _Line]]:
    start, introduced = 0, False
    for written in text.split("\n"):
        item = _ITEM.match(written)
        line = _Line(introduced, item is not None)
        begin = start + (item.end() if item else 0)
        yield from ((first, end, line) for first, end in _ends(text, begin, start + len(written)))
        introduced = introduced or written[-LINE_CHARS_READ:].rstrip().endswith((":", "："))
        start += len(written) + 1


def _ends(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the sentences of one line begin and end."""
    for match in _END.finditer(text, start, end):
        if match.start() > start and not _ABBREVIATION.search(text, max(start, match.start() - 8), match.start()):
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
    return len(piece.split()) < WORDS_MIN and len(_WIDE.findall(piece)) < WIDE_MIN
