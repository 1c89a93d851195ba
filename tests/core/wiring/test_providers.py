"""Where vectors can come from, as the API lists it."""

from __future__ import annotations

from pathlib import Path

import pytest

from semmem.wiring.models import providers
from tests.support.configuration import loaded


@pytest.mark.parametrize(
    ("rules", "signature", "expected"),
    [
        ("source: none", "none/words/384", {}),
        (
            "source: auto, remote: {url: 'http://x', model: m}",
            "openai/m/384",
            {"remote": "configured available active"},
        ),
        ("source: local, model: nobody/made", "sentence-transformers/nobody/made/384", {"local": "configured active"}),
        ("source: static, static_dir: '{here}'", "static/a/384", {"static": "configured available active"}),
        ("source: none, static_dir: '{here}'", "none/words/384", {"static": "available"}),
    ],
)
def test_a_source_is_configured_available_active(
    tmp_path: Path, rules: str, signature: str, expected: dict[str, str]
) -> None:
    text = rules.replace("{here}", str(tmp_path))
    settings = loaded(tmp_path, f"memory: {{embedding: {{onnx_dir: '{tmp_path}', {text}}}}}")
    listed = providers(settings.memory.embedding, signature)
    assert [each["name"] for each in listed] == ["remote", "local", "static"]
    for each in listed:
        if each["name"] == "local" and "local" not in expected:
            assert not each["active"]  # whether the shipped model is here depends on the machine
            continue
        told = {word for word in ("configured", "available", "active") if each[word]}
        assert told == set(expected.get(each["name"], "").split()), each
