"""What keeps this process in touch with others: whose memories changed, and through the journal that they share who is
alive and what is erased."""

import asyncio
import logging
import math
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import KW_ONLY, dataclass, field

from semmem.backends.sql.database import DEAF, DUE, ERASED, MISSED, OBEYED, SWITCHED
from semmem.backends.sql.journal import SqlJournal
from semmem.background import Outage, Tasks
from semmem.background.tasks import ends_within
from semmem.config.settings import Settings
from semmem.lifecycle.change_news import ChangeNews, ListeningBus, NewsBus
from semmem.lifecycle.elsewhere import Elsewhere
from semmem.lifecycle.erasure import Erasure
from semmem.ports.errors import JournalError, NewsError
from semmem.ports.events import Announce
from semmem.retrieval.fence import Fence
from semmem.retrieval.index.hot_memories import HotMemories
from semmem.retrieval.ledger.ledger import Ledger

PURPOSE = b"semmem: names of users in news of changes"
LAST_WORD_S = 1.0
"""How long a process that ends tries to tell what it changed last."""


class JournalNews:
    """A NewsBus: the journal's server, which this process listens to in any case."""

    def __init__(self, journal: SqlJournal) -> None:
        self._journal = journal

    async def say(self, word: str) -> None:
        try:
            await self._journal.tell_all(word)
        except JournalError as error:
            raise NewsError(str(error)) from None


@dataclass(frozen=True, slots=True)
class Kept:
    """What this process keeps of users' memories, as news want it (lifecycle.change_news.Copies)."""

    memories: HotMemories
    shown: Ledger

    def holds(self, user: str) -> bool:
        return self.memories.holds(user) or self.shown.has_any(user)

    def changed_elsewhere(self, user: str) -> bool:
        self.shown.talk_changed(user)
        return self.memories.changed_elsewhere(user)

    def all_changed_elsewhere(self) -> None:
        self.memories.all_changed_elsewhere()
        self.shown.everything_changed()


@dataclass(frozen=True, slots=True)
class News:
    """``listening``: the bus, where it has a connection of its own to be heard by; else the journal's news are."""

    changes: ChangeNews
    listening: ListeningBus | None = None

    def begin(self, tasks: Tasks, kept: Kept, is_counted: Callable[[], bool]) -> None:
        """``is_counted``: whether the other replicas know of this one."""
        self.changes.of(kept)
        kept.memories.trust(lambda: self.changes.is_complete and is_counted())
        self.changes.everything()  # whoever was here before this process may have died with a word unsaid
        tasks.keep("news of changes", self.changes.run)
        if (bus := self.listening) is not None:
            changes = self.changes
            tasks.keep("news by Redis", lambda: changes.listen(lambda: bus.listen(changes.heard, changes.connected)))

    async def last_word(self) -> None:
        """What is not told yet, as far as that can be done soon."""
        await ends_within(self.changes.tell(), LAST_WORD_S)


def news(
    settings: Settings, journal: SqlJournal, fence: Fence, announce: Announce, stack: AsyncExitStack
) -> News | None:
    """None where there is nobody to tell. Redis is closed with ``stack``. Raises NewsError when its package is not
    installed."""
    rules = settings.memory.hot_cache
    listening: ListeningBus | None = None
    if rules.redis.url:
        try:
            from semmem.backends.redis import RedisNews  # an optional package
        except ModuleNotFoundError:
            raise NewsError("memory.hot_cache.redis needs a package: pip install 'semmem[redis]'") from None
        listening = rules.redis.fill(RedisNews, password=rules.redis.password.get_secret_value())
        stack.push_async_callback(listening.close)
    elif not settings.journal.url:
        return None
    bus: NewsBus = listening or JournalNews(journal)
    changes = ChangeNews(
        bus,
        fence.derived(PURPOSE),
        interval_s=rules.tell_after_ms / 1000,
        users_max=rules.tell_users_max,
        announce=announce,
    )
    return News(changes, listening)


log = logging.getLogger(__name__)

SIGNS_OF_LIFE = 5
"""So many within the time after which a replica counts as lost."""


@dataclass(eq=False)
class Replicas:
    """Signs of life, news, and erasures of others. ``due`` is called when a batch may be due, ``switched`` when memory
    may be switched on or off for somebody. ``news``: who is told of changed memories; what the journal's server tells
    of them comes through here. ``lost_s``: after so long without a sign of life nobody waits for a replica, and
    ``lost`` is called: what it wrote last it may not have told."""

    journal: SqlJournal
    erasure: Erasure
    elsewhere: Elsewhere
    due: Callable[[], None]
    switched: Callable[[], None]
    news: News | None = None
    _: KW_ONLY
    lost_s: float
    lost: Callable[[], None] = lambda: None
    _counts_until: float = field(init=False, default=-math.inf)
    _look: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    _outage: Outage = field(
        init=False, default_factory=lambda: Outage(log, "look at other replicas' erasures", level=logging.WARNING)
    )

    @property
    def is_counted(self) -> bool:
        """Whether the others still wait for this one, with time to spare: half of ``lost_s``."""
        return time.monotonic() < self._counts_until

    async def join(self) -> None:
        """From here on the others wait for this one. Before it shows anything. Raises JournalError."""
        await self._show_life()

    def begin(self, tasks: Tasks) -> None:
        tasks.keep("signs of life", self._live)
        tasks.keep("news of replicas", lambda: self.journal.listen(self._heard))
        tasks.keep("erasures of replicas", self._obey)

    async def leave(self) -> None:
        with suppress(JournalError):  # they will notice
            await self.journal.leave()

    def _heard(self, word: str) -> None:
        if word in (DUE, MISSED):
            self.due()
        if word in (SWITCHED, MISSED):
            self.switched()
        if word in (ERASED, MISSED):
            self._look.set()
        if word == OBEYED:
            self.elsewhere.obeyed()
        if self.news is None or self.news.listening is not None:
            return
        if word == MISSED:
            self.news.changes.connected()
        elif word == DEAF:
            self.news.changes.lost("PostgreSQL is not heard")
        else:
            self.news.changes.heard(word)

    async def _live(self) -> None:
        while True:
            await asyncio.sleep(self.lost_s / SIGNS_OF_LIFE)
            with suppress(JournalError):  # whoever writes says that the server is away
                await self._show_life()

    async def _show_life(self) -> None:
        now, began = time.time(), time.monotonic()
        if await self.journal.show_life(now=now, dead_before=now - self.lost_s):
            self.lost()
        self._counts_until = began + self.lost_s / 2

    async def _obey(self) -> None:
        """As soon as there is news, and where there should have been some."""
        while True:
            await ends_within(self._look.wait(), self.lost_s / SIGNS_OF_LIFE)
            self._look.clear()
            try:
                await self.elsewhere.obey(self.erasure.is_own)
                self._outage.worked()
            except JournalError as error:
                self._outage.failed(error)
