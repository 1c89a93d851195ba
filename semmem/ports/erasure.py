"""What erasing needs of the journal's database."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from semmem.memory import Forgetting, Memory
from semmem.ports.memory_records import MemoryRecords


class ErasureRecords(MemoryRecords, Protocol):
    """Marks, remembers and erases. Every call is idempotent. Raises JournalError."""

    async def begin_erasure(
        self, what: Forgetting, *, now: float, turned_away: Sequence[str] = (), hold_s: float = 60.0
    ) -> tuple[str, Counter[str]]:
        """Mark what is erased, remember it until ``finish_erasure``, and erase its turns with all that hangs on them.
        Whoever is at work on them is cut short, and later halves are turned away, those of the turns named in
        ``turned_away`` at once. Returns a hold of the user for ``hold_s`` (empty: somebody is at work on something else
        of theirs) and counts: turns, batches, versions, statistics, requests, aliases."""

    async def finish_erasure(self, what: Forgetting, hold_id: str) -> None:
        """The store holds nothing of it any more either. Ends the hold."""

    async def pending_erasures(self, *, limit: int) -> list[Forgetting]:
        """What was begun and not finished by any process, longest ago first."""

    async def mark_memories(self, memories: Sequence[Memory], *, at: float, now: float | None = None) -> int:
        """It stays known, as digests of ids, that these were erased then, so that no older copy brings them back. Of
        the record of conversations the turns go that they were learnt from; how many messages those had. Answers that
        may repeat them are withheld. ``now``: when that is done, if later; no prompt is given them any more by then."""

    async def withhold_answers(self, user: str, memory_ids: Sequence[str], *, now: float) -> None:
        """Recorded answers that were shown one of these memories, of an erased scope of the user's, are put into no
        prompt any more, nor are those that may repeat them; also answers that were asked for until now and come later.
        """

    async def forget_requests(self, user: str, memory_ids: Sequence[str]) -> int:
        """What is kept of how those requests went in whose prompts one of these memories was, or might have been; how
        many there were. What comes later of a request from before the erasure is turned away."""

    async def forget_past(self, user: str, sessions: Iterable[str], *, now: float) -> None:
        """Sessions of which a memory was forgotten: what was said in them before ``now`` is in no summary any more."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What is kept of an erasure when it is done: digests of names, and the empty text for what it left open.
    ``scope``: user, project, agent, session. Without ``memory`` everything in the scope is erased that was said at
    ``at`` or before (seconds); with it that one memory, and ``turn`` is what it was learnt from. ``conversation`` is
    the id of one that was removed with what was said in it until then; nobody's scope is told with it."""

    scope: tuple[str, str, str, str]
    at: float
    memory: str = ""
    turn: str = ""
    conversation: str = ""


class KnownErasures(Protocol):
    """What this journal knows of erasures that are done, for what comes from a copy of earlier. Raises JournalError."""

    async def marks(self) -> list[Mark]:
        """All of them, for another journal."""

    async def add_marks(self, marks: Sequence[Mark]) -> None:
        """Take over what another journal knows. Nothing is erased yet. Idempotent; of two times the later stays."""

    async def erased_among(self, memories: Sequence[Memory]) -> set[str]:
        """The ids of those memories (all of one user) that are erased."""

    async def erased_scopes(self) -> list[Forgetting]:
        """The marks of scopes that are named in this journal, with their names."""

    async def erase_marked(self) -> Counter[str]:
        """Erase what this journal holds of single memories that are marked: their versions and statistics, and whole
        turns that they were learnt from, where those wait to be learnt from again; how many of each."""
