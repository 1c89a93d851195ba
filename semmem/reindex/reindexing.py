"""A reindex from its beginning to the day when the former collection is dropped.

    filling   user by user, those first who are asked for; how far it is stands in the journal's database
    waiting   until every process that shares the store writes to the new collection
    verified  each user once more: the same memories in the same versions on both sides
    switched  everybody reads the new collection; the former one is kept, and written to
    dropped   when somebody says so, or after ``keep_s``

One process does it, the others follow. Cut off at any moment it goes on where it was: what is done twice changes
nothing, and what was read is always right, since the former collection decides until the switch."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from hashlib import blake2b
from typing import Any

from semmem.lifecycle.holds import Busy
from semmem.ports.errors import SemmemError, StoreMismatch
from semmem.ports.reindexing import Reindex, ReindexRecords, ReindexState
from semmem.reindex.movable_store import MovableStore, Part
from semmem.reindex.moving import Moved, Mover

NOTE_USERS = 20
"""So many users later it is noted how far it is; they are gone through again after a kill."""
WANTED_MAX = 3
BUSY_PAUSE_S = 0.2
PASSES_MAX = 5
"""Of verification in a row, while users are written to between two looks."""


class _Cut(Exception):
    """Nothing more to be done now: somebody else is at it, or as many were embedded as was allowed."""


@dataclass(eq=False, repr=False)
class Reindexing:
    """``moved`` is called with a user whose memories have their new vectors now, ``tell`` with a line for the log when
    it begins, waits or ends. ``lease_s``: so long nobody else takes over from a process that died. ``keep_s``: how long
    the former collection is kept, None until somebody says so. ``poll_s``: between two looks at what there is to do.
    ``settle_s``: the longest that another process takes to notice something, 0 where there is none."""

    store: MovableStore
    mover: Mover
    records: ReindexRecords
    everybody: Callable[[], Awaitable[Sequence[str]]]
    """Who has memories. Raises StoreError and JournalError."""
    _: KW_ONLY
    clock: Callable[[], float]
    moved: Callable[[str], None] = lambda _user: None
    tell: Callable[[str], None] = lambda _line: None
    lease_s: float = 30.0
    poll_s: float = 5.0
    settle_s: float = 0.0
    keep_s: float | None = None
    known: Reindex | None = field(init=False, default=None)
    """As this process knew it last."""
    _allowed: int | None = field(init=False, default=None)
    _wanted: dict[str, None] = field(init=False, default_factory=dict)
    _tried: set[str] = field(init=False, default_factory=set)
    _wake: asyncio.Event = field(init=False, default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.store.wants = self.wants

    def wants(self, user: str) -> None:
        """Somebody asks for the user's memories: they are next."""
        if user not in self._tried:
            self._wanted[user] = None

    async def status(self) -> dict[str, Any]:
        """How far it is. ``state`` is ``none`` where there is nothing to do."""
        known = await self.records.reindex(self.store.name)
        if known is not None and self.known is not None and self.known.target == known.target:
            known = max(known, self.known, key=lambda each: (each.changed_at, each.users_done))  # noted now and then
        live = self.store.live.about
        told: dict[str, Any] = {"state": "none", "collection": live.name, "signature": live.signature}
        if known is not None:
            told |= {**asdict(known), "state": known.state.value}
            del told["position"]
        elif self.store.target is not None:
            told |= {"state": ReindexState.FILLING.value, "target": self.store.target.about.name}
        elif self.store.beside:
            told |= {"state": ReindexState.KEPT.value, "source": self.store.beside[-1].about.name}
        return told

    @property
    def state(self) -> str:
        return "none" if self.known is None else self.known.state.value

    async def start(self, *, force: bool = False, limit: int | None = None) -> None:
        """Begin, or go on; ``force``: every vector anew, also of the same model. ``limit``: embed at most so many, then
        pause until asked again."""
        if self.store.target is None and force:
            for part in self.store.beside:
                await self.store.drop(part)
            await self.store.begin()
        self._allowed = limit
        if self.store.target is not None:
            known = await self._begun(self.store.target)
            if known.state is ReindexState.PAUSED and await self._claimed():
                await self._note(replace(known, state=ReindexState.FILLING))
        self._wake.set()

    async def drop_former(self) -> int:
        """Drop the collections that are kept; how many. Nothing of one that is being filled."""
        former = [part for part in self.store.beside if part is not self.store.target]
        known = await self.records.reindex(self.store.name)
        if known is not None and self.store.target is None:
            if not await self._claimed():
                raise Busy
            await self._note(replace(known, state=ReindexState.DROPPING))
            await asyncio.sleep(self.settle_s)  # the others write to them no more
        for part in former:
            await self.store.drop(part)
        if self.store.target is None:
            await self.records.end_reindex(self.store.name)
            self.known = None
        return len(former)

    async def run(self) -> None:
        """For ever. Raises StoreMismatch when everybody reads another model's vectors now."""
        told = ""
        while True:
            try:
                await self.step()
                told = ""
            except StoreMismatch:
                raise
            except (SemmemError, Busy) as error:
                if told != str(error):
                    self.tell(f"it pauses: {type(error).__name__}: {error}")
                told = str(error)
            with suppress(TimeoutError):
                async with asyncio.timeout(self.poll_s):
                    await self._wake.wait()
            self._wake.clear()

    async def step(self) -> None:
        """All that can be done now. Raises SemmemError."""
        if not self.store.is_open:
            return
        if self.settle_s:
            await self._follow()
        if self.store.target is None:
            await self._drop_in_time()
            return
        with suppress(_Cut, LookupError):
            await self._work(self.store.target)

    async def _follow(self) -> None:
        await self.store.follow()
        known = await self.records.reindex(self.store.name)
        if known is not None and known.state is ReindexState.DROPPING:
            for part in self.store.beside:
                await self.store.leave(part)
        elif known is not None and self._is_news(known):
            await self.store.begin(known.target)
        self.known = known

    def _is_news(self, known: Reindex) -> bool:
        """Whether another process was asked to make every vector anew."""
        names = [self.store.live.about.name, *(part.about.name for part in self.store.beside)]
        is_ours = known.state is not ReindexState.KEPT and known.signature == self.store.embedder.signature
        return is_ours and known.target not in names

    async def _drop_in_time(self) -> None:
        known = self.known = await self.records.reindex(self.store.name)
        if known is None:
            return
        if known.state not in (ReindexState.KEPT, ReindexState.DROPPING):
            if self.settle_s:  # it is another model's, which other processes move to
                return
            await self.records.end_reindex(self.store.name)  # a journal of earlier: there is no such target
            self.known = None
            return
        over = self.keep_s is not None and self.clock() - known.changed_at >= self.keep_s
        if known.state is ReindexState.DROPPING or (known.state is ReindexState.KEPT and over):
            await self.drop_former()

    async def _work(self, target: Part) -> None:
        known = await self._begun(target)
        if known.state is ReindexState.PAUSED:
            raise _Cut
        if not await self._claimed():
            self.known = known
            raise _Cut
        for part in self.store.beside:
            if part is not target:
                await self.store.drop(part)  # of an earlier reindex: there is one way back at most
        if known.state is not ReindexState.WAITING:
            self.tell(f"from {known.source} to {known.target}, for {known.signature}")
            known = await self._fill(known)
        if waited_for := await self.records.not_writing(target.about.name):
            self.tell(f"it waits for {waited_for} replicas that do not write to the new collection")
            await self._note(replace(known, state=ReindexState.WAITING))
            raise _Cut
        known = await self._verified(known)
        await self._note(known)
        await self.store.switch()
        await self._note(replace(known, state=ReindexState.KEPT, changed_at=self.clock()))
        self._tried.clear()
        self.tell(f"everybody reads {known.target}; {known.source} is kept")

    async def _begun(self, target: Part) -> Reindex:
        begun = Reindex(self.store.live.about.name, target.about.name, target.about.signature)
        return await self.records.begin_reindex(self.store.name, replace(begun, changed_at=self.clock()))

    async def _fill(self, known: Reindex) -> Reindex:
        users = await self._users()
        first = known.position == ""
        known = replace(known, state=ReindexState.FILLING, users=len(users))
        if first:
            known = replace(known, users_done=0, memories_done=0)
        await self._note(known)
        busy: list[str] = []
        for number, user in enumerate(user for user in users if _digest(user) > known.position):
            known = self.known = replace(known, embedded=known.embedded + await self._move_wanted())
            moved = await self._move(user)
            busy += [] if moved else [user]
            known = self.known = replace(_counted(known, moved), position=_digest(user))
            if number % NOTE_USERS == 0:
                await self._note(known)
        await self._note(known)
        while busy:
            await asyncio.sleep(BUSY_PAUSE_S)
            await self._note(known)
            for user in list(busy):
                if moved := await self._move(user):
                    busy.remove(user)
                    known = _counted(known, moved)
        await self._note(known)
        return known

    async def _move_wanted(self) -> int:
        """A few of those who are asked for, and then one in the order, so that it is seen to go on; how many of their
        memories were embedded."""
        embedded = 0
        for user in list(self._wanted)[:WANTED_MAX]:
            del self._wanted[user]
            self._tried.add(user)
            if moved := await self._move(user):
                embedded += moved.embedded
        return embedded

    async def _move(self, user: str) -> Moved | None:
        """None: somebody is at work on the user's memories. Raises _Cut when no more may be embedded."""
        try:
            moved = await self.mover.move(user, embed_max=self._allowed)
        except Busy:
            return None
        self._tried.add(user)
        if self._allowed is not None:
            self._allowed -= moved.embedded
        if not moved.is_whole and self._allowed is not None and self._allowed <= 0 and self.known is not None:
            embedded = self.known.embedded + moved.embedded
            await self._note(replace(self.known, state=ReindexState.PAUSED, embedded=embedded))
            raise _Cut
        if moved.embedded:
            self.moved(user)
        return moved if moved.is_whole else None

    async def _verified(self, known: Reindex) -> Reindex:
        """Every user is the same on both sides; what is not is mended and looked at again. What is the same stays so,
        since whoever writes writes to both."""
        left: Sequence[str] = await self._users()
        known = replace(known, users=len(left), users_done=0, memories_done=0)
        for _ in range(PASSES_MAX):
            again = []
            for number, user in enumerate(left):
                difference = await self.mover.difference(user)
                if difference:
                    again.append(user)
                    await self._move(user)
                else:
                    known = _counted(known, Moved(difference.memories))
                if number % NOTE_USERS == 0:
                    await self._note(known)
            if not again:
                return known
            left = again
        self.tell("some users are written to all the time; they are verified again later")
        raise _Cut

    async def _users(self) -> list[str]:
        """Also those of whom only the target has anything, left there when somebody died. In the order of digests,
        which may be kept of users that are erased."""
        target = self.store.target
        left_over = await target.store.users() if target is not None else set[str]()
        return sorted({*await self.everybody(), *left_over}, key=_digest)

    async def _note(self, known: Reindex) -> None:
        """Raises _Cut when another process has taken over."""
        self.known = known
        if not await self.records.note_reindex(self.store.name, known, now=self.clock(), lease_s=self.lease_s):
            raise _Cut

    async def _claimed(self) -> bool:
        return await self.records.claim_reindex(self.store.name, now=self.clock(), lease_s=self.lease_s)


def _counted(known: Reindex, moved: Moved | None) -> Reindex:
    if moved is None:
        return known
    return replace(
        known,
        users_done=known.users_done + 1,
        memories_done=known.memories_done + moved.memories,
        embedded=known.embedded + moved.embedded,
    )


def _digest(user: str) -> str:
    return blake2b(user.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
