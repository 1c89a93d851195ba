"""A journal, the API over it, and the same with every route and with tokens of all roles."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from semmem.backends.sql.journal import SqlJournal
from tests.core.management.test_api import Api
from tests.core.management.test_roles import Guarded
from tests.support.empty_journal import empty_journal


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[SqlJournal]:
    made = SqlJournal(empty_journal(tmp_path / "journal.db"))
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def api(journal: SqlJournal) -> AsyncIterator[Api]:
    made = Api(journal)
    await made.store.open()
    yield made
    await made.client.aclose()


@pytest.fixture
async def guarded(api: Api, journal: SqlJournal) -> AsyncIterator[Guarded]:
    made = Guarded(api, journal)
    yield made
    await made.client.aclose()
