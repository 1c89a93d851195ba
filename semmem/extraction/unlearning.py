"""Forgets what the user asks to forget, as far as it was told before.

Words that no batch has learnt from yet go first, then passages that say it, and the memories last, so that another try
after a crash anywhere in it finds them again. A memory stays in its history and can be had back; a passage is erased.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from semmem.extraction.candidate import Placed, reconsidered
from semmem.extraction.dedup import was_replaced
from semmem.extraction.reading import ForgetRequest
from semmem.extraction.settling import rewritten_by
from semmem.extraction.storing import Storing
from semmem.extraction.waiting_words import WaitingWords
from semmem.lifecycle.erasure import ErasurePending
from semmem.lifecycle.passages import listed
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
from semmem.ports.learning import ProvisionalRecords
from semmem.ports.store import Store, list_all
from semmem.text.grounding import content_words
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
        passages = [one for one in await listed(self.store, told[0].user) if one.type is MemoryType.PASSAGE]
        kept = [one for one in passages if one.said_at <= until]
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
    scores = [_cosine(vector, memory) + share / 2 for memory, share in zip(known, shares, strict=True)]
    if any(map(is_unspaced, telling)):  # which the shipped embedding model does not read
        scores = [score if share else 0.0 for score, share in zip(scores, shares, strict=True)]
    best = int(np.argmax(scores))
    gap = scores[best] - max([*scores[:best], *scores[best + 1 :]], default=0.0)
    return [known[best]] if scores[best] + gap >= MEANT_MIN else []


def _cosine(vector: Vector, memory: Memory) -> float:
    held = memory.embedding
    return 0.0 if held is None or held.shape != vector.shape else float(np.dot(vector, held))


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
    forget is known again.

    A memory that had another value says that one again. One that took the place of others is superseded, and those are
    retrieved again. Nothing is lost: what was undone stays in the history. Raises StoreError, JournalError and
    EmbedderError. Whoever calls it holds the user."""

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
