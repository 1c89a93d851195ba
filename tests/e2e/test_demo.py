"""The demo as a stranger runs it: a command, in a folder of its own, that leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from demo.stack import HOME
from tests.support.harness import ENVOY, StandInModel, eventually

LAST_LINE = r"semmem demo: ok: start [\d.]+ s, first conversation [\d.]+ s, learnt [\d.]+ s, recalled [\d.]+ s,"


@contextmanager
def demo(folder: Path, *options: str, envoy: Path = ENVOY, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """``python -m demo`` in a process group of its own; what it prints is in ``folder``/printed."""
    argv = [sys.executable, "-m", "demo", "--data-dir", str(folder / "data"), "--envoy", str(envoy), *options]
    environ = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1", **variables}
    with (folder / "printed").open("wb") as output:
        process = subprocess.Popen(
            argv, cwd=HOME, env=environ, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(30)


def run(folder: Path, *options: str, envoy: Path = ENVOY, **variables: str) -> tuple[int, str]:
    """Its exit status and everything it printed."""
    with demo(folder, *options, envoy=envoy, **variables) as process:
        code = process.wait(115)
    return code, (folder / "printed").read_text()


def left_behind(folder: Path) -> Sequence[str]:
    """The command lines of processes that name the folder."""
    commands = []
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            commands.append(cmdline.read_bytes().replace(b"\0", b" ").decode())
        except OSError:  # it ended meanwhile
            continue
    return [command for command in commands if str(folder) in command]


@pytest.mark.long(12)
def test_the_demo_shows_what_it_promises(tmp_path: Path) -> None:
    code, printed = run(tmp_path)

    assert code == 0, printed
    assert re.search(LAST_LINE, printed.splitlines()[-1])
    assert "the answer was captured from its SSE stream" in printed
    assert "stored for alice: [semantic]" in printed
    assert "nothing was added for bob (outcome no_hits)" in printed
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


@pytest.mark.long(12)
def test_ctrl_c_ends_everything(tmp_path: Path) -> None:
    printed = tmp_path / "printed"
    with demo(tmp_path, "--stay") as process:
        eventually(
            lambda: "Ctrl-C ends it." in printed.read_text() or process.poll() is not None, within_s=110, what="up"
        )
        assert process.poll() is None, printed.read_text()
        assert len(left_behind(tmp_path)) > 2
        command = printed.read_text().partition("  curl -s ")[2].partition("\n\n")[0]
        answer = subprocess.run(
            ["bash", "-c", "curl -s " + command], capture_output=True, text=True, timeout=20, check=True
        )
        assert "10,000" in answer.stdout

        os.killpg(process.pid, signal.SIGINT)

        assert process.wait(30) == 0
    assert left_behind(tmp_path) == []


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
