"""The blocks that sessions were shown, in this process and, behind the requests, in the journal's database.

A session is read from there when its history has messages that this process has not seen: after a restart, or where
another replica was asked in between. Reading late, or not at all, costs a cold prompt."""

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from typing import Protocol

from msgspec import structs

from semmem.memory import Memory, Scope
from semmem.ports.errors import JournalError
from semmem.ports.events import Announce, PromptPrefix, nobody_listens
from semmem.ports.session_states import START, ShownBlock, ShownRow
from semmem.ports.talks import TALK_ID
from semmem.retrieval.index.hot_memories import Spawn
from semmem.retrieval.index.memory_index import MemoryIndex
from semmem.retrieval.ledger.anchors import Anchor

GATHER_S = 0.02
"""Blocks are gathered so long before they are written together."""
BLOCK_BYTES = 400
"""What a block takes beside its text, estimated."""
KNOWN_BYTES = 150
"""What the name of a message takes, estimated."""
KNOWN_MAX = 5000
"""Of one session; then only those of the last history stay known."""
LATE, ERASED, UNWRITTEN = "late", "erased", "unwritten"
BLOCKS_MAX = 200
"""Of one session, its branches included; the first one stays, then the oldest go."""


class LedgerRecords(Protocol):
    """The blocks of sessions, a session by any name that stands for it, and what their memories said before. Raises
    JournalError."""

    async def shown_blocks(self, user: str, session: str, *, now: float) -> list[ShownBlock]:
        """Those that are not expired, in the order in which they were shown."""

    async def keep_shown(self, rows: Sequence[ShownRow], *, per_user: int) -> None:
        """Keep blocks in their order, the ``per_user`` newest of a user. Of one anchor the last stays. None is kept of
        what was shown before the user's last erasure, whatever that was of, nor with a conversation before that was
        removed."""

    async def versions(self, scope: Scope, memory_id: str) -> list[Memory]:
        """As MemoryRecords says."""


@dataclass(frozen=True, slots=True)
class LedgerRules:
    """At most ``sessions_max`` sessions and ``bytes_max`` bytes are kept in this process, a block for ``kept_s``
    seconds, ``per_user_max`` blocks of a user in the database, which has ``lookup_s`` seconds to answer. At most
    ``waiting_max`` blocks wait to be written; further ones are this process's alone."""

    sessions_max: int = 10_000
    bytes_max: int = 64 * 1024 * 1024
    kept_s: float = 48 * 3600.0
    per_user_max: int = 1000
    lookup_s: float = 0.1
    waiting_max: int = 10_000


@dataclass(slots=True)
class Fit:
    """Blocks of a page that were found to be fit to be shown, by their anchors, and until when they are: as the
    memories of ``index`` say, which is known by being the same object, and is not held."""

    index: Callable[[], MemoryIndex | None] = lambda: None
    blocks: dict[str, ShownBlock] = field(default_factory=dict)
    until: float = math.inf


@dataclass(slots=True)
class Page:
    """What one session was shown. ``known``: the messages that this process has seen; ``withdrawn``: memories that are
    in their history alone. ``cleared``: how often what is being read meanwhile became void; ``is_late``: what was kept
    elsewhere was asked for, and did not come. ``text_bytes``: of the blocks, estimated. ``fit``: those that were looked
    at and may be shown."""

    user: str
    name: str
    blocks: dict[str, ShownBlock] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    withdrawn: set[str] = field(default_factory=set)
    cleared: int = 0
    is_late: bool = False
    text_bytes: int = 0
    fit: Fit = field(default_factory=Fit)

    @property
    def bytes(self) -> int:
        return self.text_bytes + KNOWN_BYTES * len(self.known) + BLOCK_BYTES

    def weigh(self) -> None:
        """Once the blocks have changed."""
        self.text_bytes = sum(len(block.text) + BLOCK_BYTES for block in self.blocks.values())
        looked_at = self.fit.blocks.items()
        self.fit.blocks = {anchor: block for anchor, block in looked_at if self.blocks.get(anchor) is block}


@dataclass(eq=False, repr=False)
class Ledger:
    """``records``: None where nothing is kept beside this process. Never raises; what goes wrong is counted. A page
    that was given out and is dropped meanwhile, because the user was erased, takes nothing in any more: so what was
    read before an erasure is not kept after it."""

    records: LedgerRecords | None = None
    rules: LedgerRules = LedgerRules()
    _: KW_ONLY
    spawn: Spawn | None = None
    announce: Announce = nobody_listens

    def __post_init__(self) -> None:
        self._records = self.records if self.spawn is not None else None
        self._pages: OrderedDict[tuple[str, str], Page] = OrderedDict()
        self._of_user: dict[str, set[str]] = {}
        self._bytes = 0
        self._waiting: list[ShownRow] = []
        self._writing: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._pages)

    def has_any(self, user: str) -> bool:
        """Whether anything is kept here of what the user was shown."""
        return user in self._of_user

    async def page(self, user: str, name: str, before: Iterable[Anchor], *, held: bool, now: float) -> Page:
        """The session's page. ``before`` are the messages of its history, which may have blocks; ``held``: it has a
        history that the request does not bring."""
        key, anchors = (user, name), {anchor.name for anchor in before}
        page = self._pages.get(key)
        is_new = page is None
        if page is None:
            page = self._pages[key] = Page(user, name)
            self._of_user.setdefault(user, set()).add(name)
            self._bytes += page.bytes
        self._pages.move_to_end(key)
        if not anchors <= page.known or (held and (is_new or page.is_late)):
            page.is_late = not await self._read(page, now)
            if not page.is_late:
                self.knows(page, anchors)
        self._make_room()
        return page

    def knows(self, page: Page, anchors: Collection[str]) -> None:
        """These messages of the session were seen here."""
        if page.known.issuperset(anchors):
            return
        kept = self._pages.get((page.user, page.name)) is page
        self._bytes -= page.bytes if kept else 0
        if len(page.known) + len(anchors) > KNOWN_MAX:
            page.known.clear()
        page.known.update(anchors)
        self._bytes += page.bytes if kept else 0

    async def look(self, user: str, name: str, *, now: float) -> Page:
        """A copy of the session's page, of what other processes wrote as well. Nothing changes: no page is made, and
        none is nearer to being kept or dropped."""
        key = (user, name)
        had, read = self._pages.get(key), list[ShownBlock]()
        cleared = 0 if had is None else had.cleared
        if self._records is not None:
            with suppress(TimeoutError, JournalError):
                async with asyncio.timeout(self.rules.lookup_s):
                    await self.flush()
                    read = await self._records.shown_blocks(user, name, now=now)
        page = self._pages.get(key)
        if had is not None and (page is not had or had.cleared != cleared):
            read = []  # what was read may be what was erased meanwhile
        here, withdrawn = (page.blocks, set(page.withdrawn)) if page is not None else ({}, set[str]())
        blocks = dict(here)
        for block in read:
            if (mine := here.get(block.anchor)) is None or mine.shown_at < block.shown_at:
                blocks[block.anchor] = block
        return Page(user, name, blocks, withdrawn=withdrawn)

    def add(self, page: Page, block: ShownBlock) -> None:
        """Keep a block, in place of another of the same message."""
        had = page.blocks.get(block.anchor)
        same = had is not None and structs.replace(block, shown_at=had.shown_at, expires_at=had.expires_at) == had
        if same or self._pages.get((page.user, page.name)) is not page:
            return
        self._take(page, [block])
        self._write(page, block)
        self._make_room()

    def clear(self, page: Page, why: str) -> None:
        """Show the session nothing of this again."""
        self.announce(PromptPrefix(why))
        page.cleared += 1
        if self._pages.get((page.user, page.name)) is page:
            self._bytes -= page.text_bytes
            self._write(page, None)
        page.blocks.clear()
        page.weigh()

    def forget(self, user: str) -> None:
        """Something of the user's was erased: whatever was shown may have said it."""
        self._waiting = [row for row in self._waiting if row[0] != user]
        for name in tuple(self._of_user.get(user, ())):
            if self._pages[user, name].blocks:
                self.announce(PromptPrefix(ERASED))
            self._remove((user, name))

    def talk_changed(self, user: str, talk: str | None = None) -> None:
        """A former conversation was removed, or may have been: sessions that were shown it, of the user."""
        for name in tuple(self._of_user.get(user, ())):
            page = self._pages[user, name]
            page.cleared += 1
            if any(_tells(block, talk) for block in page.blocks.values()):
                self.clear(page, ERASED)

    def everything_changed(self) -> None:
        """Anybody's may have been."""
        for user in tuple(self._of_user):
            self.talk_changed(user)

    async def withdrawn(self, user: str, memory_ids: Collection[str]) -> set[str]:
        """Those of these memories that have a history, as far as that is known in time, which is for all together."""
        found = set[str]()
        if self._records is None:
            return found
        with suppress(TimeoutError, JournalError):
            async with asyncio.timeout(self.rules.lookup_s):
                for memory_id in sorted(memory_ids):
                    if not await self._records.versions(Scope(user), memory_id):
                        break  # one is enough
                    found.add(memory_id)
        return found

    async def flush(self) -> None:
        """Write what waits."""
        while self._writing is not None:
            await asyncio.wait({self._writing})

    # --- this process ------------------------------------------------------------------------------------------------

    def _take(self, page: Page, blocks: Iterable[ShownBlock]) -> None:
        self._bytes -= page.bytes
        for block in blocks:
            page.blocks[block.anchor] = block
        in_order = sorted(page.blocks.items(), key=lambda each: each[1].shown_at)
        page.blocks.clear()
        page.blocks.update(in_order)
        for oldest in [anchor for anchor in page.blocks if anchor != START][:-BLOCKS_MAX]:
            del page.blocks[oldest]
        page.weigh()
        self._bytes += page.bytes

    def _remove(self, key: tuple[str, str]) -> None:
        if (page := self._pages.pop(key, None)) is None:
            return
        self._bytes -= page.bytes
        names = self._of_user[page.user]
        names.discard(page.name)
        if not names:
            del self._of_user[page.user]

    def _make_room(self) -> None:
        rules = self.rules
        while len(self._pages) > rules.sessions_max or (self._bytes > rules.bytes_max and len(self._pages) > 1):
            self._remove(next(iter(self._pages)))

    # --- the database ------------------------------------------------------------------------------------------------

    async def _read(self, page: Page, now: float) -> bool:
        """Whether all is known now that the session was shown."""
        if self._records is None:
            return True
        cleared = page.cleared
        try:
            async with asyncio.timeout(self.rules.lookup_s):
                blocks = await self._records.shown_blocks(page.user, page.name, now=now)
        except (TimeoutError, JournalError):
            self.announce(PromptPrefix(LATE))
            return False
        if page.cleared != cleared:
            return False
        if self._pages.get((page.user, page.name)) is page:
            had = {anchor: block.shown_at for anchor, block in page.blocks.items()}
            newer = [block for block in blocks if had.get(block.anchor, -math.inf) < block.shown_at]
            self._take(page, newer)
        return True

    def _write(self, page: Page, block: ShownBlock | None) -> None:
        if self._records is None:
            return
        if block is not None and len(self._waiting) >= self.rules.waiting_max:
            self.announce(PromptPrefix(UNWRITTEN))
            return
        self._waiting.append((page.user, page.name, block))
        if self._writing is None:
            self._begin_to_write()

    def _begin_to_write(self) -> None:
        if self._records is not None and self.spawn is not None:
            self._writing = self.spawn("keep shown blocks", self._written(self._records))
            self._writing.add_done_callback(self._has_written)

    async def _written(self, records: LedgerRecords) -> None:
        while self._waiting:
            await asyncio.sleep(GATHER_S)
            rows, self._waiting = self._waiting, []
            try:
                await records.keep_shown(rows, per_user=self.rules.per_user_max)
            except JournalError:
                self.announce(PromptPrefix(UNWRITTEN))

    def _has_written(self, task: asyncio.Task[None]) -> None:
        self._writing = None
        if self._waiting and not task.cancelled():  # they came when it had just ended
            self._begin_to_write()


def _tells(block: ShownBlock, talk: str | None) -> bool:
    return any(each.startswith(TALK_ID) and talk in (None, each) for each, _ in block.memories)
