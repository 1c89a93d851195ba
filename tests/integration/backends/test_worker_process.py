"""The worker process: it does what it is asked, ends when that takes too long, and has nothing of its parent's."""

from __future__ import annotations

import asyncio
import importlib
import os
import re
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from semmem.backends.worker_process import WorkerProcess
from semmem.ports.errors import WorkLost, WorkTooSlow, WorkUnavailable

PATIENT_S = 60.0


@pytest.fixture
async def worker() -> AsyncIterator[WorkerProcess]:
    running = WorkerProcess()
    yield running
    await running.close()


async def test_it_returns_what_the_work_returns_and_is_started_when_first_asked(worker: WorkerProcess) -> None:
    assert worker.pid is None
    assert await worker.run(pow, 2, 10, budget_s=PATIENT_S) == 1024
    first = worker.pid
    assert await worker.run(sorted, ["b", "a"], budget_s=PATIENT_S) == ["a", "b"]
    assert worker.pid == first is not None


async def test_an_expression_that_never_ends_is_stopped_and_the_next_work_is_done(worker: WorkerProcess) -> None:
    with pytest.raises(WorkTooSlow):
        await worker.run(re.match, r"(a+)+$", "a" * 60 + "b", budget_s=0.3)
    assert worker.pid is None
    assert await worker.run(pow, 2, 3, budget_s=PATIENT_S) == 8


async def test_a_budget_is_processor_time(worker: WorkerProcess) -> None:
    """A machine that is busy with other things costs nobody's words."""
    await worker.run(time.sleep, 1.0, budget_s=0.3)


async def test_what_waits_for_ever_is_stopped_by_the_clock(worker: WorkerProcess) -> None:
    with pytest.raises(WorkTooSlow):
        await worker.run(time.sleep, 300, budget_s=0.1)
    assert worker.pid is None


async def test_the_event_loop_goes_on_while_an_expression_holds_its_lock(worker: WorkerProcess) -> None:
    await worker.run(pow, 1, 1, budget_s=PATIENT_S)
    work = asyncio.ensure_future(worker.run(re.match, r"(a+)+$", "a" * 60 + "b", budget_s=1.0))  # noqa: TID251
    ticks = 0
    while not work.done():
        await asyncio.sleep(0.01)
        ticks += 1
    with pytest.raises(WorkTooSlow):
        await work
    assert ticks > 10


@pytest.mark.long(8)
async def test_what_the_work_imports_is_no_part_of_its_time(
    worker: WorkerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dear_to_import.py").write_text("import time\ntime.sleep(4)\ndef number(text): return len(text)\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.syspath_prepend(str(tmp_path))
    dear = importlib.import_module("dear_to_import")
    for text in ("a", "bc"):
        assert await worker.run(dear.number, text, budget_s=3.0) == len(text)


async def test_work_that_raises_says_the_type_and_nothing_of_the_text(worker: WorkerProcess) -> None:
    with pytest.raises(RuntimeError, match=r"^ValueError in int$") as raised:
        await worker.run(int, "my secret", budget_s=PATIENT_S)
    assert "secret" not in str(raised.value)
    assert worker.pid is not None


async def test_work_that_kills_the_worker_is_lost_and_the_next_is_done(worker: WorkerProcess) -> None:
    with pytest.raises(WorkLost):
        await worker.run(os._exit, 3, budget_s=PATIENT_S)
    assert await worker.run(pow, 2, 3, budget_s=PATIENT_S) == 8


async def test_a_child_killed_between_two_pieces_of_work_is_replaced(worker: WorkerProcess) -> None:
    await worker.run(pow, 1, 1, budget_s=PATIENT_S)
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    try:
        assert await worker.run(pow, 2, 3, budget_s=PATIENT_S) == 8
    except WorkLost:  # it was not known to be dead yet
        assert await worker.run(pow, 2, 3, budget_s=PATIENT_S) == 8


async def test_a_cancelled_call_does_not_answer_the_next_one(worker: WorkerProcess) -> None:
    await worker.run(pow, 1, 1, budget_s=PATIENT_S)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await worker.run(time.sleep, 30, budget_s=PATIENT_S)
    assert await worker.run(pow, 2, 3, budget_s=PATIENT_S) == 8


async def test_a_closed_worker_refuses_and_its_child_is_gone(worker: WorkerProcess) -> None:
    await worker.run(pow, 1, 1, budget_s=PATIENT_S)
    pid = worker.pid
    await worker.close()
    with pytest.raises(WorkUnavailable):
        await worker.run(pow, 1, 1, budget_s=PATIENT_S)
    assert pid is not None
    assert not _runs(pid)


async def test_concurrent_work_is_done_in_turn_and_each_gets_its_own_answer(worker: WorkerProcess) -> None:
    answers = await asyncio.gather(*(worker.run(pow, 2, n, budget_s=PATIENT_S) for n in range(20)))
    assert answers == [2**n for n in range(20)]


def _modules() -> list[str]:
    import sys

    return sorted(sys.modules)


def _environment() -> list[str]:
    return sorted(os.environ)


def _sockets() -> list[str]:
    return [link for fd in os.listdir("/proc/self/fd") if "socket" in (link := _target(fd))]


def _target(fd: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except FileNotFoundError:  # the one that listed them
        return ""


def _mapped(pid: int) -> str:
    return Path(f"/proc/{pid}/maps").read_text()


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def test_the_child_reads_by_rules_without_openssl_and_whoever_wants_it_gets_it(worker: WorkerProcess) -> None:
    from semmem.extraction.rules import facts_in

    await worker.run(facts_in, "I live in Rome.", budget_s=PATIENT_S)
    assert worker.pid is not None
    assert "libcrypto" not in _mapped(worker.pid)
    assert "ssl" in await worker.run(_modules, budget_s=PATIENT_S)  # this module's own imports want it


async def test_the_child_has_no_model_library_and_few_megabytes_when_it_reads_by_rules(worker: WorkerProcess) -> None:
    from semmem.extraction.rules import facts_in

    assert len(await worker.run(facts_in, "I live in Rome.", budget_s=PATIENT_S)) == 1
    modules = await worker.run(_modules, budget_s=PATIENT_S)
    assert not {"torch", "transformers", "sentence_transformers", "pymilvus", "grpc", "pydantic"} & set(modules)
    assert await worker.run(_resident_mb, budget_s=PATIENT_S) < 120


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_the_child_has_neither_sockets_nor_secrets_of_its_parent(
    run: Callable[[Coroutine[Any, Any, None]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_MODEL_KEY", "sk-secret")

    async def look() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.set_inheritable(True)
            worker = WorkerProcess()
            try:
                inode = os.readlink(f"/proc/self/fd/{listener.fileno()}")
                assert inode not in await worker.run(_sockets, budget_s=PATIENT_S)
                assert "SEMMEM_MODEL_KEY" not in await worker.run(_environment, budget_s=PATIENT_S)
            finally:
                await worker.close()

    run(look())


async def test_a_child_whose_parent_was_killed_in_mid_work_ends_by_itself() -> None:
    code = """
import asyncio, re, sys
from semmem.backends import worker_process
worker_process.ORPHAN_GRACE_S = 0.5
async def main():
    worker = worker_process.WorkerProcess()
    await worker.run(pow, 1, 1, budget_s=60)
    print(worker.pid, flush=True)
    await worker.run(re.match, r"(a+)+$", "a" * 60 + "b", budget_s=1.0 if len(sys.argv) > 1 else 2.0)
asyncio.run(main())
"""
    import sys

    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    assert parent.stdout is not None
    child = int(await parent.stdout.readline())
    await asyncio.sleep(0.3)
    parent.kill()
    await parent.wait()
    for _ in range(300):
        if not _runs(child):
            return
        await asyncio.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    raise AssertionError("the child outlived its parent")


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
