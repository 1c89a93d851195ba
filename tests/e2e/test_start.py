"""What waits to be learnt from while semmem starts."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.memory import Scope, Turn, TurnEnding
from semmem.ports.recording import TurnClosed
from tests.faults.sidecar import READY, Sidecar
from tests.support.harness import eventually

POLLS_S = 3.0
"""Many looks for something to learn from, and far more than the extraction of one sentence takes."""
SAID_S = 60.0
"""Before the start: the session is over by then."""


async def _journalled(data_dir: Path) -> None:
    said_at = time.time() - SAID_S
    journal = SqlJournal(data_dir / "journal.db")
    await journal.open()
    try:
        told = Turn("turn_1", Scope("ada", session="s1"), 0, "I'm allergic to peanuts.", said_at)
        await journal.record([told], [TurnClosed("turn_1", TurnEnding.ANSWERED, said_at + 1, answer="Noted.")])
    finally:
        await journal.close()


def _tries(data_dir: Path) -> list[tuple[int, str | None]]:
    with closing(sqlite3.connect(f"file:{data_dir / 'journal.db'}?mode=ro", uri=True, timeout=30)) as journal:
        return [(int(attempt), status) for attempt, status in journal.execute("select attempt, status from batches")]


def _listens(port: int) -> Callable[[], bool]:
    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    return listens


@pytest.mark.long(6)
def test_no_try_is_used_up_before_the_embedder_is_open(tmp_path: Path) -> None:
    sidecar = Sidecar(tmp_path, {"memory": {"backend": "in_process"}})
    sidecar.data_dir.mkdir()
    asyncio.run(_journalled(sidecar.data_dir))
    sidecar.switch.write_text("opening")
    child = sidecar.launch()
    try:
        eventually(_listens(sidecar.grpc_port), within_s=60, what="semmem listens while it starts")
        time.sleep(POLLS_S)
        assert _tries(sidecar.data_dir) == []

        sidecar.switch.unlink()
        child.wait_for(READY, timeout_s=60)
        eventually(lambda: _tries(sidecar.data_dir) == [(1, "stored")], within_s=30, what="learnt at the first try")
    finally:
        child.terminate()
        child.wait(20)
