"""Settings -> who tells other replicas whose memories changed, by what, and what here is told of theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from semmem.backends.sql.journal import SqlJournal
from semmem.background import Tasks
from semmem.config.settings import Settings
from semmem.lifecycle.change_news import ChangeNews
from semmem.ports.errors import JournalError, NewsError
from semmem.ports.events import Announce
from semmem.ports.news import ListeningBus, NewsBus
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
        try:
            async with asyncio.timeout(LAST_WORD_S):
                await self.changes.tell()
        except TimeoutError:
            pass


def news(
    settings: Settings, journal: SqlJournal, fence: Fence, announce: Announce, stack: AsyncExitStack
) -> News | None:
    """None where there is nobody to tell. Redis is closed with ``stack``. Raises NewsError when its package is not
    installed."""
    listening = _redis(settings)
    if listening is not None:
        stack.push_async_callback(listening.close)
    elif not settings.journal.url:
        return None
    bus: NewsBus = listening or JournalNews(journal)
    rules = settings.memory.hot_cache
    changes = ChangeNews(
        bus,
        fence.derived(PURPOSE),
        interval_s=rules.tell_after_ms / 1000,
        users_max=rules.tell_users_max,
        announce=announce,
    )
    return News(changes, listening)


def _redis(settings: Settings) -> ListeningBus | None:
    rules = settings.memory.hot_cache.redis
    if not rules.url:
        return None
    try:
        from semmem.backends.redis import RedisNews  # an optional package
    except ModuleNotFoundError:
        raise NewsError("memory.hot_cache.redis needs a package: pip install 'semmem[redis]'") from None
    return RedisNews(
        rules.url,
        password=rules.password.get_secret_value(),
        ca_file=rules.ca_file,
        channel=rules.channel,
        timeout_s=rules.timeout_s,
    )
