"""What a person sees of a slow step of setup: on a terminal, in a log of CI, and when it fails."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

from demo.stack import HOME

SCRIPT = [sys.executable, "-I", "-S", str(HOME / "demo" / "progress.py")]
"""With nothing but the standard library, as before setup."""


def step(log: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*SCRIPT, str(log), "1/4 torch", *command], capture_output=True, text=True, timeout=30)


def test_without_a_terminal_a_step_is_one_plain_line(tmp_path: Path) -> None:
    done = step(tmp_path / "log", "sh", "-c", "echo downloading; sleep 0.6; echo done")

    assert done.returncode == 0
    assert done.stdout in [f"1/4 torch ... {seconds} s\n" for seconds in range(10)]
    assert done.stderr == ""
    assert (tmp_path / "log").read_text().endswith("downloading\ndone\n")


def test_a_failed_step_shows_all_it_printed_and_keeps_its_status(tmp_path: Path) -> None:
    step(tmp_path / "log", "echo", "of an earlier step")

    done = step(tmp_path / "log", "sh", "-c", "echo no such version >&2; echo no space left; exit 3")

    assert done.returncode == 3
    assert "no such version\nno space left" in done.stderr
    assert str(tmp_path / "log") in done.stderr
    assert "of an earlier step" not in done.stderr


def test_a_command_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = step(tmp_path / "log", "no-such-python")

    assert done.returncode != 0
    assert "no-such-python: No such file or directory" in done.stderr


def test_on_a_terminal_one_line_moves_and_says_what_happens_now(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    argv = [*SCRIPT, str(tmp_path / "log"), "1/4 torch", "sh", "-c", "echo downloading; sleep 1.2"]
    subprocess.run(argv, stdout=theirs, timeout=30, check=True, env={**os.environ, "COLUMNS": "60"})
    os.close(theirs)

    shown = os.read(ours, 65536).decode()
    os.close(ours)

    assert shown.count("\n") == 1
    assert "1/4 torch ... 0 s  downloading" in shown
    assert shown.split("\r\033[K")[-1].rstrip() in ("1/4 torch ... 1 s", "1/4 torch ... 2 s")
