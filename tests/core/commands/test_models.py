"""``semmem model show``, and the line with which ``semmem serve`` says that it is ready."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from semmem.cli import main
from semmem.commands.command import Exit
from semmem.commands.serving import ready_line
from semmem.wiring.app import Addresses
from tests.support.configuration import write


def test_the_model_that_would_be_used_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write(tmp_path, "memory: {embedding: {source: none}}")
    assert main(["model", "show", "--config", str(config), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["source"], told["dimension"]) == ("none", 384)
    assert "384" in told["signature"]
    assert main(["model", "show", "--config", str(config)]) == 0
    assert f"signature    {told['signature']}" in capsys.readouterr().out


def test_a_model_that_is_not_here_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write(tmp_path, "memory: {embedding: {source: static, static_dir: /nowhere}}")
    assert main(["model", "show", "--config", str(config), "--json"]) == Exit.NOT_DONE
    error = json.loads(capsys.readouterr().err)["error"]
    assert (error["code"], error["path"]) == ("NO_MODEL", "memory.embedding")
    assert "/nowhere" in error["reason"]


def test_readiness_is_one_line_for_people_and_for_programs() -> None:
    at = Addresses("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3")
    assert ready_line(at, as_json=False) == "semmem ready grpc=127.0.0.1:1 api=127.0.0.1:2 health=127.0.0.1:3"
    assert json.loads(ready_line(at, as_json=True))["ready"]["api"] == "127.0.0.1:2"
