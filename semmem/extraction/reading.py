"""The user's side of turns as an extractor may see it: the user's own voice, without semmem's block, bounded."""

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache
from pathlib import Path

from msgspec import structs

from semmem.extraction.lasting.classifier import SIGNATURES
from semmem.extraction.voice.hearing import DETAIL, NOTHING_EMBEDDED, Embedded, Heard, heard, to_embed, units
from semmem.memory import Fact, Turn
from semmem.ports.embedder import Embedder
from semmem.ports.errors import EmbedderError
from semmem.ports.learning import Batch
from semmem.text.grounding import SourceText
from semmem.text.words import behind_courtesies

SUBJECT_CHARS_MAX = 200
_END = re.compile(
    r"[,;]\s|[，；]| (?:because|since|cause|as i|weil|denn|parce que|car|porque|perché|omdat|want|bo|ponieważ) ", re.I
)
_PIECE = re.compile(r"[,;–—，]")
_AND = re.compile(r"(?:^| )(?:both|and|und|et|y|e|sowie|as well as) |[和と]")
PIECES_MAX, PARTS_MAX = 20, 4
UNITS_PER_BATCH_MAX = 200
"""So many units of a batch are embedded; the others are heard by their words alone."""
UNHEARD = Embedded()
"""Told by words alone, since the embedder could not."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a message asks to be forgotten, and whether it asks to be kept out itself.

    "Forget that I'm vegetarian" is an order about a memory; "forget it", "I forgot" and "don't forget" are none. The
    forms are closed classes of ten languages (forget_requests.json). They say what is meant, not which memory: that is
    looked up (``unlearning.meant``), and where none is meant nothing goes.

    ``forget``: what shall be forgotten, in the user's words. ``rest``: the message without those orders, empty where
    it asks to be kept out. ``single``: it is one sentence, so that nobody else can speak in it."""

    rest: str
    forget: tuple[str, ...] = ()
    single: bool = False


def asked_of(text: str) -> Asked:
    """Linear in the length of the text; never raises."""
    forget: list[str] = []
    kept: list[str] = []
    end = 0
    found_units = units(text)
    for unit in found_units:
        said = text[unit.start : unit.end]
        if unit.quoted:
            continue
        pieces = [piece.strip() for piece in _PIECE.split(said)[:PIECES_MAX]]
        if any(_first("not_kept", piece) for piece in pieces):
            return Asked("")
        found = next(filter(None, (_first("requests", each) for each in (said, *pieces))), None)
        subject, cut = ("", 0) if found is None else _cut(found["s"])
        if found is not None and subject:
            forget += [part for part in _AND.split(subject) if part][:PARTS_MAX]
            kept.append(text[end : unit.start])
            end = unit.start + said.rfind(found.string) + (found.start("s") + cut if cut else len(found.string))
    if not forget:
        return Asked(text)
    return Asked("\n".join([*kept, text[end:].lstrip(" ,;.!?")]).strip(), tuple(forget), len(found_units) == 1)


def _first(name: str, said: str) -> re.Match[str] | None:
    """The first form of that name that the text has, behind as many words of courtesy as can be."""
    stages = [said[place:] for place in behind_courtesies(said)]
    return next((found for stage in stages for form in _forms()[name] if (found := form.match(stage))), None)


def _cut(said: str) -> tuple[str, int]:
    """What is meant, and where the sentence goes on to say something else, 0 where it does not."""
    end = _END.search(_without_tails(said))
    meant = said if end is None else said[: end.start()]
    return _without_tails(meant)[:SUBJECT_CHARS_MAX], 0 if end is None else end.end()


def _without_tails(said: str) -> str:
    (tails,) = _forms()["tails"]
    while (shorter := tails.sub("", said).rstrip(" .!?,;。！？，…'\"")) != said:
        said = shorter
    return said


@cache
def _forms() -> dict[str, tuple[re.Pattern[str], ...]]:
    """``requests``, what is ``not_kept``, and ``tails``, which stand behind a request and say nothing."""
    lists = json.loads(Path(__file__).with_name("forget_requests.json").read_text("utf-8"))
    ends = ((form, "" if form.endswith(".*") else r"[\s.!?。！？…]*") for form in lists["requests"])
    tail = rf"(?:[\s,]+|(?<=[\u3040-\u30ff\u3400-\u9fff]))(?:{'|'.join(lists['tails'])})[\s.!?。！？]*$"
    forms = {"requests": [f"{form}{end}$" for form, end in ends], "not_kept": lists["not_kept"], "tails": [tail]}
    return {name: tuple(re.compile(form, re.IGNORECASE) for form in some) for name, some in forms.items()}


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """What a turn asks to forget, in its words."""

    turn: Turn
    subject: str


@dataclass(frozen=True, slots=True)
class Read:
    """``shown``: the batch as an extractor sees it. ``said``: the words in it, which ground facts. ``forget``: what the
    user asks to be forgotten, in messages in which nobody else speaks; these orders are not in ``shown``, and nor is
    what the user asks to keep out. ``embedded``: what the voices were told by, for reading what is left of it again;
    ``UNHEARD`` where the embedder could not."""

    shown: Batch
    said: SourceText
    forget: tuple[ForgetRequest, ...] = ()
    embedded: Embedded = NOTHING_EMBEDDED

    @property
    def own_turns(self) -> list[Turn]:
        """Those in whose messages nobody else speaks, as far as can be told."""
        return [turn for turn in self.shown.turns if turn.id not in self.shown.doubted]

    def weighed(self, facts: Sequence[Fact]) -> list[Fact]:
        """The facts; those of doubted turns end and change nothing and do not stand; none of them says how to pay or
        reach somebody."""
        doubted = self.shown.doubted
        return [
            replace(fact, beside=True, standing=None) if fact.turn_id in doubted else fact
            for fact in facts
            if fact.turn_id not in doubted or not DETAIL.search(fact.content)
        ]


@dataclass(eq=False, repr=False)
class Reader:
    """Of one user text at most ``turn_chars_max`` characters are read (its beginning and its end). ``strip_block``
    removes semmem's own injected block from a text, ``hear`` what others say in it, by the units' words alone where
    ``embedder`` is missing, cannot, or is one that nothing was learnt for."""

    embedder: Embedder | None = None
    _: KW_ONLY
    strip_block: Callable[[str], str] = str
    hear: Callable[[str, Embedded], Heard] = heard
    turn_chars_max: int = 16_000

    async def read(self, batch: Batch) -> Read:
        """The batch as an extractor sees it, and whose words are in it."""
        embedded = await self._embedded([*batch.turns, *batch.context])
        return await asyncio.to_thread(self.read_with, batch, embedded)

    async def turns(self, turns: Sequence[Turn]) -> tuple[Turn, ...]:
        """Those turns in which the user said something, and what they said."""
        embedded = await self._embedded(turns)
        return await asyncio.to_thread(self._turns, turns, embedded)

    def read_with(self, batch: Batch, embedded: Embedded = NOTHING_EMBEDDED) -> Read:
        """Blocking; linear in the length of the texts."""
        found, context = [(turn, *self._heard(turn, embedded)) for turn in batch.turns], batch.context
        turns = _spoken((turn, asked) for turn, _, asked in found)
        mixed = frozenset(turn.id for turn, one, _ in found if one.mixed)
        doubted = frozenset(turn.id for turn, one, _ in found if not one.alone)
        before = self._turns(context, embedded)
        shown = replace(batch, turns=turns, context=before, mixed=mixed, doubted=doubted)
        orders = [(turn, asked) for turn, one, asked in found if one.alone or asked.single]
        forget = [ForgetRequest(turn, subject) for turn, asked in orders for subject in asked.forget]
        return Read(shown, SourceText(text_of(turns), text_of(before)), tuple(forget), embedded)

    def _turns(self, turns: Sequence[Turn], embedded: Embedded) -> tuple[Turn, ...]:
        return _spoken((turn, self._heard(turn, embedded)[1]) for turn in turns)

    def _heard(self, turn: Turn, embedded: Embedded) -> tuple[Heard, Asked]:
        one = self.hear(self._text(turn), embedded)
        return one, asked_of(one.text)

    def _text(self, turn: Turn) -> str:
        text, half = self.strip_block(turn.user_text), self.turn_chars_max // 2
        return text if len(text) <= self.turn_chars_max else f"{text[:half]}\n{text[-half:]}"

    async def _embedded(self, turns: Sequence[Turn]) -> Embedded:
        if self.embedder is None or self.embedder.signature not in SIGNATURES:
            return NOTHING_EMBEDDED
        texts = await asyncio.to_thread(lambda: [each for turn in turns for each in to_embed(self._text(turn))])
        chosen = list(dict.fromkeys(texts))[:UNITS_PER_BATCH_MAX]
        try:
            vectors = await asyncio.gather(*map(self.embedder.embed, chosen))
        except EmbedderError:
            return UNHEARD
        return Embedded(self.embedder.signature, dict(zip(chosen, vectors, strict=True)))


def _spoken(found: Iterable[tuple[Turn, Asked]]) -> tuple[Turn, ...]:
    return tuple(structs.replace(turn, user_text=asked.rest) for turn, asked in found if asked.rest.strip())


def text_of(turns: Iterable[Turn]) -> str:
    """Everything the user said in them."""
    return "\n".join(turn.user_text for turn in turns)
