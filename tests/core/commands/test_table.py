"""What the command says to somebody who knows nothing of it yet."""

from __future__ import annotations

import pytest

from semmem.cli import main
from semmem.commands.command import Exit
from semmem.commands.table import RUNS, root_parser


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == Exit.MISUSED

    told = " ".join(capsys.readouterr().err.split())
    assert "run the sidecar until SIGTERM" in told


def test_the_help_says_where_it_listens_and_keeps_its_data_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])

    told = " ".join(capsys.readouterr().out.split())
    assert "127.0.0.1:50051 for Envoy, 127.0.0.1:8080 (management API) and 127.0.0.1:9090 (health, metrics)" in told
    assert "keeps everything in ./data" in told


def test_every_function_is_of_a_command_that_is_declared() -> None:
    commands = [parser.prog for parser in root_parser().everything if parser.command.run is not None]
    assert commands == [f"semmem {name}" for name in RUNS]
