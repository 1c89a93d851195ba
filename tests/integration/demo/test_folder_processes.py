"""A folder is in use for as long as any process of a run is alive, and no longer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from demo.folder import Folder, InUse
from demo.stack import HOME

DEMO = """
import sys, time
from pathlib import Path
from demo.folder import Folder
from demo.processes import Children

folder = Folder(Path(sys.argv[1]))
with folder.held():
    children = Children(folder.new_logs(), cwd=Path("/"), inherited=folder.inherited, started=folder.note)
    print(children.start("semmem", ["sleep", "60"], {}).pid, flush=True)
    time.sleep(60)
"""


def test_what_a_killed_run_left_behind_is_named_until_it_is_gone(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", DEMO, str(tmp_path)]
    with subprocess.Popen(argv, cwd=HOME, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        left = int(demo.stdout.readline())
        demo.kill()

    with pytest.raises(InUse, match=rf"was killed and left processes behind: semmem\..*kill {left}$"):
        _hold(tmp_path)

    os.kill(left, signal.SIGKILL)
    _hold_within(tmp_path, 5.0)


def test_folders_are_removed_before_anything_is_installed(tmp_path: Path) -> None:
    _hold(tmp_path)

    argv = [sys.executable, "-S", "-m", "demo.folder", str(tmp_path)]
    done = subprocess.run(argv, cwd=HOME, capture_output=True, text=True, timeout=20, check=True)

    assert "removed" in done.stdout
    assert not tmp_path.exists()


def _hold(path: Path) -> None:
    with Folder(path).held():
        pass


def _hold_within(path: Path, seconds: float) -> None:
    """A killed process holds its files for a moment longer."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return _hold(path)
        except InUse:
            assert time.monotonic() < deadline
            time.sleep(0.05)
