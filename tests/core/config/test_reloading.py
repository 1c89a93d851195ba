"""Which settings a reload takes up: every key is marked, and the differences between two configurations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from semmem.config import Settings, changed_keys, digest, load, restart_reasons, schema
from semmem.config.values import Section
from tests.support.configuration import LONG_SECRET, MODEL, loaded


def test_every_key_is_marked_as_taken_up_or_not_and_only_keys_are_named() -> None:
    assert set(restart_reasons()) == {".".join(path) for path, *_ in schema.leaves()}
    for section in _sections(Settings):
        named = [] if isinstance(section.restart, str) else " ".join(section.restart).split()
        assert set(named) <= set(section.model_fields), section.__name__
        assert len(set(named)) == len(named), section.__name__


def _sections(section: type[Section]) -> Iterator[type[Section]]:
    yield section
    for field in section.model_fields.values():
        inner: Any = schema.item_type(field.annotation) or field.annotation
        if schema.is_section(inner):
            yield from _sections(inner)


def test_what_needs_a_restart_has_a_reason() -> None:
    reasons = restart_reasons()
    assert reasons["listeners.grpc.address"]
    assert reasons["memory.embedding.model"]
    assert reasons["data_dir"]
    assert not reasons["memory.default_similarity_threshold"]


def test_the_page_says_of_each_key_what_a_change_takes() -> None:
    page = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text()
    table = page[page.index("# Every key") :]
    rows = [[cell.strip(" `") for cell in line.split("|")] for line in table.splitlines() if line.startswith("| `")]
    restarts = {cells[1] for cells in rows if cells[3].startswith("*Restart.* ")}
    assert restarts == {key for key, reason in restart_reasons().items() if reason}
    assert "data_dir" in restarts
    assert "memory.default_similarity_threshold" not in restarts


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("", []),
        ("memory: {default_retrieval_limit: 5}", []),
        ("memory: {default_retrieval_limit: 6}", ["memory.default_retrieval_limit"]),
        (f"external_models: [{MODEL}]", ["external_models"]),
        ("log: {level: debug}\ndata_dir: /d", ["data_dir", "log.level"]),
        (f"listeners: {{api: {{admin_token: {LONG_SECRET}}}}}", ["listeners.api.admin_token"]),
    ],
)
def test_the_keys_that_differ_are_named(tmp_path: Path, text: str, keys: list[str]) -> None:
    assert changed_keys(Settings(), loaded(tmp_path, text)) == keys


def test_a_digest_is_of_the_configuration_and_tells_nothing_of_a_secret(tmp_path: Path) -> None:
    assert digest(Settings()) == digest(load(None, {}))
    assert digest(Settings()) != digest(loaded(tmp_path, "memory: {default_retrieval_limit: 6}"))
    token = "listeners: {api: {admin_token: %s}}"
    assert digest(loaded(tmp_path, token % LONG_SECRET)) == digest(loaded(tmp_path, token % f"{LONG_SECRET}-2"))
    assert digest(loaded(tmp_path, token % LONG_SECRET)) != digest(Settings())
