"""Who starts a Milvus server, and who does not."""

from __future__ import annotations

import stat
import time
from pathlib import Path

import pytest

from bench.own_milvus import milvus_server
from demo.processes import Failed


def _environment(folder: Path, script: str) -> Path:
    """One whose Python is a script of the shell."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    (folder / ".ready").touch()
    return folder


def _say(_line: str) -> None:
    pass


def test_a_server_that_is_named_is_taken_and_none_is_started(tmp_path: Path) -> None:
    environment = _environment(tmp_path / "venv", "exit 1")
    with milvus_server("milvus:19530", tmp_path, _say, environment=environment) as address:
        assert address == "milvus:19530"


def test_without_the_environment_there_is_no_server(tmp_path: Path) -> None:
    with milvus_server("", tmp_path, _say, environment=tmp_path / "venv") as address:
        assert address == ""


def test_a_server_of_its_own_is_waited_for_and_ended(tmp_path: Path) -> None:
    script = f'echo $$ > {tmp_path}/pid; echo "milvus ready http://127.0.0.1:19530"; exec sleep 60'
    environment = _environment(tmp_path / "venv", script)
    with milvus_server("", tmp_path, _say, environment=environment) as address:
        assert address == "127.0.0.1:19530"
        pid = int((tmp_path / "pid").read_text())
        assert Path(f"/proc/{pid}").exists()
    assert not Path(f"/proc/{pid}").exists()


def test_a_server_that_does_not_start_or_ends_too_early_is_a_failure(tmp_path: Path) -> None:
    never = _environment(tmp_path / "never", "echo no room >&2; exit 3")
    with pytest.raises(Failed), milvus_server("", tmp_path, _say, environment=never):
        pass
    early = _environment(tmp_path / "early", 'echo "milvus ready http://127.0.0.1:19530"')
    with pytest.raises(Failed, match="ended"), milvus_server("", tmp_path, _say, environment=early):
        time.sleep(0.5)  # it ends meanwhile
