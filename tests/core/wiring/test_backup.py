"""Settings -> copies: they say of the vectors what the embedder says, whichever store keeps them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from semmem.backends.in_process import InProcessCollections
from semmem.backends.sql.journal import SqlJournal
from semmem.background import Tasks
from semmem.backup import folder, lines
from semmem.config.settings import Settings
from semmem.lifecycle.hiding_store import HidingStore, Marks
from semmem.lifecycle.write_gate import WriteGate
from semmem.memory import Memory, Scope
from semmem.ports.events import nobody_listens
from semmem.reindex.movable_store import MovableStore
from semmem.telemetry.metrics import Metrics
from semmem.wiring import backup
from semmem.wiring.backends import Backends, Opened, hot_memories
from semmem.wiring.models import ModelClients
from tests.support.fakes import HashEmbedder
from tests.support.memories import memory

DIMENSION = 24
"""Not what memory.milvus.dimension is by default: of Qdrant nobody sets that."""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    memory = {"backend": "qdrant", "embedding": {"dimension": DIMENSION}}
    return Settings.model_validate({"data_dir": str(tmp_path), "memory": memory})


@pytest.fixture
async def opened(settings: Settings) -> AsyncIterator[Opened]:
    journal, tasks = SqlJournal(settings.journal_file), Tasks()
    await journal.open()
    store = MovableStore(InProcessCollections(), HashEmbedder(DIMENSION), journal, may_move=False)
    await store.open()
    gate = WriteGate(store)
    hiding = HidingStore(gate, Marks())
    hot = hot_memories(settings, hiding, tasks.spawn, asyncio.to_thread)
    yield Opened(Backends(hot, HashEmbedder(DIMENSION), journal, {}), store, hiding, gate, ModelClients(Metrics()))
    await tasks.cancel()
    await journal.close()


async def told() -> Memory:
    """Its vector is not what the embedder would make of its content."""
    return memory("ada", embedding=await HashEmbedder(DIMENSION).embed("something else"))


async def test_an_export_says_how_long_its_vectors_are(settings: Settings, opened: Opened) -> None:
    await opened.store_backend.put(Scope("ada"), await told())
    parts = [part async for part in backup.exports(settings, opened).stream(["ada"])]
    header = lines.read_line(parts[0].strip())
    assert isinstance(header, lines.Header)
    assert header.dimension == DIMENSION


async def test_a_backup_says_how_long_its_vectors_are(settings: Settings, opened: Opened) -> None:
    (Path(settings.data_dir) / "fence.key").write_bytes(b"k" * 32)
    await opened.store_backend.put(Scope("ada"), await told())
    parts = [part async for part in backup.snapshots(settings, opened).frames()]
    files: dict[str, bytes] = {}
    for named, content in folder.frames(parts):
        if "file" in named:
            files[named["file"]] = files.get(named["file"], b"") + content
    header = lines.read_line(files[folder.MEMORIES].splitlines()[0])
    assert isinstance(header, lines.Header)
    assert header.dimension == DIMENSION


async def test_an_imported_vector_of_the_same_model_is_not_computed_again(settings: Settings, opened: Opened) -> None:
    one = await told()
    imports = backup.imports(settings, opened, nobody_listens)
    done = await imports.take(HashEmbedder(DIMENSION).signature, [lines.memory_line(one).decode()])
    assert done.imported == 1
    found = await opened.store_backend.get(Scope("ada"), one.id)
    assert found is not None
    assert found.embedding is not None
    assert one.embedding is not None
    assert found.embedding.tolist() == one.embedding.tolist()
