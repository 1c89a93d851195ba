"""A store in process, and real journals, opened for a test and closed after it."""

from collections.abc import AsyncIterator

import pytest

from semmem.backends.in_process import InProcessStore
from tests.support.traced_journal import journal, journals

__all__ = ["journal", "journals", "store"]


@pytest.fixture
async def store() -> AsyncIterator[InProcessStore]:
    opened = InProcessStore()
    await opened.open()
    yield opened
    await opened.close()
