"""The folder of a run: one at a time, what is needed again stays, and only the demo's own folders are removed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from demo.folder import Folder, InUse, main, remove


def test_a_second_run_in_a_folder_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    with (
        Folder(tmp_path).held(),
        pytest.raises(InUse, match=rf"already running in {tmp_path} \(process {os.getpid()}\)"),
        Folder(tmp_path).held(),
    ):
        pass


def test_a_folder_is_free_after_its_run(tmp_path: Path) -> None:
    for _ in range(2):
        with Folder(tmp_path).held():
            pass

    assert (tmp_path / "run.lock").read_text() == f"demo {os.getpid()}\n"


def test_the_token_is_the_same_in_every_run_and_for_its_owner_alone(tmp_path: Path) -> None:
    first = Folder(tmp_path).admin_token()

    assert len(first) >= 32
    assert Folder(tmp_path).admin_token() == first
    assert stat.S_IMODE((tmp_path / "admin-token").stat().st_mode) == 0o600


def test_removing_leaves_alone_what_no_demo_made(tmp_path: Path) -> None:
    (tmp_path / "letters").write_text("dear Emma")

    assert "left alone" in remove(tmp_path)
    assert "nothing there" in remove(tmp_path / "elsewhere")
    assert (tmp_path / "letters").exists()


def test_a_folder_in_use_is_not_removed_and_one_whose_run_is_over_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Folder(tmp_path / "run")
    with folder.held():
        folder.write("demo.yaml", "data_dir: here\n")
        assert main([str(folder.path)]) == 1
        assert (folder.path / "demo.yaml").exists()

    assert main([str(folder.path)]) == 0
    assert not folder.path.exists()
    assert "already running" in capsys.readouterr().err
