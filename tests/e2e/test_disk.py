"""The disk under a whole house: what a purge leaves on it, when it is full, and when a file on it is damaged."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.disk import files_holding, lone_word
from tests.support.harness import ADMIN_TOKEN, House, SemmemProcess, StandInModel, eventually, house, semmem_process

NAMES_KEPT_IN: set[str] = set()
"""Where the name of a forgotten user may be found: which sessions must not be summed up again."""
QUESTION = "What is the name of my dog?"
FACT = "User's dog is called Biscuit"


def add(semmem: SemmemProcess, user: str, content: str, **members: Any) -> httpx.Response:
    admin = {"authorization": f"Bearer {ADMIN_TOKEN}"}
    body = {"user_id": user, "content": content, **members}
    return semmem.http.post(f"{semmem.api_url}/v1/memory", json=body, headers=admin)


@pytest.mark.long(12)
def test_what_is_forgotten_with_a_purge_is_in_no_file_running_or_stopped(tmp_path: Path, model: StandInModel) -> None:
    gone, stays = (lone_word() for _ in range(2))
    said = (f"My dog is called {gone}said", f"I live in {gone}town", f"I work at {gone}works")
    with house(tmp_path, model) as home:
        data = home.semmem.data_dir
        home.converse(f"{gone}-user", f"{gone}-session", *said)
        home.semmem.end_session(f"{gone}-user", f"{gone}-session")
        home.learnt(f"{gone}-user")
        for number in range(30):
            names = {"project_id": f"{gone}-project", "session_id": f"{gone}-session", "key": f"{gone}-{number}"}
            made = (
                add(home.semmem, f"{gone}-user", f"{gone}-content {number}", metadata={"m": f"{gone}-meta"}, **names),
                add(home.semmem, f"{stays}-user", f"{stays}-content {number}"),
            )
            assert [answer.status_code for answer in made] == [201, 201], [answer.text for answer in made]
        eventually(lambda: home.semmem.waiting(f"{gone}-user") == 0, within_s=30, what="the batch has ended")
        time.sleep(3)  # flushed
        assert files_holding(data, [gone])
        receipt = home.semmem.api("DELETE", "/v1/memory", params={"user_id": f"{gone}-user", "purge": "true"})
        assert receipt["purged"] is True
        assert {file for file, _ in files_holding(data, [gone])} <= NAMES_KEPT_IN
        told = [f"{gone}{end}" for end in ("said", "town", "works", "-content", "-meta", "-project")]
        assert files_holding(data, told) == set()
        assert len(home.semmem.memories(f"{stays}-user")) == 30
    assert files_holding(data, told) == set()
    assert {file for file, _ in files_holding(data, [gone])} <= NAMES_KEPT_IN
    assert files_holding(data, [stays])


def children_of(semmem: SemmemProcess) -> list[int]:
    pid = semmem.child.pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def full_disk(semmem: SemmemProcess) -> Iterator[None]:
    """No file of semmem and of its child can be written (EFBIG): a full disk that needs no rights to make."""
    pids = [semmem.child.pid, *children_of(semmem)]
    assert len(pids) == 2
    limits = {pid: resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in pids}
    for pid, (_, hard) in limits.items():
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        for pid, limit in limits.items():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, limit)


@pytest.mark.long(25)
def test_a_full_disk_refuses_writes_serves_memories_and_is_whole_again_without_a_restart(
    tmp_path: Path, model: StandInModel
) -> None:
    with house(tmp_path, model) as home:
        semmem = home.semmem
        facts = {FACT, *(f"User has a friend called Number{number}" for number in range(4))}
        for fact in facts:
            semmem.remember("alice", fact)
        children = children_of(semmem)
        with full_disk(semmem):
            time.sleep(5)  # flushes are tried
            for user in ("alice", "bob"):
                refused = add(semmem, user, "User likes refusals")
                assert refused.status_code in (503, 507), refused.text
                assert refused.json()["error"]["code"] in ("MEMORY_NOT_AVAILABLE", "STORE_FULL")
            assert semmem.contents("alice") == facts
            reply = home.chat("alice", QUESTION, session="full")
            assert (reply.status, reply.outcome) == (200, "injected")
            assert b"Biscuit" in reply.prompt
            said = home.chat("carol", "I live in Lisbon and I work as a baker", session="full")
            assert said.status == 200
            time.sleep(2)
            assert semmem.turns("carol") == []
            unready = semmem.http.get(f"{semmem.health_url}/readyz")
            assert (unready.status_code, unready.json()["why"]) == (503, {"journal": "cannot write"})
            assert semmem.api("GET", "/v1/status")["components"]["journal"] is False
            journal = semmem.api("GET", "/v1/health")["parts"]["journal"]
            assert (journal["working"], journal["error"]) == (False, "JournalFull")
        eventually(lambda: len(semmem.turns("carol")) == 1, within_s=60, what="the waiting turn is journalled")
        ready = f"{semmem.health_url}/readyz"
        eventually(lambda: semmem.http.get(ready).status_code == 200, within_s=60, what="it is ready again")
        assert semmem.contents("alice") == facts
        assert semmem.contents("bob") == set()
        assert add(semmem, "alice", "User likes space").status_code == 201
        assert semmem.contents("alice") == {*facts, "User likes space"}
        time.sleep(4)  # flushed
        assert semmem.contents("alice") == {*facts, "User likes space"}
        semmem.end_session("carol", "full")
        home.learnt("carol", within_s=40)
        assert children_of(semmem) == children
    with semmem_process(tmp_path) as semmem:
        assert semmem.contents("alice") == {*facts, "User likes space"}


def parquet(home: House) -> Path:
    """The first data file of the embedded store, as soon as there is one."""
    folder = home.semmem.data_dir / "milvus"

    def first() -> Path | None:
        return next(iter(sorted(folder.rglob("data/*.parquet"))), None)

    found: Path = eventually(first, within_s=60, what="memories are flushed")
    return found


@pytest.mark.long(20)
def test_with_a_damaged_file_semmem_starts_without_memory_and_has_it_again_when_the_file_is_mended(
    tmp_path: Path, model: StandInModel
) -> None:
    with house(tmp_path, model) as home:
        home.semmem.remember("alice", FACT)
        path = parquet(home)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with house(tmp_path, model) as home:
        reply = home.chat("alice", QUESTION, session="s")
        assert (reply.status, reply.outcome) == (200, "store_down")
        assert add(home.semmem, "alice", "User likes tea").status_code == 503
        eventually(lambda: len(home.semmem.turns("alice", "s")) == 1, within_s=60, what="the turn is journalled")
        log = home.semmem.child.printed()
        assert str(path) in log
        assert "backup" in log
        assert "Biscuit" not in log
        time.sleep(5)
        assert home.semmem.child.printed().count("store damaged") == 1
        path.write_bytes(whole)
        eventually(lambda: home.chat("alice", QUESTION).outcome == "injected", within_s=40, what="memory is back")
        assert home.semmem.contents("alice") == {FACT}
