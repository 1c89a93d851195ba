"""``semmem demo`` runs the demo of a clone as a process, with what it was asked, and says where there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from semmem.cli import main
from semmem.commands import serving as showing
from semmem.commands.command import Exit

HOME = Path(__file__).parents[3]


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a demo that says how it was called, and fails when a file says so."""
    folder = tmp_path / "clone" / "demo"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    program = "import pathlib, sys\nprint(*sys.argv[1:])\nsys.exit(int(pathlib.Path('fails').exists()))\n"
    (folder / "__main__.py").write_text(program)
    monkeypatch.setattr(showing, "CLONE", folder.parent)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_demo_is_given_what_was_asked_for(clone: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--port", "0", "--data-dir", "there", "--stay"]) == 0
    assert capfd.readouterr().out == "--data-dir there --port 0 --stay\n"
    (clone / "fails").touch()
    assert main(["demo"]) == Exit.NOT_DONE


def test_for_programs_what_it_says_goes_to_standard_error(clone: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (clone / "fails").touch()
    assert main(["demo", "--stay", "--json"]) == Exit.NOT_DONE
    printed = capfd.readouterr()
    assert printed.err == "--stay\n"
    assert json.loads(printed.out)["passed"] is False


def test_without_a_clone_it_says_where_the_demo_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(showing, "CLONE", tmp_path)
    assert main(["demo"]) == Exit.NOT_DONE
    assert f"semmem demo: {tmp_path}: the demo is not installed with the package" in capsys.readouterr().err


def test_every_option_is_one_of_the_demos(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["demo", "--help"])
    from demo.__main__ import main as demo

    with pytest.raises(SystemExit, match="0"):
        demo()
    known = capsys.readouterr().out
    assert main(["help", "demo", "--json"]) == 0
    [told] = json.loads(capsys.readouterr().out)["commands"]
    options = {spelt.split()[0] for spelt, _ in told["options"]} - {"-h,", "--json"}
    assert len(options) == 5
    assert not {option for option in options if option not in known}
