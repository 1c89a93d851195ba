"""Nothing of the command is undocumented: pages, docs/commands.md, roff, and completions are made of one table."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from semmem.cli import main
from semmem.commands.command import Exit, Parser
from semmem.commands.manual import markdown, page_of, roff, text
from semmem.commands.table import SCRIPTS, root_parser

PAGE = Path(__file__).parents[3] / "docs" / "commands.md"
EVERYTHING = root_parser().everything
COMMANDS = [parser for parser in EVERYTHING if parser.command.run is not None]
WITHOUT_JSON = {"semmem mcp"}
"""It speaks a protocol."""
NAMED = {
    *("serve", "check", "demo", "preview", "list", "show", "add", "forget", "export", "import", "backup"),
    *("restore", "reindex", "calibrate", "token", "users", "status", "model"),
}


def name(parser: Parser) -> str:
    return parser.prog


def test_the_page_of_commands_is_made_of_the_table() -> None:
    made = markdown([page_of(parser) for parser in EVERYTHING])
    assert PAGE.read_text(encoding="utf-8") == made, "put the output of `python -m semmem.commands` there"


@pytest.mark.parametrize("parser", EVERYTHING[1:], ids=name)
def test_every_option_is_named_in_its_commands_section_of_the_page(parser: Parser) -> None:
    section = PAGE.read_text(encoding="utf-8").split(f"## {parser.prog}\n")[1].split("\n## ")[0]
    for action in parser.shown_actions:
        for option in (each for each in action.option_strings if each.startswith("--") and each != "--help"):
            assert f"`{option}" in section, option


def test_there_is_every_command_that_shall_be() -> None:
    assert root_parser().inside.keys() >= NAMED


@pytest.mark.parametrize("parser", EVERYTHING, ids=name)
def test_every_command_argument_and_option_is_explained(parser: Parser) -> None:
    assert parser.command.does
    assert parser.command.about
    for action in parser.shown_actions:
        assert action.help, f"{parser.prog} {action.dest}"
        spelt = action.option_strings[-1] if action.option_strings else str(action.metavar or action.dest.upper())
        assert spelt in text(page_of(parser))


@pytest.mark.parametrize("parser", COMMANDS, ids=name)
def test_every_command_has_examples_exit_statuses_and_json(parser: Parser) -> None:
    command = parser.command
    assert command.examples
    assert set(command.exits) <= set(Exit)
    assert bool(command.prints) is (parser.prog not in WITHOUT_JSON)
    headings = {section.heading for section in page_of(parser).sections}
    assert headings >= {"synopsis", "description", "options", "examples", "exit status"}


@pytest.mark.parametrize("parser", COMMANDS, ids=name)
def test_every_example_is_a_call_that_the_parser_takes(parser: Parser) -> None:
    for example, _ in parser.command.examples:
        for call in re.findall(r"semmem ((?:[^|<>&()]|'[^']*')+)", example):
            assert root_parser().parse_args(shlex.split(call)).command.run is not None


def test_help_is_the_same_behind_the_command_and_before_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["token", "create", "--help"])
    behind = capsys.readouterr().out
    assert main(["help", "token", "create"]) == 0
    assert capsys.readouterr().out == behind
    assert behind.startswith("NAME\n    semmem token create - make a token")
    assert main(["help", "memories"]) == 0
    assert "Also called memories." in capsys.readouterr().out


def test_help_for_programs_has_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in told["commands"]] == [parser.prog for parser in EVERYTHING]


def test_the_manual_page_is_whole_and_what_groff_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "--man"]) == 0
    page = capsys.readouterr().out
    assert page == roff([page_of(parser) for parser in EVERYTHING])
    assert page.startswith(".TH SEMMEM 1 ")
    headings = re.findall(r"^\.SH (.+)$", page, re.MULTILINE)
    assert [heading.lower() for heading in headings if heading.startswith("SEMMEM")] == [p.prog for p in EVERYTHING[1:]]
    requests = set(re.findall(r"^(\.\w+)", page, re.MULTILINE))
    assert requests == {".TH", ".SH", ".SS", ".PP", ".TP"}
    if groff := shutil.which("groff"):
        done = subprocess.run([groff, "-man", "-Tutf8", "-ww"], input=page, capture_output=True, text=True, timeout=240)
        assert (done.returncode, done.stderr) == (0, "")
        assert "--older-than-days DAYS" in re.sub(r"\x1b\[[0-9;]*m|.\x08", "", done.stdout)


# --- completion ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", sorted(SCRIPTS))
def test_a_completion_knows_every_command_and_option(shell: str) -> None:
    script = SCRIPTS[shell](root_parser())
    for parser in EVERYTHING:
        for action in parser.shown_actions:
            for option in (each for each in action.option_strings if each.startswith("--")):
                spelt = f"-l {option[2:]}" if shell == "fish" else option
                assert any(parser.prog in line and spelt in line for line in script.splitlines()), option


def completed(words: list[str], folder: Path) -> set[str]:
    """What a real bash offers for the last of the words."""
    script = f"""
        {SCRIPTS["bash"](root_parser())}
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _semmem
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    bash = shutil.which("bash")
    assert bash is not None
    argv = [bash, "--norc", "-c", script, "bash", *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=240, cwd=folder)
    assert done.stderr == ""
    return set(done.stdout.split())


COMPLETED: list[tuple[list[str], set[str]]] = [
    (["to"], {"token"}),
    (["token", ""], {"create", "list", "revoke", "--help"}),
    (["token", "create", "--role", ""], {"admin", "operator", "user", "reader"}),
    (["token", "create", "--role", "reader", "--la"], {"--label"}),
    (["memories", "--status", "a"], {"active"}),
    (["list", "--user", "token", "--t"], {"--type", "--text", "--token-env"}),
    (["check", "conf"], {"config.yaml"}),
    (["list", "--config", ""], {"config.yaml", "other.jsonl"}),
    (["journal", "import", "oth"], {"other.jsonl"}),
    (["completion", ""], {"bash", "fish", "zsh", "--help", "--json"}),
    (["list", "--user", ""], set()),
]
"""What is typed after the command's name, the last of it under way, and what any shell offers."""


def named(each: list[str] | set[str]) -> str:
    return " ".join(sorted(each) if isinstance(each, set) else each)


@pytest.mark.parametrize(("words", "offered"), COMPLETED, ids=named)
def test_bash_completes_commands_options_values_and_files(tmp_path: Path, words: list[str], offered: set[str]) -> None:
    for file in ("config.yaml", "other.jsonl"):
        (tmp_path / file).touch()
    assert completed(["semmem", *words], tmp_path) == offered
