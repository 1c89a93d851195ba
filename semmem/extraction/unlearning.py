"""Forgets what the user asks to forget, as far as it was told before.

Words that no batch has learnt from yet go first, then passages that say it, and the memories last, so that another try
after a crash anywhere in it finds them again. A memory stays in its history and can be had back; a passage is erased.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from itertools import groupby
from typing import Protocol

import numpy as np

from semmem.extraction.candidate import Placed, reconsidered
from semmem.extraction.comparing import Open, PairJudge
from semmem.extraction.contradiction.verdict import Verdict
from semmem.extraction.dedup import was_replaced
from semmem.extraction.lasting.clauses import clauses, squeezed
from semmem.extraction.lasting.features import Clause
from semmem.extraction.reading import ForgetRequest
from semmem.extraction.screen import same_text
from semmem.extraction.settling import rewritten_by
from semmem.extraction.storing import Storing
from semmem.lifecycle.erasure import ErasurePending
from semmem.lifecycle.quota import all_passages
from semmem.lifecycle.spared import as_settled, without
from semmem.memory import (
    ASKED_TO_FORGET,
    CHANGES_STANDING,
    SUPERSEDED_WHY,
    UNDONE,
    Memory,
    MemoryStatus,
    MemoryType,
    Scope,
    Turn,
    Vector,
)
from semmem.ports.embedder import Embedder
from semmem.ports.errors import EmbedderError, WorkLost, WorkTooSlow
from semmem.ports.learning import ProvisionalRecords
from semmem.ports.store import Store, list_all
from semmem.ports.text_work import TextWork
from semmem.text.grounding import SourceText, content_words, numbers
from semmem.text.quoting import unquoted
from semmem.text.words import is_unspaced

MEANT_MIN = 0.5
"""The nearest memory is meant from this sum on: its cosine with what is asked, half the share of the words that it
holds (what few memories hold counts more), and how far the next one is behind it."""
WHOLE_MIN = 0.999
MEANT_MAX = 20
"""More memories than these go by no single sentence."""

Erase = Callable[[Scope, str], Awaitable[object]]
"""Erases one memory, of whatever type."""


@dataclass(eq=False, repr=False)
class Unlearning:
    """Raises StoreError, JournalError, EmbedderError and WorkError. Whoever calls it holds the user."""

    store: Store
    records: ProvisionalRecords
    storing: Storing
    waiting: WaitingWords
    erase: Erase

    async def obey(self, asked: Sequence[ForgetRequest], *, hold: str, now: float) -> list[tuple[Placed, Memory]]:
        """Let go what is meant; each memory that went. Safe to repeat: what was had back since stays."""
        gone: list[tuple[Placed, Memory]] = []
        for request in asked:
            known = await self._known(request.turn)
            if not known:
                continue
            vector = await self.storing.embedder.embed(request.subject)
            these = await asyncio.to_thread(meant, request.subject, vector, known)
            going = [memory for memory in these if not await self._came_back(memory, request.turn)]
            gone += [(await self._let_go(memory, request.turn, hold, now), memory) for memory in going]
        return gone

    async def _known(self, turn: Turn) -> list[Memory]:
        """What was told before the turn and can be seen from its project."""
        return [
            memory
            for memory in await list_all(self.store, Scope(turn.scope.user))
            if memory.status is MemoryStatus.ACTIVE
            and memory.said_at <= turn.opened_at
            and memory.source.turn != turn.id
            and (not turn.scope.project or not memory.project or memory.project == turn.scope.project)
        ]

    async def _came_back(self, memory: Memory, turn: Turn) -> bool:
        versions = await self.records.versions(Scope(memory.user), memory.id)
        went = [version for version in versions if version.metadata.get(SUPERSEDED_WHY) == ASKED_TO_FORGET]
        return any(version.updated_at >= turn.opened_at for version in went)

    async def _let_go(self, memory: Memory, turn: Turn, hold: str, now: float) -> Placed:
        told = [memory, *await self.records.versions(Scope(memory.user), memory.id)]
        before = math.nextafter(turn.opened_at, 0.0)
        await self.waiting.take_out(memory.user, told, until=before)
        for passage in await self._saying(told, until=before):
            with suppress(ErasurePending):  # it is hidden, and will be finished
                await self.erase(Scope(memory.user), passage.id)
        held = as_settled(await self.storing.dedup.stored(memory.user, memory.id) or memory)
        return await self.storing.dedup.retiring.retire(held, reconsidered(held, hold, now), ASKED_TO_FORGET)

    async def _saying(self, told: Sequence[Memory], *, until: float) -> list[Memory]:
        passages = await all_passages(self.store, told[0].user)
        kept = [one for one in passages if one.type is MemoryType.PASSAGE and one.said_at <= until]
        turns = {memory.source.turn for memory in told} - {""}
        others = [one for one in kept if one.source.turn not in turns]
        return [one for one in kept if one.source.turn in turns] + await self.waiting.stating(others, told)


def meant(subject: str, vector: Vector, known: Sequence[Memory]) -> list[Memory]:
    """Which memories are meant: all that hold every telling word, else the one that is nearest; none where nothing is
    near enough, or two are alike."""
    said = [content_words(unquoted(memory.content)) for memory in known]
    telling = {word: 1.0 / max(1, sum(word in words for words in said)) for word in content_words(subject)}
    total = sum(telling.values())
    if not total:
        return []
    shares = [sum(telling[word] for word in telling.keys() & words) / total for words in said]
    if whole := [memory for memory, share in zip(known, shares, strict=True) if share > WHOLE_MIN]:
        return whole if len(whole) <= MEANT_MAX else []
    held = [memory.embedding for memory in known]
    nearness = [0.0 if each is None or each.shape != vector.shape else float(np.dot(vector, each)) for each in held]
    scores = [cosine + share / 2 for cosine, share in zip(nearness, shares, strict=True)]
    if any(map(is_unspaced, telling)):  # which the shipped embedding model does not read
        scores = [score if share else 0.0 for score, share in zip(scores, shares, strict=True)]
    best = int(np.argmax(scores))
    gap = scores[best] - max([*scores[:best], *scores[best + 1 :]], default=0.0)
    return [known[best]] if scores[best] + gap >= MEANT_MIN else []


class NothingToUndo(Exception):
    """No standing memory ended or changed with this one, or it was changed, replaced or undone since."""


@dataclass(frozen=True, slots=True)
class Undone:
    """``memory``: as it is now. ``restored``: how many other memories are retrieved again."""

    memory: Memory
    restored: int


@dataclass(eq=False, repr=False)
class Undoing:
    """One step back, for the user: a standing memory that ended or changed is again as it was, and what they asked to
    forget is known again. A memory that had another value says that one again. One that took the place of others is
    superseded, and those are retrieved again. Nothing is lost: what was undone stays in the history. Raises StoreError,
    JournalError and EmbedderError. Whoever calls it holds the user."""

    store: Store
    records: ProvisionalRecords
    storing: Storing

    def __post_init__(self) -> None:
        self._retiring = self.storing.dedup.retiring

    async def undo(self, held: Memory, *, hold: str, now: float) -> Undone | None:
        """None where the memory was erased meanwhile. Safe to repeat after a crash anywhere in it. Raises
        NothingToUndo, before anything is written."""
        user = Scope(held.user)
        if held.metadata.get(SUPERSEDED_WHY) == ASKED_TO_FORGET:
            with_vector = held if held.embedding is not None else await self.storing.embedded(held)
            is_back = await self._retiring.have_back(held, reconsidered(with_vector, hold, now))
            memory = await self.store.get(user, held.id) if is_back else None
            return None if memory is None else Undone(memory, 0)
        if held.status is not MemoryStatus.ACTIVE or not held.changes_standing:
            raise NothingToUndo
        versions = await self.records.versions(user, held.id)
        before = await asyncio.to_thread(_before, held, versions)
        if before is None and not await self._replaces(held):
            raise NothingToUndo
        # As it is known again, not as a change that could be undone in its turn: this was the one step.
        known = None if before is None else as_settled(without(before, CHANGES_STANDING))
        said = None if known is None else await self.storing.embedded(known)
        changed = [each for each in versions if before is None or each.version > before.version] + [held]
        new = reconsidered(held if held.embedding is not None else await self.storing.embedded(held), hold, now)
        for turn in sorted({each.source.turn for each in changed}):  # first: its batch must not learn it once more
            await self.records.shut(turn, held.id)
        # What was replaced by what it said before stays so.
        since = 0.0 if before is None else min(each.updated_at for each in changed)
        restored = await self._retiring.reinstate(held.id, new, since=since)
        if said is None:  # nothing stands for it: whoever erases what is back must not bring this back
            placed = await self._retiring.retire(as_settled(held), new, UNDONE)
        else:
            placed = await self._retiring.give_back(held, said, new, UNDONE)
        memory = await self.store.get(user, held.id) if placed.removals else None
        return None if memory is None else Undone(memory, len(restored))

    async def _replaces(self, held: Memory) -> bool:
        """Whether there is something that it took the place of, or did until an earlier try was cut off."""
        user = Scope(held.user)
        memories = await list_all(self.store, user, vectors=False)
        if any(was_replaced(memory, held.id) for memory in memories):
            return True
        later = [each for each in memories if each.status is MemoryStatus.ACTIVE and each.updated_at >= held.updated_at]
        pasts = [await self.records.versions(user, each.id) for each in later if each.version > 1]
        return any(past and was_replaced(past[-1], held.id) for past in pasts)


def _before(held: Memory, versions: Sequence[Memory]) -> Memory | None:
    """What the memory said before the change; None where it began with it. A batch may have put the change in other
    words since, by another turn that says it as well."""
    for old in reversed(versions):
        is_rewritten = old.changes_standing and rewritten_by(old.content, {held.id: held.content}) is not None
        if old.source.turn != held.source.turn and not is_rewritten:
            return old
    return None


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
        """Put other words in the place of a turn's, in one transaction: by its id what it says, and what it shall. A
        turn that says something else by now, or was learnt from, is left alone. The batches that have one of them in
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
    """What is erased by its id or its type is taken out of the words that no batch has learnt from yet.

    Turns are left alone by such an erasure, and one that waits may say the same again. Its words are looked at while
    the memory's are at hand, so that nothing has to be kept to know them again. A clause, or else a whole sentence,
    states a memory when it holds all of the memory's telling words, names and numbers and does not deny it. A clause
    also does when the trained judge is sure that the two say the same. What else the turn says stays.

    ``judge`` is asked about at most ``judged_max`` clauses of one erasure. The newest ``turns_max`` turns are looked
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
        """Take what states one of the memories out of what the user said then or before and nobody has learnt from. How
        many places that were, and how many batches were ended for it. Raises JournalError and WorkUnavailable."""
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
                edits[turn.id] = turn.user_text, cut_out(found.text, places)
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


def cut_out(text: str, places: Collection[Place]) -> str:
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
