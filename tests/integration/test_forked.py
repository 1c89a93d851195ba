"""A semmem that the tests fork is what ``python -m`` would have started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from demo.stack import HOME
from tests.support import forked
from tests.support.copies import configured
from tests.support.harness import BAG_OF_WORDS, SHIPPED_EMBEDDER, eventually

READY_S = 60.0


@pytest.mark.parametrize("program", [BAG_OF_WORDS, SHIPPED_EMBEDDER])
@pytest.mark.parametrize("words", [["--version"], ["memory", "list", "--json"], ["no-such-command"]])
def test_in_the_same_environment_it_says_the_same_and_ends_with_the_same_status(
    program: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_DATA_DIR", "/proc/nowhere")
    fork = forked.finished(program, words, timeout_s=60)
    own = subprocess.run([sys.executable, "-m", program, *words], cwd=HOME, capture_output=True, text=True, timeout=60)
    assert (fork.returncode, fork.stdout, fork.stderr) == (own.returncode, own.stdout, own.stderr)


def test_it_has_a_session_and_files_of_its_own(tmp_path: Path) -> None:
    child = forked.child(BAG_OF_WORDS, ["serve", "--config", configured(tmp_path)], log=tmp_path / "log")
    try:
        child.wait_for("semmem ready", timeout_s=READY_S)
        assert os.getsid(child.pid) == os.getpgid(child.pid) == child.pid
        assert Path(f"/proc/{child.pid}/cwd").readlink() == HOME
        files = [os.readlink(f"/proc/{child.pid}/fd/{number}") for number in range(3)]
        assert files == ["/dev/null", str(tmp_path / "log"), str(tmp_path / "log")]
        child.terminate()
        assert child.wait(30) == 0
    finally:
        child.wait(0)


def test_a_kill_and_a_stop_reach_it_and_the_others_stay(tmp_path: Path) -> None:
    places = [tmp_path / "one", tmp_path / "other"]
    one, other = (
        forked.child(BAG_OF_WORDS, ["serve", "--config", configured(place)], log=place / "log") for place in places
    )
    try:
        for each in (one, other):
            each.wait_for("semmem ready", timeout_s=READY_S)
        os.kill(one.pid, signal.SIGSTOP)
        with pytest.raises(subprocess.TimeoutExpired):
            one.process.wait(0.2)
        os.kill(one.pid, signal.SIGKILL)
        time.sleep(0.2)
        os.kill(one.pid, 0)  # its id is not another's before somebody has asked how it ended
        assert one.process.wait(30) == -signal.SIGKILL
        eventually(lambda: not Path(f"/proc/{one.pid}").exists(), within_s=60, what="nothing is left of it")
        other.check_alive()
    finally:
        one.wait(0)
        other.terminate()
        assert other.wait(30) == 0
