"""Milvus Lite as a child process: started, private, kept alive, and never left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from semmem.backends.milvus.lite import LOG_NAME, PORTS, MilvusLiteProcess
from semmem.ports.errors import StoreError, StoreTimeout, StoreUnavailable

PARENT = """
import asyncio, sys
from pathlib import Path
from semmem.backends.milvus.lite import MilvusLiteProcess

async def main():
    process = MilvusLiteProcess(Path(sys.argv[1]))
    await process.start()
    print(process.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def shared_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lite") / "data"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def process(shared_dir: Path) -> AsyncIterator[MilvusLiteProcess]:
    """One child for every test that leaves it running."""
    process = MilvusLiteProcess(shared_dir, stop_timeout_s=1.0)
    await process.start()
    yield process
    await process.stop()


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.05)


async def listens(uri: str) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", int(uri.rpartition(":")[2]))
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


def open_to_others(directory: Path) -> list[Path]:
    return [path for path in (directory, *directory.rglob("*")) if path.stat().st_mode & 0o077]


async def test_it_listens_on_loopback_and_its_files_are_private(process: MilvusLiteProcess, shared_dir: Path) -> None:
    assert process.uri.startswith("http://127.0.0.1:")
    assert int(process.uri.rpartition(":")[2]) in PORTS
    await until(lambda: "listening" in (shared_dir / LOG_NAME).read_text())  # it says so a moment after it does
    assert (shared_dir / LOG_NAME).read_text().count("listening") == 1
    assert open_to_others(shared_dir) == []


async def test_starting_twice_is_one_child(process: MilvusLiteProcess) -> None:
    pid = process.pid
    await process.start()
    assert process.pid == pid is not None


async def test_a_directory_in_use_is_a_clear_error(process: MilvusLiteProcess, shared_dir: Path) -> None:
    second = MilvusLiteProcess(shared_dir)
    with pytest.raises(StoreError, match="in use by another") as raised:
        await second.start()
    assert type(raised.value) is StoreError
    assert str(shared_dir) in str(raised.value)
    assert second.pid is None
    assert process.pid is not None
    assert is_running(process.pid)
    await second.stop()


async def test_a_child_that_dies_is_started_again_at_the_same_place(process: MilvusLiteProcess) -> None:
    uri, pid = process.uri, process.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await until(lambda: process.restarts == 1 and process.pid not in (None, pid))
    deadline = time.monotonic() + 120
    while not await listens(uri) and time.monotonic() < deadline:
        await asyncio.sleep(0.05)
    assert process.uri == uri
    assert await listens(uri)


async def test_a_child_that_does_not_react_is_killed_and_stopping_is_final(process: MilvusLiteProcess) -> None:
    pid, uri = process.pid, process.uri
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    await process.stop()
    await process.stop()
    assert not is_running(pid)
    assert process.pid is None
    await process.start()
    assert process.uri == uri


async def test_a_child_dies_with_its_parent(data_dir: Path) -> None:
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PARENT, str(data_dir)), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    assert parent.stdout is not None
    child = int(await asyncio.wait_for(parent.stdout.readline(), 30))
    assert is_running(child)
    parent.kill()
    await parent.wait()
    await until(lambda: not is_running(child))


async def test_a_start_that_cannot_succeed_names_the_log(data_dir: Path) -> None:
    os.makedirs(data_dir / "LOCK")
    process = MilvusLiteProcess(data_dir)
    with pytest.raises(StoreUnavailable, match=LOG_NAME):
        await process.start()
    assert process.pid is None
    assert "LOCK" in (data_dir / LOG_NAME).read_text()


async def test_a_start_that_takes_too_long_leaves_no_child(data_dir: Path) -> None:
    process = MilvusLiteProcess(data_dir, start_timeout_s=0.1)
    with pytest.raises(StoreTimeout):
        await process.start()
    assert process.pid is None
    free = MilvusLiteProcess(data_dir)
    await free.start()
    await free.stop()
