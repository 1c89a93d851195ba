"""A journal that tells what it was told, and the fixtures that open and close such ones."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.memory import Fact
from tests.support.empty_journal import empty_journal


class TracedJournal(SqlJournal):
    """A real one. ``statuses`` are those of batches that ended, ``saved`` the facts that were saved of batches, and
    ``postponed`` the times until which they were."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.statuses: list[str] = []
        self.saved: list[tuple[Fact, ...]] = []
        self.postponed: list[float] = []

    async def save_facts(self, batch_id: str, facts: Sequence[Fact]) -> None:
        await super().save_facts(batch_id, facts)
        self.saved.append(tuple(facts))

    async def finish(self, batch_id: str, status: str, *, now: float) -> None:
        await super().finish(batch_id, status, now=now)
        self.statuses.append(status)

    async def postpone(self, batch_id: str, *, until: float) -> None:
        await super().postpone(batch_id, until=until)
        self.postponed.append(until)


class Journals:
    """Makes journals in a folder, each in a file of its own, and closes them together."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opened: list[TracedJournal] = []

    async def open(self) -> TracedJournal:
        journal = TracedJournal(empty_journal(self._folder / f"journal-{len(self._opened)}.db"))
        self._opened.append(journal)
        await journal.open()
        return journal

    async def close(self) -> None:
        for journal in self._opened:
            await journal.close()


@asynccontextmanager
async def journals_in(folder: Path) -> AsyncIterator[Journals]:
    journals = Journals(folder)
    try:
        yield journals
    finally:
        await journals.close()


@pytest.fixture
async def journals(tmp_path: Path) -> AsyncIterator[Journals]:
    async with journals_in(tmp_path) as made:
        yield made


@pytest.fixture
async def journal(journals: Journals) -> TracedJournal:
    return await journals.open()
