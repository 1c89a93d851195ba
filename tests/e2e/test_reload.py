"""Another configuration while requests pass: no client notices, what changed holds, what cannot change is refused."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from demo.processes import Child
from demo.stack import HOME
from tests.faults.sidecar import READY
from tests.support import forked
from tests.support.harness import (
    ADMIN_TOKEN,
    BAG_OF_WORDS,
    START_S,
    Json,
    Reply,
    SemmemProcess,
    StandInModel,
    eventually,
    house,
    merged,
    semmem_config,
)

CLIENTS, RELOADS = 4, 20
PAUSE_S = 0.03
"""Between two requests of a client: there are some in each reload, and the machine has other things to do."""
IN_PROCESS: Json = {"memory": {"backend": "in_process", "default_similarity_threshold": 0.05}}
SHELLFISH = "User is allergic to shellfish and likes long walks"
QUESTION = "Am I allergic to shellfish, and do I like long walks?"


class Settings:
    """The configuration of a semmem, as an operator has it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.written: Json = yaml.safe_load(file.read_text())

    def write(self, override: Json) -> None:
        """In one step, as an editor or a mounted ConfigMap does."""
        self.written = merged(self.written, override)
        new = self.file.with_suffix(".new")
        new.write_text(yaml.safe_dump(self.written))
        new.replace(self.file)


def reload_by_api(semmem: SemmemProcess, token: str = ADMIN_TOKEN) -> httpx.Response:
    return semmem.http.post(f"{semmem.api_url}/v1/config/reload", headers={"authorization": f"Bearer {token}"})


def hang_up(semmem: SemmemProcess) -> None:
    os.kill(semmem.child.process.pid, signal.SIGHUP)


def reloads(semmem: SemmemProcess, outcome: str) -> float:
    return semmem.metric("semmem_config_reloads_total", outcome=outcome)


@contextmanager
def load(ask: Callable[[str], Reply]) -> Iterator[tuple[list[Reply], list[Exception]]]:
    """Clients that ask until the end of the block."""
    replies, failures, enough = list[Reply](), list[Exception](), threading.Event()

    def keep_asking(client: int) -> None:
        number = 0
        while not enough.is_set():
            try:
                replies.append(ask(f"client {client} asks for the {number}. time: {QUESTION}"))
            except Exception as error:  # seen by the test
                failures.append(error)
            number += 1
            enough.wait(PAUSE_S)

    clients = [threading.Thread(target=keep_asking, args=(client,)) for client in range(CLIENTS)]
    for client in clients:
        client.start()
    try:
        yield replies, failures
    finally:
        enough.set()
        for client in clients:
            client.join(30)


def reload_somehow(semmem: SemmemProcess, *, by_api: bool) -> None:
    """What changed is one key. Returns when it is in effect."""
    if by_api:
        assert reload_by_api(semmem).json()["changed"] == ["memory.default_retrieval_limit"]
        return
    before = reloads(semmem, "applied")
    hang_up(semmem)
    eventually(lambda: reloads(semmem, "applied") > before, within_s=60, what="it is applied")


def more_than(number: int, found: list[Reply]) -> bool:
    return len(found) > number


@pytest.mark.long(15)
def test_twenty_reloads_under_load_cost_no_client_anything_and_the_last_one_holds(
    model: StandInModel, tmp_path: Path, alice: str
) -> None:
    with house(tmp_path, model, IN_PROCESS) as running:
        semmem, settings = running.semmem, Settings(tmp_path / "config.yaml")
        semmem.remember(alice, SHELLFISH)
        eventually(lambda: running.chat(alice, QUESTION).outcome == "injected", within_s=60, what="it is recalled")
        with load(lambda text: running.chat(alice, text, stream=len(text) % 2 == 0)) as (replies, failures):
            for number in range(RELOADS):
                answered = len(replies)
                settings.write({"memory": {"default_retrieval_limit": 1 + number % 2}})
                reload_somehow(semmem, by_api=bool(number % 2))
                eventually(partial(more_than, answered, replies), within_s=60, what="requests pass")
        assert failures == []
        assert {reply.status for reply in replies} == {200}
        assert [reply for reply in replies if reply.received is None or reply.body != reply.received.answer] == []
        assert {reply.outcome for reply in replies} == {"injected"}, "each one had its memories"
        assert reloads(semmem, "applied") == RELOADS
        assert semmem.metric("semmem_extproc_errors_total") == 0
        settings.write({"memory": {"default_similarity_threshold": 0.95}})
        assert reload_by_api(semmem).status_code == 200
        assert running.chat(alice, QUESTION).outcome == "no_hits"


@pytest.mark.long(8)
def test_what_cannot_change_is_refused_whole_and_tokens_and_limits_change_at_once(tmp_path: Path) -> None:
    with running_semmem(tmp_path, IN_PROCESS) as semmem:
        settings = Settings(tmp_path / "config.yaml")
        before = semmem.api("GET", "/v1/config")
        settings.write({"memory": {"default_retrieval_limit": 9}, "data_dir": str(tmp_path / "elsewhere")})
        refused = reload_by_api(semmem)
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "CONFIG_REFUSED")
        assert "data_dir: needs a restart" in refused.json()["error"]["message"]
        after = semmem.api("GET", "/v1/config")
        assert after["memory"] == before["memory"]
        assert after["reload"]["last"]["problems"]
        assert after["reload"]["digest"] == before["reload"]["digest"]
        assert (reloads(semmem, "refused"), reloads(semmem, "applied")) == (1, 0)

        another = ADMIN_TOKEN[::-1]
        api = {"admin_token": another, "metadata_keys_max": 0}
        settings.write({"data_dir": before["data_dir"], "listeners": {"api": api}})
        told = reload_by_api(semmem).json()
        assert told["changed"][0] == "memory.default_retrieval_limit"
        assert set(told["changed"][1:]) == {"listeners.api.admin_token", "listeners.api.metadata_keys_max"}
        assert reload_by_api(semmem).status_code == 401, "the former token is none any more"
        unchanged = reload_by_api(semmem, another).json()
        assert (unchanged["outcome"], unchanged["digest"]) == ("unchanged", told["digest"])
        admin = {"authorization": f"Bearer {another}"}
        told_too_much = {"user_id": "ada", "content": "User likes tea", "metadata": {"a": 1}}
        answer = semmem.http.post(f"{semmem.api_url}/v1/memory", json=told_too_much, headers=admin)
        assert answer.status_code == 400
        status = semmem.http.get(f"{semmem.api_url}/v1/status", headers=admin).json()
        assert status["configuration"]["reloads"] == {"applied": 1, "refused": 1, "unchanged": 1}


@contextmanager
def running_semmem(folder: Path, override: Json, file: Path | None = None) -> Iterator[SemmemProcess]:
    """A semmem that serves by ``file``, which need not be a plain one."""
    config = semmem_config(folder / "data", override)
    path = folder / "config.yaml" if file is None else file
    if file is None:
        path.write_text(yaml.safe_dump(config))
    child = forked.child(BAG_OF_WORDS, ["serve", "--config", path], log=folder / "semmem.log")
    try:
        ready = child.wait_for(READY, timeout_s=START_S)
        semmem = SemmemProcess(
            child, folder / "data", int(ready[1].rpartition(":")[2]), f"http://{ready[2]}", f"http://{ready[3]}"
        )
        with semmem.http:
            yield semmem
    finally:
        child.terminate()
        assert child.wait(30) in (0, None)


def started(config: Path, folder: Path) -> Child:
    """From the first line of Python on."""
    argv = [sys.executable, "-m", BAG_OF_WORDS, "serve", "--config", str(config)]
    return Child("semmem", argv, log=folder / "semmem.log", cwd=HOME, environ=os.environ | {"HF_HUB_OFFLINE": "1"})


@pytest.mark.long(5)
def test_a_config_map_that_is_replaced_by_its_link_is_read_through_the_new_one(tmp_path: Path) -> None:
    """Kubernetes keeps each generation in a folder of its own, and swaps the link ``..data`` that the files lead to."""
    mounted = tmp_path / "mounted"
    for number, limit in enumerate((3, 8)):
        generation = mounted / f"..2026_0{number}"
        generation.mkdir(parents=True)
        config = semmem_config(tmp_path / "data", merged(IN_PROCESS, {"memory": {"default_retrieval_limit": limit}}))
        (generation / "config.yaml").write_text(yaml.safe_dump(config))
    (mounted / "..data").symlink_to("..2026_00")
    (mounted / "config.yaml").symlink_to("..data/config.yaml")
    with running_semmem(tmp_path, {}, mounted / "config.yaml") as semmem:
        assert semmem.api("GET", "/v1/config")["memory"]["default_retrieval_limit"] == 3
        (mounted / "..data_tmp").symlink_to("..2026_01")
        (mounted / "..data_tmp").rename(mounted / "..data")
        hang_up(semmem)
        eventually(lambda: reloads(semmem, "applied") == 1, within_s=60, what="the new generation is taken up")
        assert semmem.api("GET", "/v1/config")["memory"]["default_retrieval_limit"] == 8


@pytest.mark.long(6)
def test_a_hangup_while_semmem_starts_or_stops_ends_nothing(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(semmem_config(tmp_path / "data", IN_PROCESS)))
    child = started(config, tmp_path)
    try:
        handled = eventually(lambda: catches_hangups(child.process.pid), within_s=START_S, what="it listens")
        assert handled
        while not child.printed().count("semmem ready"):
            assert child.process.poll() is None
            child.process.send_signal(signal.SIGHUP)
            threading.Event().wait(0.02)
        child.process.terminate()
        while child.process.poll() is None:
            child.process.send_signal(signal.SIGHUP)
            threading.Event().wait(0.002)
        assert child.process.returncode == 0
    finally:
        child.terminate()
        child.wait(20)


def catches_hangups(pid: int) -> bool:
    """Whether the process has a handler of its own for SIGHUP; before that it is still the interpreter that starts."""
    status: Any = Path(f"/proc/{pid}/status").read_text()
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught, 16) >> (signal.SIGHUP - 1) & 1)
