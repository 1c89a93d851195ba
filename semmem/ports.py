"""What the core needs from the outside, as small protocols, and the errors that may come through them.

    SemmemError
    ├── StoreError            the memory store failed
    │   ├── StoreUnavailable  it cannot be reached, or is closed
    │   │   ├── StoreDamaged  a file of it cannot be read; the message names it and the remedy
    │   │   └── StoreFull     it has no room for a write; nothing was changed, reads go on
    │   ├── StoreMismatch     its data was made with other settings: waiting will not help
    │   ├── StoreTimeout      it did not answer within the deadline
    │   ├── StoreRefused      it will never take this memory: another try will not help
    │   └── Erased            what was to be written was said before its scope was erased
    ├── JournalError          the journal failed (locked, full, unreadable)
    ├── EmbedderError         no vector could be made
    ├── ModelError            a language model, or a reranker, failed
    │   ├── ModelUnavailable  unreachable, timeout, 429, 5xx, circuit open: worth another try
    │   └── ModelRefused      any other 4xx, or an answer that is not an answer: another try will not help
    └── WorkError             reading a text came to no end
        ├── WorkTooSlow       it took more time than it was given, and was stopped
        ├── WorkLost          whoever did it died of it
        └── WorkUnavailable   nobody is there to do it: worth another try

Every backend maps its third party's errors onto these in one place. Nothing else crosses a port, except
``asyncio.CancelledError`` and programming errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from semmem.memory import Fact, Hit, Memory, MemoryType, Message, Scope, Turn, Vector

T = TypeVar("T")


class SemmemError(Exception):
    """Every expected failure of something semmem depends on."""


class StoreError(SemmemError):
    """The memory store failed."""


class StoreUnavailable(StoreError):
    """The memory store cannot be reached."""


class StoreDamaged(StoreUnavailable):
    """A file of the embedded store cannot be read. The message names files and the remedy, no content."""


class StoreFull(StoreUnavailable):
    """The store cannot write: disk full, quota, read-only. The write changed nothing, and reads go on."""


class StoreMismatch(StoreError):
    """The existing data was made with other settings than those configured."""


class StoreTimeout(StoreError):
    """The memory store did not answer within its deadline."""


class Erased(StoreError):
    """Nothing was written: the memory was said before its scope was erased."""


class StoreRefused(StoreError):
    """The memory store will never take this memory. ``field`` says what of it; the message never shows content."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field} {why}")
        self.field = field


class JournalError(SemmemError):
    """The journal failed."""


class EmbedderError(SemmemError):
    """No vector could be made for a text."""


class ModelError(SemmemError):
    """A language model failed."""


class ModelUnavailable(ModelError):
    """The model cannot answer now; the same call may succeed later."""


class ModelRefused(ModelError):
    """The model will not answer this call, now or later."""


class WorkError(SemmemError):
    """Work on a text came to no end."""


class WorkTooSlow(WorkError):
    """It took longer than it was given, and was stopped."""


class WorkLost(WorkError):
    """It ended whoever did it."""


class WorkUnavailable(WorkError):
    """Nobody can do it now; the same call may succeed later."""


# --- store -----------------------------------------------------------------------------------------------------------


class Store(Protocol):
    """Keeps memories and finds them by vector.

    Every call is bound to a scope and checks it inside: a memory of another user is never returned, changed,
    counted or removed, whatever id is asked for. ``scope.project``, ``scope.agent`` and ``scope.session`` narrow
    reads when given. Only the highest version of a memory id is ever visible.
    """

    async def open(self) -> None:
        """Connect and make ready. Raises StoreUnavailable when waiting may help, StoreMismatch when the existing data
        does not fit the configuration, another StoreError for what waiting will not mend either."""

    async def close(self) -> None:
        """Release everything. Idempotent."""

    async def put(self, scope: Scope, memory: Memory) -> None:
        """Write one version of a memory; it replaces lower versions of the same id. Putting it again changes nothing.

        Raises StoreRefused for what is too long, not text or not JSON (``semmem.storable``), and StoreError when
        ``memory.user`` is not ``scope.user`` or the embedding is not usable.
        """

    async def search(
        self,
        scope: Scope,
        vector: Vector,
        *,
        limit: int,
        now: float,
        types: Sequence[MemoryType] = (),
        fresh: bool = False,
    ) -> list[Hit]:
        """The nearest active, unexpired memories, best first, ``score`` = ``cosine``.

        ``types`` empty means all. ``fresh`` asks to see every write that finished before the call (it may wait for
        it: never on the request path); without it a write may take a moment to show.
        """

    async def get(self, scope: Scope, memory_id: str) -> Memory | None:
        """One memory of any status, or None when this scope has none with that id."""

    async def list(
        self, scope: Scope, *, types: Sequence[MemoryType] = (), limit: int = 100, offset: int = 0
    ) -> list[Memory]:
        """Memories of any status, newest ``created_at`` first (ties by id)."""

    async def forget(self, scope: Scope, memory_id: str) -> bool:
        """Remove every version of one memory. False when there was none."""

    async def forget_scope(
        self, scope: Scope, *, types: Sequence[MemoryType] = (), said_until: float | None = None
    ) -> int:
        """Remove every memory of the scope, until a read that sees every write finds none; how many there were.

        ``said_until``: only those that were said then or before.
        """

    async def count(self, scope: Scope, *, types: Sequence[MemoryType] = ()) -> int:
        """How many memories (not versions) the scope has, of any status."""

    async def health(self) -> None:
        """One cheap round trip. Raises StoreError when the store does not answer."""


class Sweepable(Protocol):
    """What only housekeeping asks of a store: the calls that look at every user's memories. Raises StoreError."""

    async def expired(self, now: float, *, limit: int) -> Sequence[tuple[str, str]]:
        """(user, memory id) of memories whose time is over; of some a newer version may live on."""

    async def sweep(self, now: float, *, expired: bool = True) -> int:
        """Remove rows that no read shows (lower versions and, when asked, expired memories); how many."""


class Purgeable(Protocol):
    """What was removed also leaves the files."""

    async def purge(self) -> bool:
        """Rewrite what the files still keep of removed rows; reads go on meanwhile.

        False when that is not in this process's hands (a server removes rows when it compacts). Killed at any moment
        it loses nothing else. Raises StoreError or JournalError when it could not be done; try again later.
        """


class DiskBound(Protocol):
    """A store that needs room on a disk of this machine."""

    async def check_room(self) -> None:
        """Raises StoreFull when nothing can be written now."""


# --- embedder --------------------------------------------------------------------------------------------------------


class Embedder(Protocol):
    """Turns texts into vectors, off the event loop."""

    @property
    def dimension(self) -> int:
        """Length of every vector."""

    @property
    def signature(self) -> str:
        """Source, model and dimension; vectors of different signatures are not comparable."""

    async def open(self) -> None:
        """Load the model. Raises EmbedderError."""

    async def close(self) -> None:
        """Release the model. Idempotent."""

    async def embed(self, text: str) -> Vector:
        """The vector of one text. Raises EmbedderError."""


# --- journal ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TurnClosed:
    """The second half of a turn: how the answer ended.

    ``status`` is ``answered``, ``answer_lost`` (incomplete, not 2xx, unreadable), or ``refused`` (4xx or filtered:
    nothing may be learnt from this turn), or ``continues`` (an answer that only calls a tool: the turn stays open).
    ``answer`` is given only with ``answered``. ``answer_id`` is the API's name for the answer, if it has one.

    ``declined`` and ``erased`` are of no turn, and ``turn_id`` is the bare place of a message, ``<message
    id>.<ordinal>``: it was seen and is not to be kept, and the answer to it is not given; or it was said at
    ``closed_at``, and its turn was erased before it was written.
    """

    turn_id: str
    status: str
    closed_at: float
    answer: str | None = None
    finish_reason: str | None = None
    answer_id: str | None = None


@dataclass(frozen=True, slots=True)
class SaidBefore:
    """Where a message stood in its conversation when it was journalled, or ``declined``, and when that was first."""

    message_id: str
    ordinal: int
    at: float
    declined: bool = False


@dataclass(frozen=True, slots=True)
class BatchRules:
    """When a session's turns become a batch. Seconds unless said otherwise.

    A turn is ready when it is closed or was opened ``answer_wait_s`` ago. A session is due when ``size`` ready turns
    wait, or all waiting turns are ready and it was idle for ``idle_s``, or its end was asked for, or ready turns wait
    from before it was cut.
    """

    size: int = 10
    context_turns: int = 5
    idle_s: float = 300.0
    answer_wait_s: float = 60.0
    lease_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Batch:
    """Turns of one session to learn from, leased to one worker.

    ``trigger`` is ``size``, ``idle``, ``end`` or ``drift``. ``context`` are the turns before them: known already, never
    a source. ``facts`` is what an earlier try extracted (None when none did), and ``applied`` how many of those are
    already stored. ``attempt`` counts from 1.
    """

    id: str
    scope: Scope
    turns: tuple[Turn, ...]
    context: tuple[Turn, ...]
    trigger: str
    attempt: int
    facts: tuple[Fact, ...] | None = None
    applied: int = 0


@dataclass(frozen=True, slots=True)
class WaitingSession:
    """A session of which turns wait; ``newest_at`` is when the newest of them was opened."""

    user: str
    session: str
    newest_at: float


class Journal(Protocol):
    """The durable record of turns and of what became of them. Several processes may share one.

    All writes are idempotent. Raises JournalError.
    """

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def record(self, opened: Sequence[Turn], closed: Sequence[TurnClosed]) -> None:
        """Commit halves of turns, in one transaction, in any order, any number of times.

        A closed half without an opened one waits for it. The first opened half and the first ``answered`` close win.
        ``refused`` wins over ``answer_lost``, and ``answered`` over both: a request that was throttled, tried again
        and answered is a turn like any other. What was said before its scope was erased is turned away, whenever it
        comes.
        """

    async def session_start(self, user: str, session_key: str, *, seen_since: float) -> float | None:
        """When the session with this derived key began, if one of its turns was opened at or after ``seen_since``.

        Sessions derived from words are named ``<session_key>.<start as integer seconds>``.
        """

    async def turn_of_answer(self, user: str, answer_id: str) -> tuple[str, str] | None:
        """Turn id and session of the user's turn that was answered under this name."""

    async def claim(self, rules: BatchRules, *, now: float) -> Batch | None:
        """Lease the next due batch. A user with a leased batch is passed over, so one user's batches never overlap.

        An expired lease makes the same batch (same id, facts and applied) claimable again with ``attempt`` + 1.
        """

    async def save_facts(self, batch_id: str, facts: Sequence[Fact]) -> None:
        """Remember what was extracted, before any of it is stored, so that another try stores the same."""

    async def mark_applied(self, batch_id: str, count: int) -> None:
        """The first ``count`` facts are stored."""

    async def finish(self, batch_id: str, status: str, *, now: float) -> None:
        """End a batch with a terminal status word. Its turns are done."""

    async def postpone(self, batch_id: str, *, until: float) -> None:
        """Give the lease back; the batch is not claimable before ``until``."""

    async def end_session(self, user: str, session: str, *, now: float) -> int:
        """Ask for the session's waiting turns to be learnt from now; how many wait."""

    async def session_turns(self, last: Turn, *, limit: int) -> list[Turn]:
        """At most ``limit`` turns of a session that were not refused, oldest first: those before ``last``, and it.

        None that were opened before a memory of the session was forgotten by hand.
        """

    async def waiting_sessions(self, *, turns_min: int, opened_after: float) -> list[WaitingSession]:
        """Sessions with at least ``turns_min`` waiting turns since they were last cut, the newest of them opened after
        then. A bounded number, those with the newest turns."""

    async def waiting_turns(self, user: str, session: str) -> list[Turn]:
        """The waiting turns of a session since it was last cut, oldest first. A bounded number, the newest."""

    async def cut_session(self, user: str, session: str, *, before: float) -> None:
        """The session's turns opened before then make a batch of their own (trigger ``drift``) as soon as they are
        ready. Idempotent."""

    async def forget_turns(self, scope: Scope) -> int:
        """Erase the scope's turns, batches and history; how many turns there were."""

    async def prune(self, *, done_before: float) -> int:
        """Erase turns that were done before then, and halves that stayed alone; how many."""

    async def counts(self) -> dict[str, int]:
        """Turns by state, for metrics: ``open``, ``ready``, ``leased``, ``done``, ..."""

    async def health(self) -> None: ...


class MessageRecords(Protocol):
    """What is left of messages when their turns are gone: bare ids. Raises JournalError."""

    async def said_before(self, message_ids: Sequence[str]) -> Sequence[SaidBefore]:
        """Where and when these messages were journalled or declined; nothing of those that never were, or so long ago
        that turns of then would be pruned. A bounded number, declined ones first."""

    async def forgotten_at(self, user: str) -> float | None:
        """When anything that the user had said was last erased as a whole (all of it, or of a project, an agent, a
        session): what was said then or before may be erased. None when nothing was, or too long ago to matter."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """New facts that were not stored because a memory says the same: why, how often, and when last (seconds)."""

    reason: str
    times: int
    last_at: float


class History(Protocol):
    """Earlier versions of memories, and what was not stored because of them. Raises JournalError."""

    async def keep_version(self, memory: Memory) -> None:
        """Keep one version (without its vector), unless it is erased. Idempotent on (user, id, version)."""

    async def versions(self, scope: Scope, memory_id: str) -> list[Memory]:
        """Earlier versions, oldest first."""

    async def note_dropped(
        self, scope: Scope, memory_id: str, reason: str, *, now: float, batch: str | None = None
    ) -> None:
        """Count a new fact that was not stored, at the memory that says it already. A repeated try may count twice.

        Nothing is noted when ``batch``, whose fact it was, may not write that memory (``UserWork.allows``).
        """

    async def dropped(self, scope: Scope, memory_id: str) -> list[Dropped]:
        """One for each reason, in the order of the reasons."""

    async def forget_versions(self, scope: Scope, memory_id: str) -> int:
        """Erase all that is kept beside one memory: earlier versions (how many), what was dropped, statistics.

        A batch of the user that is under way is no longer allowed to write it (``UserWork.allows``).
        """


@dataclass(frozen=True, slots=True)
class Uses:
    """How often a memory was put into a prompt, and when last (seconds; 0: never)."""

    count: int = 0
    last_at: float = 0.0


class AccessStatistics(Protocol):
    """How memories are used, kept beside them, so that counting never rewrites a vector. Raises JournalError."""

    async def record_uses(self, uses: Sequence[tuple[str, str, Uses]]) -> None:
        """Add (user, memory id, uses) to what is there; the later ``last_at`` stays."""

    async def uses(self, user: str) -> dict[str, Uses]:
        """By memory id; memories that were never used are not in it."""


class UserWork(Protocol):
    """One at a time per user: batches, and holds by whoever else changes a user's memories. Raises JournalError."""

    async def hold(self, user: str, *, now: float, lease_s: float) -> str | None:
        """An id while no batch and no other hold of the user is under way, else None. It ends by itself.

        A postponed batch is not under way; it is not claimed before the hold ends.
        """

    async def let_go(self, hold_id: str) -> None:
        """End a hold. Idempotent."""

    async def allows(self, batch_id: str, memory_id: str, *, written: bool = False) -> bool:
        """Whether a batch or hold may write this memory: not when it was forgotten since the batch began, nor when
        the batch itself was erased or has ended: what is forgotten after its end, it would not hear of.

        Asked again after the write (``written``), it decides whether the write may stay; that the batch ended
        meanwhile is then no reason to undo it, since whoever ended it may have written the same. A memory is first
        marked here and then forgotten in the store, so one of the two sees the other.
        """

    async def left_over(self, *, limit: int) -> list[tuple[str, str]]:
        """(user, memory id) of what was forgotten under batches and holds that have ended.

        A worker that died between its write and its second question may have left such a memory in the store.
        """

    async def settle(self, user: str, memory_id: str) -> None:
        """The store was cleared of a left-over memory."""


class UserList(Protocol):
    """Who may have memories. Raises JournalError."""

    async def know_user(self, user: str) -> None:
        """Add a user. Those of batches and of uses are known by themselves."""

    async def users_due(self, *, kept_before: float, limit: int) -> list[str]:
        """Users whose memories were last gone through before then, longest ago first."""

    async def mark_kept(self, user: str, *, now: float) -> None:
        """The user's memories were gone through."""

    async def kept_ids(self, user: str) -> set[str]:
        """Ids of memories with versions or statistics, whether the store still has them or not."""

    async def forget_user(self, user: str) -> None:
        """Erase versions, statistics and the name of a user who has no memories. Turns stay."""


# --- language model --------------------------------------------------------------------------------------------------


class LanguageModel(Protocol):
    """An OpenAI-compatible chat model in one of the configured roles."""

    async def complete(
        self, messages: Sequence[Message], *, timeout_s: float, json_schema: dict[str, object] | None = None
    ) -> str:
        """The text of one answer. With a schema, as strict a JSON mode as the server takes. Raises ModelError."""

    async def close(self) -> None: ...


class Reranker(Protocol):
    """A model that reads question and text together, which orders better than any distance of two vectors."""

    async def rerank(self, query: str, texts: Sequence[str], *, timeout_s: float) -> list[float]:
        """How well each text answers the query, in the order of ``texts``; higher is better, any scale, finite.

        Raises ModelError."""

    async def close(self) -> None: ...


class TextWork(Protocol):
    """Does what takes long with a text, beside everything else, and can be stopped."""

    async def run(self, work: Callable[..., T], *args: Any, budget_s: float) -> T:
        """What ``work(*args)`` returns; it is a pure function of a module, and all values can be pickled.

        Raises WorkTooSlow when it is not done after ``budget_s`` seconds of processor time, WorkLost, WorkUnavailable,
        and RuntimeError naming the type of what ``work`` raised.
        """


class Extractor(Protocol):
    """Finds facts in what the user said."""

    name: str

    async def extract(self, batch: Batch) -> list[Fact]:
        """Facts from ``batch.turns``' user texts. Raises ModelError when a language model is needed and failed."""
