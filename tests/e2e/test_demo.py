"""The demo as a stranger runs it: a command, in a folder of its own, that leaves nothing behind."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pytest

from demo.folder import Folder
from demo.ports import HOST, Ports
from demo.processes import Failed
from demo.stack import HOME
from tests.support import forked
from tests.support.harness import ENVOY, StandInModel, eventually

Process = subprocess.Popen[bytes] | forked.Forked
Begin = Callable[[list[str], dict[str, str], IO[bytes]], Process]
LAST_LINE = r"semmem demo: ok: start [\d.]+ s, first conversation [\d.]+ s, learnt [\d.]+ s, recalled [\d.]+ s,"


def as_a_stranger(words: list[str], environ: dict[str, str], output: IO[bytes]) -> subprocess.Popen[bytes]:
    """``python -m demo``, which starts others like that."""
    argv = [sys.executable, "-m", "demo", *words]
    return subprocess.Popen(
        argv, cwd=HOME, env=environ, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
    )


def in_forks(words: list[str], environ: dict[str, str], output: IO[bytes]) -> forked.Forked:
    """The same, where neither it nor those that it starts import anything anew."""
    return forked.Forked(forked.STARTS_FORKS, ["demo", *words], environ=environ, stdout=output, stderr=output)


@contextmanager
def demo(
    folder: Path, *options: str, envoy: Path = ENVOY, begin: Begin = in_forks, **variables: str
) -> Iterator[Process]:
    """A demo in a process group of its own; what it prints is in ``folder``/printed."""
    words = ["--data-dir", str(folder / "data"), "--envoy", str(envoy), *options]
    environ = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1", **variables}
    with (folder / "printed").open("wb") as output:
        process = begin(words, environ, output)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(30)


def run(folder: Path, *options: str, envoy: Path = ENVOY, begin: Begin = in_forks, **variables: str) -> tuple[int, str]:
    """Its exit status and everything it printed."""
    with demo(folder, *options, envoy=envoy, begin=begin, **variables) as process:
        code = process.wait(115)
    return code, (folder / "printed").read_text()


def left_behind(folder: Path) -> Sequence[str]:
    """The command lines of processes that name the folder, or print into it."""
    commands = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            printing = str((process / "fd" / "1").readlink())
        except OSError:  # it ended meanwhile
            continue
        if str(folder) in command or printing.startswith(str(folder)):
            commands.append(command)
    return commands


@pytest.mark.long(12)
def test_the_demo_shows_what_it_promises(tmp_path: Path) -> None:
    code, printed = run(tmp_path, begin=as_a_stranger)

    assert code == 0, printed
    assert re.search(LAST_LINE, printed.splitlines()[-1])
    assert "the answer was captured from its SSE stream" in printed
    assert "stored for alice: [semantic]" in printed
    assert "nothing was added for bob (outcome no_hits)" in printed
    assert [char for char in printed if char < " " and char != "\n"] == []
    assert left_behind(tmp_path) == []
    assert {path.name for path in tmp_path.iterdir()} == {"data", "printed"}


@pytest.mark.long(12)
def test_the_demo_takes_other_sentences_and_fails_when_they_are_not_remembered(tmp_path: Path) -> None:
    said: dict[str, Any] = {"FACT": "I live in Lisbon.", "QUESTION": "Where do I live?", "USER_ID": "bob"}

    code, printed = run(tmp_path, EXPECT="Porto", **said)

    assert code == 1, printed
    assert "stored for bob: [semantic]" in printed
    assert "step 'recalled' failed: 'Porto' is not in what was added to the prompt" in printed
    assert left_behind(tmp_path) == []


@pytest.mark.long(12)
def test_the_demo_runs_before_a_model_that_shows_nothing(tmp_path: Path, model: StandInModel) -> None:
    code, printed = run(
        tmp_path, "--upstream", model.url + "/v1", UPSTREAM_API_KEY="sk-of-the-demo", UPSTREAM_MODEL="m1"
    )

    assert code == 0, printed
    assert "does not show its prompt" in printed
    received = [r for r in model.received if r.header("authorization") == "Bearer sk-of-the-demo"]
    assert len(received) == 3
    assert all(b'"model":"m1"' in request.body.replace(b" ", b"") for request in received)
    written = [path for path in (tmp_path / "data").rglob("*") if path.is_file() and b"sk-of-the" in path.read_bytes()]
    assert written == []


@contextmanager
def staying(folder: Path, port: int) -> Iterator[tuple[Process, str]]:
    """A demo that stays up, and what it printed until then."""
    printed = folder / "printed"
    with demo(folder, "--stay", "--port", str(port)) as process:
        eventually(
            lambda: "Ctrl-C ends it." in printed.read_text() or process.poll() is not None, within_s=110, what="up"
        )
        assert process.poll() is None, printed.read_text()
        yield process, printed.read_text()


def ctrl_c(process: Process) -> int:
    os.killpg(process.pid, signal.SIGINT)
    return process.wait(30)


def free_port() -> int:
    """The first of three that are free just now."""
    for _ in range(100):
        with socket.create_server((HOST, 0)) as server:
            first = int(server.getsockname()[1])
        with suppress(Failed):
            Ports.starting_at(first)
            return first
    raise AssertionError("no three free ports in a row")


def printed_commands(printed: str) -> list[list[str]]:
    """The curl lines, word by word."""
    lines = re.findall(r"^  curl (?:.*\\\n)*.*$", printed, re.MULTILINE)
    return [shlex.split(line.replace("\\\n", " ")) for line in lines]


def outcome_of(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=True).stdout


@pytest.mark.long(25)
@pytest.mark.timeout(240)  # two starts, on a busy machine
def test_what_it_printed_works_until_ctrl_c_and_again_after_a_restart(tmp_path: Path) -> None:
    port = free_port()
    with staying(tmp_path, port) as (process, printed):
        assert len(left_behind(tmp_path)) > 2
        commands = printed_commands(printed)
        first = [outcome_of(command) for command in commands]
        assert ctrl_c(process) == 0
    assert left_behind(tmp_path) == []
    ended = (tmp_path / "printed").read_text()

    with staying(tmp_path, port) as (process, printed):
        again = [outcome_of(command) for command in commands]
        assert ctrl_c(process) == 0

    assert len(commands) == 2
    assert all("10,000" in answer for answer in first + again)
    assert ended.splitlines()[-1] == "semmem demo: ended by SIGINT"
    assert "found the memories of an earlier run (alice has 1): kept" in printed
    assert "known from an earlier run: [semantic]" in printed
    assert printed_commands(printed) == commands
    assert len(list((tmp_path / "data" / "logs").iterdir())) == 2


def test_a_second_run_in_the_same_folder_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "data")
    with folder.held():
        folder.write("demo.yaml", "of the first run")

        code, printed = run(tmp_path, "--port", str(free_port()))

        assert code == 1
        assert f"a demo is already running in {folder.path} (process {os.getpid()})" in printed
        assert "make run DATA_DIR=" in printed
        assert {path.name for path in folder.path.iterdir()} == {"run.lock", "demo.yaml"}
        assert (folder.path / "demo.yaml").read_text() == "of the first run"
    assert left_behind(folder.path) == []


def test_a_taken_port_is_said_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]

        code, printed = run(tmp_path, "--port", str(port))

    assert code == 1
    assert f"another program listens on port {port} (Envoy)" in printed
    assert re.search(r"make run PORT=\d+", printed)
    assert not (tmp_path / "data" / "logs").exists()


def test_a_child_that_cannot_start_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    broken = tmp_path / "not-envoy"
    broken.write_text("#!/bin/sh\necho this is not an Envoy\nexit 3\n")
    broken.chmod(0o755)

    code, printed = run(tmp_path, envoy=broken)

    assert code == 1
    assert "step 'start' failed: envoy ended with status 3" in printed
    assert "this is not an Envoy" in printed
    assert left_behind(tmp_path / "data") == []


def test_a_user_the_demo_cannot_sign_in_is_refused_before_anything_starts(tmp_path: Path) -> None:
    code, printed = run(tmp_path, USER_ID="alice\r\nx-user-id: bob")

    assert code == 1
    assert "USER_ID must match" in printed
    assert not (tmp_path / "data").exists()
