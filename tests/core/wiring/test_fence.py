"""From config.yaml to the fence: whose key it has."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path

import pytest

from semmem.memory import Message, Role
from semmem.retrieval.context import render
from semmem.retrieval.fence import Fence
from semmem.wiring import backends
from tests.core.retrieval.talk import hit
from tests.support.configuration import LONG_SECRET, loaded

OTHER_SECRET = LONG_SECRET[::-1]


def mark(fence: Fence) -> str:
    return fence.mark("ada", "User likes tea")


def fence(folder: Path, injection: str = "", more: str = "", environ: dict[str, str] | None = None) -> Fence:
    folder.mkdir(exist_ok=True)
    text = f"data_dir: '{folder / 'data'}'\nmemory: {{injection: {{{injection}}}}}\n{more}"
    return backends.fence(loaded(folder, text, environ))


def test_by_default_the_key_is_made_once_for_a_data_folder(tmp_path: Path) -> None:
    one, again, other = fence(tmp_path / "a"), fence(tmp_path / "a"), fence(tmp_path / "b")
    assert mark(one) == mark(again) != mark(other)
    assert (tmp_path / "a" / "data" / "fence.key").exists()


def test_a_configured_key_is_the_same_everywhere_and_needs_no_file(tmp_path: Path) -> None:
    in_file = fence(tmp_path / "a", f"fence_key: {LONG_SECRET}")
    in_environment = fence(tmp_path / "b", environ={"SEMMEM_MEMORY__INJECTION__FENCE_KEY": LONG_SECRET})
    assert mark(in_file) == mark(in_environment) == mark(Fence(LONG_SECRET.encode()))
    assert not (tmp_path / "a" / "data").exists()


def test_the_key_in_the_file_can_be_copied_into_the_configuration(tmp_path: Path) -> None:
    made = fence(tmp_path / "a")
    digits = (tmp_path / "a" / "data" / "fence.key").read_text().strip()
    assert mark(fence(tmp_path / "b", f"fence_key: '{digits}'")) == mark(made)


def test_a_turned_key_makes_new_marks_and_the_former_one_is_kept(tmp_path: Path) -> None:
    turned = fence(tmp_path, f"fence_key: {OTHER_SECRET}, fence_key_former: {LONG_SECRET}")
    assert mark(turned) == mark(Fence(OTHER_SECRET.encode()))
    for key, known in ((LONG_SECRET, True), (OTHER_SECRET, True), ("neither of the two", False)):
        text, _, _ = render([hit("x")], tokens_max=500, mark=partial(Fence(key.encode()).mark, "ada"))
        assert turned.stands_in([Message(Role.SYSTEM, text or "")], "ada") is known


def test_replicas_without_a_key_in_common_are_told_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    more = "deployment: {replicas: 2}\njournal: {url: 'postgresql://db/semmem'}"
    milvus = "milvus: {address: 'milvus:19530'}"
    folder = tmp_path / "a"
    folder.mkdir()
    with caplog.at_level(logging.WARNING, logger="semmem.wiring.backends"):
        backends.fence(loaded(folder, f"data_dir: '{folder}'\nmemory: {{{milvus}}}\n{more}"))
        assert "fence_key is not set" in caplog.text
        caplog.clear()
        injection = f"injection: {{fence_key: {LONG_SECRET}}}"
        backends.fence(loaded(folder, f"data_dir: '{folder}'\nmemory: {{{milvus}, {injection}}}\n{more}"))
        assert caplog.text == ""
