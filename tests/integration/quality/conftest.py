"""semmem's parts as the measure has them, with a few memories."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quality.wiring import NOW, Semmem, semmem
from tests.support.fakes import HashEmbedder


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Semmem]:
    async with semmem(tmp_path, cache=None, model=HashEmbedder()) as parts:
        await parts.remember("ada", "m1", "User plays the cello in Ghent", at=NOW - 1)
        await parts.remember("ada", "m2", "User keeps bees behind the barn", at=NOW - 1)
        await parts.remember("ben", "m3", "User drives a night tram", at=NOW - 1)
        yield parts
