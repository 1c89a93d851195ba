"""A journal that was left behind into one that goes on: what waits in it is learnt from once, by whoever goes on.

Written here first and marked there then. Cut off between the two, the next try writes the same turns again, which
changes nothing: a turn is known by its id. What was erased on either side is erased on both first."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Protocol

from semmem.backup import BackupError
from semmem.backup.erasures import MarkedJournal, erase_again
from semmem.memory import Memory, Scope, Turn
from semmem.ports.conversations import ConversationLimits, ConversationRecords, KeptConversation, KeptMessage
from semmem.ports.learning import ProvisionalRecords
from semmem.ports.recording import TurnClosed, TurnRecords

TURNS_IN_SLICE = 500
VERSIONS_IN_SLICE = 500
CONVERSATIONS_IN_SLICE = 20
PENDING_MAX = 100_000


@dataclass(slots=True)
class Adopted:
    """How many turns and answers were written (again, if they were before), of how many nothing may be learnt any more
    since they are erased, earlier versions, recorded conversations, and what was learnt of erasures."""

    turns: int = 0
    answers: int = 0
    versions: int = 0
    conversations: int = 0
    marks: int = 0
    pending_erasures: int = 0


class AdoptedJournal(MarkedJournal, ProvisionalRecords, Protocol):
    """The one that is left behind. Raises JournalError."""

    async def leased_until(self) -> float:
        """When the last lease of a batch or hold ends (seconds; 0: there is none): until then somebody may be at work
        on it."""

    async def unlearnt_halves(self, *, after: str, limit: int) -> tuple[list[Turn], list[TurnClosed], str | None]:
        """The next turns, by id, that were not learnt from to the end, in a batch or not, with their answers, and
        answers that are alone; and the last id, None when there were no more."""

    async def mark_adopted(self, turn_ids: Sequence[str], *, now: float) -> None:
        """Another journal has them: nobody learns from them here any more. Idempotent."""

    async def kept_versions(self, *, offset: int, limit: int) -> list[Memory]:
        """Earlier versions of memories, a page at a time."""

    async def kept_conversations(self, *, after: str, limit: int) -> list[tuple[KeptConversation, list[KeptMessage]]]:
        """The next by id, with all of their messages."""

    async def named_users(self) -> list[str]:
        """Who may have memories."""


class AdoptingJournal(MarkedJournal, TurnRecords, ProvisionalRecords, ConversationRecords, Protocol):
    """The one that goes on. Raises JournalError."""


@dataclass(eq=False, repr=False)
class Adoption:
    """From ``left`` into ``going_on``. ``progress`` is told lines for a person. ``limits``: of conversations there."""

    left: AdoptedJournal
    going_on: AdoptingJournal
    _: KW_ONLY
    clock: Callable[[], float]
    progress: Callable[[str], None]
    limits: ConversationLimits = field(default_factory=ConversationLimits)
    _done: Adopted = field(init=False, default_factory=Adopted)

    async def run(self) -> Adopted:
        """Raises BackupError while somebody may be at work on ``left``, and JournalError; run it again then."""
        wait_s = await self.left.leased_until() - self.clock()
        if wait_s > 0:
            raise BackupError(
                f"a batch in that journal is leased for {wait_s:.0f} more seconds: its semmem may be running."
                " Stop it, or wait until the lease is over"
            )
        await self._take_erasures()
        await self._take_versions()
        await self._take_conversations()
        after = ""
        while (last := await self._take_turns(after)) is not None:
            after = last
        return self._done

    async def _take_erasures(self) -> None:
        known = set(await self.going_on.marks())
        new = [mark for mark in await self.left.marks() if mark not in known]
        await self.going_on.add_marks(new)
        times = {mark.at for mark in new}
        scopes = [what for what in await self.going_on.erased_scopes() if what.at in times] if new else []
        pending = await self.left.pending_erasures(limit=PENDING_MAX)
        await erase_again(self.going_on, scopes, pending, now=self.clock())
        self._done.pending_erasures, self._done.marks = len(pending), len(new)

    async def _take_versions(self) -> None:
        for user in await self.left.named_users():
            await self.going_on.register_user(user)
        offset = 0
        while page := await self.left.kept_versions(offset=offset, limit=VERSIONS_IN_SLICE):
            for version in page:
                if not await self.going_on.erased_among([version]):
                    await self.going_on.keep_version(version)
                    self._done.versions += 1
            offset += len(page)

    async def _take_conversations(self) -> None:
        after = ""
        while page := await self.left.kept_conversations(after=after, limit=CONVERSATIONS_IN_SLICE):
            for kept, messages in page:
                put = await self.going_on.put_conversation(kept, messages, self.limits)
                self._done.conversations += put is not None
            after = page[-1][0].id
        await self.going_on.erase_marked()  # what was shown one of them may have come before it

    async def _take_turns(self, after: str) -> str | None:
        opened, closed, last = await self.left.unlearnt_halves(after=after, limit=TURNS_IN_SLICE)
        if last is None:
            return None
        await self.going_on.record(opened, closed)
        ids = sorted({turn.id for turn in opened} | {half.turn_id for half in closed})
        users = {turn.id: turn.scope.user for turn in opened}
        for noted in await self.left.provisional(ids):
            await self.going_on.note_provisional(noted.turn_id, [noted.memory_id])
            if noted.forgotten and noted.turn_id in users:
                await self.going_on.forget_memories(Scope(users[noted.turn_id]), [noted.memory_id])
        await self.going_on.erase_marked()
        await self.left.mark_adopted(ids, now=self.clock())
        self._done.turns += len(opened)
        self._done.answers += len(closed)
        self.progress(f"took over {self._done.turns} turns")
        return last
