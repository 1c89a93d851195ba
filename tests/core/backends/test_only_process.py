"""A second process on one SQLite journal is kept out."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from semmem.backends.sql.file import OnlyProcess
from semmem.ports.errors import JournalError


def test_the_second_is_told_who_is_in_its_way_and_comes_in_when_the_first_has_gone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "journal.db"
    first, second = OnlyProcess(path), OnlyProcess(path)
    first.open()
    with pytest.raises(JournalError, match=r"another semmem process has .*journal.db: give each a data_dir of its own"):
        second.open()
    first.close()
    second.open()
    first.close()
    with pytest.raises(JournalError):
        first.open()
    second.close()
    assert path.with_name("journal.db.lock").stat().st_mode & 0o777 == 0o600


def test_nobody_is_kept_out_by_a_process_that_died_or_by_a_child_of_it(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    program = (
        "import os, subprocess, sys\n"
        "from pathlib import Path\n"
        "from semmem.backends.sql.file import OnlyProcess\n"
        "OnlyProcess(Path(sys.argv[1])).open()\n"
        "child = subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL)\n"  # nor does it keep our pipe open
        "print(child.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    died = subprocess.run([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True, check=False)
    assert died.returncode == -9
    only = OnlyProcess(path)
    only.open()
    only.close()
    os.kill(int(died.stdout), signal.SIGKILL)  # it was there all the while


def test_a_place_where_no_lock_can_be_is_a_journal_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JournalError):
        OnlyProcess(tmp_path / "file" / "journal.db").open()
