"""A journal of its own for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from semmem.backends.sql.journal import SqlJournal
from tests.support.empty_journal import empty_journal


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[SqlJournal]:
    made = SqlJournal(empty_journal(tmp_path / "journal.db"))
    await made.open()
    yield made
    await made.close()
