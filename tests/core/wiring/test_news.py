"""Settings -> who tells other replicas of changes."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.config.settings import Settings
from semmem.lifecycle.change_news import ChangeNews
from semmem.ports.errors import NewsError
from semmem.ports.events import nobody_listens
from semmem.retrieval.fence import Fence
from semmem.wiring import replicas as wiring
from semmem.wiring.replicas import JournalNews, News, news
from tests.support.wire import Wire

FENCE = Fence(b"the same on all replicas")


async def made(tmp_path: Path, **sections: Any) -> News | None:
    async with AsyncExitStack() as stack:
        return news(
            Settings.model_validate(sections), SqlJournal(tmp_path / "journal.db"), FENCE, nobody_listens, stack
        )


async def test_who_shares_neither_journal_nor_redis_has_nobody_to_tell(tmp_path: Path) -> None:
    assert await made(tmp_path) is None


async def test_postgresql_tells_unless_there_is_a_redis(tmp_path: Path) -> None:
    journal = {"url": "postgresql://db/semmem"}
    redis = {"hot_cache": {"redis": {"url": "redis://127.0.0.1:1"}}}
    by_journal, by_redis = await made(tmp_path, journal=journal), await made(tmp_path, journal=journal, memory=redis)
    assert by_journal is not None
    assert by_redis is not None
    assert (by_journal.listening is None, by_redis.listening is None) == (True, False)
    assert await made(tmp_path, memory=redis) is not None


async def test_without_its_package_redis_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "semmem.backends.redis", None)
    with pytest.raises(NewsError, match="semmem\\[redis\\]"):
        await made(tmp_path, memory={"hot_cache": {"redis": {"url": "redis://valkey"}}})


async def test_a_journal_that_fails_is_news_that_were_not_told(tmp_path: Path) -> None:
    with pytest.raises(NewsError):
        await JournalNews(SqlJournal(tmp_path / "journal.db")).say("changed a b c")  # it was never opened


async def test_who_ends_tells_what_he_changed_last() -> None:
    wire = Wire()
    ending = News(ChangeNews(wire.line(), b"key", interval_s=60.0))
    ending.changes.changed("ada")
    await ending.last_word()
    assert len(wire.words) == 1
    await ending.last_word()
    assert len(wire.words) == 1


async def test_who_ends_does_not_wait_for_a_bus_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging:
        async def say(self, word: str) -> None:
            await asyncio.sleep(3600)

    monkeypatch.setattr(wiring, "LAST_WORD_S", 0.05)
    ending = News(ChangeNews(Hanging(), b"key"))
    ending.changes.changed("ada")
    await ending.last_word()  # who waited would be here an hour later
