"""What is erased by its id or its type is taken out of the words that no batch has learnt from yet.

Turns are left alone by such an erasure, and one that waits may say the same again. Its words are looked at while the
memory's are at hand, so that nothing has to be kept to know them again. A clause, or else a whole sentence, states a
memory when it holds all of the memory's telling words, names and numbers and does not deny it. A clause also does when
the trained judge is sure that the two say the same. What else the turn says stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import groupby
from typing import Protocol

from semmem.extraction.comparing import Open, PairJudge
from semmem.extraction.contradiction.verdict import Verdict
from semmem.extraction.lasting.clauses import clauses, squeezed
from semmem.extraction.lasting.features import Clause
from semmem.extraction.screen import same_text
from semmem.memory import Memory, Turn
from semmem.ports.embedder import Embedder
from semmem.ports.errors import EmbedderError, WorkLost, WorkTooSlow
from semmem.ports.text_work import TextWork
from semmem.text.grounding import SourceText, content_words, numbers
from semmem.text.quoting import unquoted

CLAUSES_MAX = 2_000
"""Of one turn. An ordinary sentence has two."""
_JOINTS = " ,;:\n"

Place = tuple[int, int]
"""Where a piece of a text begins and ends."""


class UnlearntTurns(Protocol):
    """Turns from which no batch has learnt yet, and their words. Raises JournalError."""

    async def unlearnt(self, user: str, *, until: float, limit: int) -> list[Turn]:
        """Those of the user opened then or before, in a batch or not, the newest ``limit`` of them, newest first."""

    async def reword(self, user: str, edits: Mapping[str, tuple[str, str]], memory_ids: Sequence[str]) -> int:
        """Put other words in the place of a turn's, in one transaction: by its id what it says, and what it shall.

        A turn that says something else by now, or was learnt from, is left alone. The batches that have one of them in
        their hands end, and may write no more, nor keep versions of these memories; their turns wait for another.
        Returns how many those were."""


@dataclass(frozen=True, slots=True)
class Near:
    """A clause that shares words with some of the statements, by their places in the list."""

    place: Place
    text: str
    statements: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Restated:
    """Where a text states something, and where it may. Places are in ``text``, which has single spaces."""

    text: str
    stated: tuple[Place, ...] = ()
    near: tuple[Near, ...] = ()


@dataclass(eq=False, repr=False)
class WaitingWords:
    """``judge`` is asked about at most ``judged_max`` clauses of one erasure. The newest ``turns_max`` turns are looked
    at, each within ``budget_s`` seconds of processor time."""

    records: UnlearntTurns
    embedder: Embedder
    judge: PairJudge
    work: TextWork
    _: KW_ONLY
    turns_max: int = 200
    judged_max: int = 50
    budget_s: float = 1.0

    async def take_out(self, user: str, memories: Sequence[Memory], *, until: float) -> tuple[int, int]:
        """Take what states one of the memories out of what the user said then or before and nobody has learnt from.

        How many places that were, and how many batches were ended for it. Raises JournalError and WorkUnavailable."""
        turns = await self.records.unlearnt(user, until=until, limit=self.turns_max) if memories else []
        number, left, edits = 0, self.judged_max, {}
        for turn in turns:
            # What is said in one project is never the memory of another.
            project = turn.scope.project or ""
            statements = sorted({unquoted(each.content) for each in memories if (each.project or "") == project})
            found = await self._restated(turn.user_text, statements)
            if found is None:  # a text that cannot be read must not forbid an erasure
                continue
            asked = found.near[:left]
            left -= len(asked)
            places = {*found.stated, *[near.place for near in asked if await self._says_one(near, statements)]}
            if places:
                edits[turn.id] = turn.user_text, without(found.text, places)
                number += len(places)
        ids = sorted({each.id for each in memories})
        return number, await self.records.reword(user, edits, ids) if edits else 0

    async def stating(self, passages: Sequence[Memory], memories: Sequence[Memory]) -> list[Memory]:
        """Which of the user's passages say one of the memories again. Of a passage that cannot be read in time that is
        taken for granted: what is erased must not come back. Raises WorkUnavailable."""
        again, left = list[Memory](), self.judged_max
        for passage, words_said, statements in await asyncio.to_thread(_overlapping, passages, memories):
            found = await self._restated(words_said, statements)
            asked = found.near[:left] if found is not None and not found.stated else ()
            left -= len(asked)
            if found is None or found.stated or any([await self._says_one(near, statements) for near in asked]):
                again.append(passage)
        return again

    async def _restated(self, text: str, statements: Sequence[str]) -> Restated | None:
        try:
            return await self.work.run(restated, text, statements, budget_s=self.budget_s)
        except (WorkTooSlow, WorkLost, RuntimeError):
            return None

    async def _says_one(self, near: Near, statements: Sequence[str]) -> bool:
        """As far as the judge sees. Without vectors it sees nothing."""
        told = [statements[index] for index in near.statements[: self.judge.pairs_max]]
        try:
            said = await self.embedder.embed(near.text)
            known = [Open(each, await self.embedder.embed(each)) for each in told]
        except EmbedderError:
            return False
        return any(each.verdict is Verdict.SAME for each in await self.judge.judged(near.text, said, known))


def restated(text: str, statements: Sequence[str]) -> Restated:
    """Where the text states one of the statements, and where it may."""
    plain = squeezed(text)
    whole, folded = SourceText(plain), same_text(plain)
    told = {index: each for index, each in enumerate(statements) if whole.overlap(each) or same_text(each) in folded}
    stated: list[Place] = []
    near: list[Near] = []
    parts = clauses(plain, clauses_max=CLAUSES_MAX) if told else []
    for _, of_sentence in groupby(parts, key=lambda clause: clause.sentence):
        sentence = _led(list(of_sentence))
        own = [(place, text) for place, text in sentence if _states(text, told)]
        ends = (sentence[0][0][0], sentence[-1][0][1])
        stated += [place for place, _ in own] or ([ends] if _states(plain[slice(*ends)], told) else [])
        for place, text in sentence:
            ground = SourceText(text)
            shared = tuple(index for index, each in told.items() if ground.overlap(each))
            if shared and (place, text) not in own:
                near.append(Near(place, text, shared))
    return Restated(plain, tuple(stated), tuple(near))


def without(text: str, places: Collection[Place]) -> str:
    """The text with the end of a paragraph in place of each: what stands around it must not become one sentence."""
    starts = [0, *[end for _, end in sorted(places)]]
    ends = [*[start for start, _ in sorted(places)], len(text)]
    kept = (text[start:end].strip(_JOINTS) for start, end in zip(starts, ends, strict=True))
    return "\n\n".join(piece for piece in kept if piece)


def _states(piece: str, told: Mapping[int, str]) -> bool:
    ground, bare = SourceText(piece), same_text(piece)
    return any(bare == same_text(each) or ground.grounds(each, share_min=1.0) for each in told.values())


def _led(sentence: Sequence[Clause]) -> list[tuple[Place, str]]:
    """The clauses of a sentence; what has no telling word, such as "as I said", goes with the one that it leads to."""
    found: list[tuple[Place, str]] = []
    start = sentence[0].start
    for part in sentence:
        if part is sentence[-1] or content_words(part.text) or numbers(part.text):
            found.append(((start, part.end), part.text))
            start = part.end
    return found


def _overlapping(passages: Sequence[Memory], memories: Sequence[Memory]) -> list[tuple[Memory, str, list[str]]]:
    """The passages that share a telling word with a memory of their project, with their words and what those say. For
    a thread: a user may have some ten thousand."""
    found = []
    for passage in passages:
        said = unquoted(passage.content)
        told = sorted({unquoted(each.content) for each in memories if each.project == passage.project})
        ground = SourceText(said)
        if any(ground.overlap(each) for each in told):
            found.append((passage, said, told))
    return found
