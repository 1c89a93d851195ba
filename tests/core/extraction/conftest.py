"""Journals for tests that need a real one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.core.extraction.fakes import Journals, TracedJournal, journals_in


@pytest.fixture
async def journals(tmp_path: Path) -> AsyncIterator[Journals]:
    async with journals_in(tmp_path) as made:
        yield made


@pytest.fixture
async def journal(journals: Journals) -> TracedJournal:
    return await journals.open()
