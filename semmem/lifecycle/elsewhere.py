"""What an erasure reaches beside the store and the journal's database: what is in this process, and other replicas,
which hide what this one erases, as it does for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from typing import Protocol

from semmem.lifecycle.hiding_store import Marks
from semmem.memory import Forgetting, Memory
from semmem.ports.errors import SemmemError


class ReplicaRecords(Protocol):
    """Processes that share the database, and what each of them hides for the others. Raises JournalError."""

    async def pending_erasures(self, *, limit: int) -> list[Forgetting]:
        """What was begun and not finished by any process, longest ago first."""

    async def obey(self, what: Forgetting, turned_away: Sequence[str]) -> None:
        """This process neither shows nor writes it any more. ``turned_away``: turns of it that waited here, of which
        nothing shall be written later either."""

    async def not_obeyed(self, what: Forgetting) -> int:
        """How many of the other processes that are alive may still show or write it."""


class StillShown(SemmemError):
    """A replica that is alive has not said in time that it hides what is being erased."""


@dataclass(eq=False, repr=False)
class Elsewhere:
    """``is_own``: whether this process is at it itself. ``settle_s``: longest wait for writes under way. ``obey_s``:
    longest wait for the others, who are asked again every ``poll_s`` where no news comes. ``hidden_s``: how long what
    another one erased stays hidden here after it is gone, for those who read it before and write late."""

    records: ReplicaRecords
    marks: Marks
    here: InProcess
    _: KW_ONLY
    settle_s: float = 2.0
    obey_s: float = 5.0
    poll_s: float = 0.5
    hidden_s: float = 300.0
    pending_max: int = 1000
    _hidden: set[Forgetting] = field(init=False, default_factory=set)
    _said: set[Forgetting] = field(init=False, default_factory=set)
    _news: asyncio.Event = field(init=False, default_factory=asyncio.Event)

    def obeyed(self) -> None:
        self._news.set()

    async def obey(self, is_own: Callable[[Forgetting], bool]) -> None:
        """Hide what others are erasing, and say so; let go what they have finished. Raises JournalError. What they
        finished is dropped here once more: it may have been read again before the store was rid of it."""
        pending = {what for what in await self.records.pending_erasures(limit=self.pending_max) if not is_own(what)}
        for what in {what for what in self._hidden - pending if not is_own(what)}:
            self.here.forget(what)
            self.marks.release(what, after_s=self.hidden_s if what.takes_turns else 0.0)
        self._said &= pending
        self._hidden = pending  # from here on, so that each is let go again, whatever fails below
        turned_away = {}
        for what in pending - self._said:
            self.marks.hold(what)
            _, turned_away[what] = self.here.forget(what)
        for what in turned_away:
            await self.here.settled(what.scope.user, timeout_s=self.settle_s)
            await self.records.obey(what, turned_away[what])
            self._said.add(what)

    async def hide(self, what: Forgetting) -> None:
        """Return when every other process that is alive hides it. Raises StillShown and JournalError."""
        deadline = asyncio.get_running_loop().time() + self.obey_s
        while True:
            self._news.clear()
            if not await self.records.not_obeyed(what):
                return
            left_s = deadline - asyncio.get_running_loop().time()
            if left_s <= 0:
                raise StillShown
            with suppress(TimeoutError):
                async with asyncio.timeout(min(self.poll_s, left_s)):
                    await self._news.wait()


class InProcess(Protocol):
    """What this process holds of users apart from the store and the journal."""

    def forget(self, what: Forgetting) -> tuple[int, list[str]]:
        """Drop what is erased: how many waiting halves of turns, and of which turns nothing was written yet."""

    async def written(self, *, timeout_s: float) -> None:
        """Return when the turns that wait in memory are journalled, or after ``timeout_s``."""

    async def settled(self, user: str, *, timeout_s: float) -> None:
        """Return when writes that are under way for the user have ended, or after ``timeout_s``."""

    def forget_memories(self, user: str, memory_ids: Sequence[str] | None) -> None:
        """Drop statistics that wait to be written; None: all of the user's."""


class WaitingWords(Protocol):
    """What users said: what nobody has learnt from yet, and what is kept as it was said."""

    async def take_out(self, user: str, memories: Sequence[Memory], *, until: float) -> tuple[int, int]:
        """Take what states one of the memories out of what was said then or before: from how many places, and how many
        batches were ended for it. Raises JournalError and WorkError."""

    async def stating(self, passages: Sequence[Memory], memories: Sequence[Memory]) -> list[Memory]:
        """Which of the user's passages say one of the memories again. Raises WorkError."""
