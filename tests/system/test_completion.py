"""Completion in real shells of Debian: fish is asked what it would offer, zsh is typed at in a terminal of its own.

Bash, which every machine has, is asked by tests/core/commands/test_manual.py, whose lines are asked here as well.
"""

from __future__ import annotations

import os
import pty
import shlex
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from semmem.commands.table import SCRIPTS, root_parser
from tests.core.commands.test_manual import COMPLETED, named

TAB, TELL = b"\t", b"\x18"
ZSH = """
PS1= && unset zle_bracketed_paste && autoload -U compinit && compinit -u -D && source {script}
compadd() {{ local -a _seen; builtin compadd -O _seen "$@"; print -rl -- $_seen >> {told}; builtin compadd "$@" }}
bindkey '^I' complete-word
_tell() {{ BUFFER=exit; zle accept-line }}
zle -N _tell && bindkey '^X' _tell
"""
"""What is offered is written down on its way."""


def typed(words: list[str]) -> str:
    return " ".join(["semmem", *(shlex.quote(word) if word else "" for word in words)])


def of_fish(words: list[str], folder: Path, script: Path) -> set[str]:
    asked = f"source {script}; complete -C {shlex.quote(typed(words))}"
    argv = ["fish", "--no-config", "-c", asked]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, cwd=folder, check=True)
    assert done.stderr == ""
    return {line.partition("\t")[0] for line in done.stdout.splitlines()}


def of_zsh(words: list[str], folder: Path, script: Path) -> set[str]:
    home = script.parent
    (home / ".zshrc").write_text(ZSH.format(script=script, told=home / "told"))
    environment = {"PATH": os.environ["PATH"], "TERM": "dumb", "HOME": str(home), "ZDOTDIR": str(home)}
    ours, theirs = pty.openpty()
    shell = subprocess.Popen(
        ["zsh", "-d", "-i"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env=environment,
        start_new_session=True,
    )
    os.close(theirs)
    printed = threading.Thread(target=_read_out, args=(ours,), daemon=True)
    printed.start()
    os.write(ours, typed(words).encode() + TAB + TELL)
    try:
        shell.wait(60)
    finally:
        shell.kill()
        printed.join(10)
        os.close(ours)
    return set((home / "told").read_text().split())


def _read_out(terminal: int) -> None:
    """A terminal that nobody reads is full at some time."""
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:  # how Linux says that the shell has gone
        pass


SHELLS: dict[str, Callable[[list[str], Path, Path], set[str]]] = {"fish": of_fish, "zsh": of_zsh}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("words", "offered"), COMPLETED, ids=named)
def test_it_completes_commands_options_values_and_files(
    shell: str, words: list[str], offered: set[str], tmp_path: Path
) -> None:
    folder, home = tmp_path / "here", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    for file in ("config.yaml", "other.jsonl"):
        (folder / file).touch()
    script = home / f"semmem.{shell}"
    script.write_text(SCRIPTS[shell](root_parser()))
    if shell == "fish" and not words[-1].startswith("-"):  # it offers options for a dash alone
        offered = {word for word in offered if not word.startswith("-")}
    assert SHELLS[shell](words, folder, script) == offered
