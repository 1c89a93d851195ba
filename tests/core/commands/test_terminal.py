"""Commands as processes: pipes that close early, Ctrl-C, standard input and output, and bars for people alone."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from semmem.cli import main
from semmem.commands.command import Exit
from semmem.commands.terminal import Progress, bar, members, one_line
from tests.core.commands.test_previewing import TOKEN, running

SECONDS = 60


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("SEMMEM_LISTENERS__API__ADMIN_TOKEN", TOKEN)
    with running(tmp_path) as found:
        yield found


def argv(*words: str) -> list[str]:
    return [sys.executable, "-m", "semmem", *words]


@pytest.mark.parametrize("words", [["help"], ["help", "--man"], ["list", "--user", "alice"]])
def test_a_reader_that_goes_away_ends_a_command_quietly(url: str, words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    asked = [*words, "--api", url] if words[0] == "list" else words
    done = subprocess.run(argv(*asked), stdout=writing, stderr=subprocess.PIPE, text=True, timeout=SECONDS)
    os.close(writing)
    assert (done.returncode, done.stderr) == (Exit.PIPE_CLOSED, "")


@contextmanager
def heeded(number: signal.Signals) -> Iterator[None]:
    """What starts the tests in the background may have them ignore a signal, and so what they start. Not told between
    fork and exec: gRPC's own threads are begun anew there, and complain in the program's name."""
    before = signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def test_ctrl_c_ends_a_command_with_a_line_and_its_status(url: str) -> None:
    words = argv("add", "-", "--user", "alice", "--api", url)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}

    with heeded(signal.SIGINT):
        adding = subprocess.Popen(words, text=True, bufsize=1, **pipes)  # type: ignore[call-overload]
    with adding:
        adding.stdin.write("User likes black tea\n")
        adding.stdin.flush()
        assert adding.stdout.readline().startswith("mem_")
        time.sleep(0.5)  # until it waits for the next line
        adding.send_signal(signal.SIGINT)
        out, err = adding.communicate(timeout=SECONDS)
    assert (adding.returncode, out) == (Exit.INTERRUPTED, "")
    assert err == "semmem: interrupted; what was begun may not be finished\n"


def test_a_memory_for_each_line_of_standard_input(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = "User likes black tea\n\nUser lives in Porto\nno\nUser is never told\n"
    words = argv("add", "-", "--user", "alice", "--json", "--api", url)
    done = subprocess.run(words, input=told, capture_output=True, text=True, timeout=SECONDS)
    assert [json.loads(line)["content"] for line in done.stdout.splitlines()] == [
        "User likes black tea",
        "User lives in Porto",
    ]
    assert done.returncode == 1
    error = json.loads(done.stderr)["error"]
    assert error["line"] == 3
    assert error["reason"].startswith("line 3 of standard input: answered 400 ")
    assert main(["list", "--user", "alice", "--all", "--json", "--api", url]) == 0
    listed = [json.loads(line)["content"] for line in capsys.readouterr().out.splitlines()]
    assert sorted(listed) == ["User likes black tea", "User likes green tea", "User lives in Porto"]


def test_progress_is_drawn_where_a_person_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    leader, follower = pty.openpty()
    with os.fdopen(follower, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        progress = Progress("import", 4)
        progress.at(1)
        progress.at(4)
        progress.end()
    time.sleep(0.01)
    drawn = os.read(leader, 4096).decode()
    os.close(leader)
    assert drawn.split("\r")[1].startswith("import [########......................]  25%  1 of 4")
    assert "100%  4 of 4\r\n" in drawn


def test_progress_is_silent_where_nobody_does(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress("import", 4)
    progress.at(2)
    progress.end()
    assert capsys.readouterr().err == ""


def test_a_bar_without_a_total_shows_what_there_is() -> None:
    assert bar("export", 17, 0) == "export 17"
    assert bar("export", 17, 0, "17 bytes") == "export 17 bytes"
    assert bar("x", 9, 3).endswith("100%  9 of 3")


def test_a_flat_answer_is_a_line_for_each_member() -> None:
    assert members({"users": 3, "over_quota": 0, "conflicts": [4], "journal": {"turns": 1}}) == [
        "users       3",
        "over quota  0",
        "conflicts   [4]",
        "journal     turns 1",
    ]


def test_a_line_holds_no_commands_for_the_terminal() -> None:
    assert one_line("a\x1b[31mb\nc\u202e") == "a [31mb c "


def test_nothing_heavy_is_loaded_before_the_command_is_known() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "semmem", "help"], capture_output=True, text=True, timeout=SECONDS
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "semmem.commands.table" in imported
    assert {"numpy", "fastapi", "grpc", "sqlalchemy", "torch", "pymilvus", "semmem.wiring"}.isdisjoint(imported)
