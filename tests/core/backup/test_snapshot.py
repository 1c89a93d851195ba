"""A backup is one moment, however long its copying takes, and nothing is left of one that failed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from semmem.backends.sql.file import census, copy_file
from semmem.backends.sql.journal import SqlJournal
from semmem.backup import BackupError, folder, lines
from semmem.backup.exporting import Everybody
from semmem.backup.snapshot import BackupRunning, Snapshots
from semmem.lifecycle.write_gate import WriteGate
from semmem.memory import Memory, Scope
from semmem.ports.errors import StoreUnavailable
from tests.core.lifecycle.erased_world import Store
from tests.support.empty_journal import empty_journal
from tests.support.memories import memory


class Meddled(Store):
    """Somebody writes to it while it is being copied."""

    gate: WriteGate
    to_do: dict[str, Memory | str]

    async def list(self, scope: Scope, **options: Any) -> list[Memory]:
        found = await super().list(scope, **options)
        deed = self.to_do.pop(scope.user, None)
        if isinstance(deed, Memory):
            await self.gate.put(Scope(deed.user), deed)
        elif deed is not None:
            await self.gate.forget_scope(Scope(deed))
        return found


class World:
    def __init__(self, journal: SqlJournal, place: Path) -> None:
        self.store = Meddled()
        self.store.to_do = {}
        self.store.gate = self.gate = WriteGate(self.store)
        self.spool = place / "data" / "backup.tmp"
        self.snapshots = Snapshots(
            self.gate,
            Everybody(self.store, journal),
            self.gate,
            lambda target: copy_file(place / "journal.db", target),
            census,
            version="0",
            signature="test/16",
            dimension=16,
            fence=place / "fence.key",
            spool=self.spool,
            clock=lambda: 5.0,
        )

    async def taken(self) -> dict[str, bytes]:
        """The files, and the last thing that was told."""
        parts = [part async for part in self.snapshots.frames()]
        files: dict[str, bytes] = {}
        for told, content in folder.frames(parts):
            if "file" in told:
                files[told["file"]] = files.get(told["file"], b"") + content
            elif "failed" in told:
                raise BackupError(told["failed"])
        return files


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    journal = SqlJournal(empty_journal(tmp_path / "journal.db"))
    await journal.open()
    made = World(journal, tmp_path)
    await made.store.open()
    yield made
    await journal.close()


def contents(files: dict[str, bytes]) -> set[str]:
    read = [lines.read_line(line) for line in files[folder.MEMORIES].splitlines()]
    found = [lines.memory_of(line).content for line in read if isinstance(line, lines.MemoryLine)]
    assert len(found) == len(set(found))
    assert read[-1] == lines.End(
        len({line.memory.user for line in read if isinstance(line, lines.MemoryLine)}), len(found), 0
    )
    return set(found)


async def test_what_changes_while_it_is_copied_is_copied_again_and_what_is_erased_is_not_in_it(world: World) -> None:
    for user in ("a", "b", "c"):
        await world.gate.put(Scope(user), memory(user, content=f"old of {user}"))
    newer = memory("a", version=2, content="new of a")
    world.store.to_do = {"a": memory("d", content="came meanwhile"), "b": newer, "c": "c"}
    files = await world.taken()
    assert contents(files) == {"new of a", "old of b", "came meanwhile"}
    assert b"old of a" not in files[folder.MEMORIES]
    assert b"old of c" not in files[folder.MEMORIES]
    assert not world.spool.exists()


async def test_a_backup_that_fails_says_so_leaves_nothing_and_does_not_stop_the_next(world: World) -> None:
    await world.gate.put(Scope("a"), memory("a"))

    async def down(scope: Scope, **_options: Any) -> list[Memory]:
        raise StoreUnavailable("the store is down")

    world.store.list = down  # type: ignore[method-assign]  # as long as it is down
    with pytest.raises(BackupError, match="StoreUnavailable: the store is down"):
        await world.taken()
    assert not world.spool.exists()
    del world.store.list
    assert contents(await world.taken()) == {"content of mem_1"}


async def test_one_is_taken_at_a_time_and_one_that_nobody_reads_to_its_end_makes_room(world: World) -> None:
    await world.gate.put(Scope("a"), memory("a"))
    first = world.snapshots.frames()
    await anext(first)
    with pytest.raises(BackupRunning):
        await anext(world.snapshots.frames())
    assert world.spool.exists()
    await first.aclose()  # type: ignore[attr-defined]  # as whoever answers does, when the caller has gone
    assert not world.spool.exists()
    assert contents(await world.taken()) == {"content of mem_1"}
    await world.gate.put(Scope("a"), memory("a", "mem_2"))


def test_a_stream_that_was_cut_off_anywhere_is_no_backup() -> None:
    whole = (
        folder.frame({"progress": "x"}) + folder.file_frame("journal.db", b"abc\n{}") + folder.frame({"manifest": {}})
    )
    assert [content for _, content in folder.frames([whole[:9], whole[9:]])] == [b"", b"abc\n{}", b""]
    for end in range(1, len(whole)):
        try:
            told = [each for each, _ in folder.frames([whole[:end]])]
        except BackupError:
            continue
        assert not any("manifest" in each for each in told)
