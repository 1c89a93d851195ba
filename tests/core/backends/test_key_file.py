"""The key file: made once, whole, private; a damaged one is named."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from semmem.backends.key_file import KEY_BYTES, read_or_make


def test_a_key_is_made_once_in_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "data" / "fence.key"
    key = read_or_make(path)
    assert len(key) == KEY_BYTES
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_or_make(path) == key
    assert [file.name for file in path.parent.iterdir()] == ["fence.key"]


def test_another_place_has_another_key(tmp_path: Path) -> None:
    assert read_or_make(tmp_path / "a") != read_or_make(tmp_path / "b")


def test_many_who_ask_at_the_same_time_get_the_same_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as threads:
        keys = set(threads.map(lambda _: read_or_make(tmp_path / "fence.key"), range(64)))
    assert len(keys) == 1


def test_a_file_that_others_may_read_is_made_private(tmp_path: Path) -> None:
    path = tmp_path / "fence.key"
    key = read_or_make(path)
    path.chmod(0o644)
    assert read_or_make(path) == key
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "abc", "0" * 63, "0" * 66, "g" * 64, "0" * 64 + "\nx"])
def test_a_file_without_a_key_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "fence.key"
    path.write_text(text)
    with pytest.raises(OSError, match="holds no key") as refused:
        read_or_make(path)
    assert refused.value.filename == str(path)
    assert path.read_text() == text


def test_a_folder_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        read_or_make(tmp_path / "file" / "fence.key")
