"""Standard output for what was asked for, standard error for whatever else is to be said."""

import argparse
import json
import os
import sys
from collections.abc import Iterable
from typing import Any

BAR_CHARS = 30


def say(line: str) -> None:
    """To the person at the terminal."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def write(lines: Iterable[str]) -> None:
    """Text, a line at a time."""
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def document(told: Any) -> None:
    """One JSON value on a line of its own."""
    write([json.dumps(told)])


def answer(given: argparse.Namespace, told: Any, lines: Iterable[str]) -> None:
    """What a command was asked for: with ``--json`` a document, else the lines."""
    document(told) if given.json else write(lines)


def members(told: dict[str, Any]) -> list[str]:
    """A flat answer as text: a line for each member."""
    wide = max(map(len, told), default=0)
    return [f"{name.replace('_', ' '):{wide}}  {_plain(value)}" for name, value in told.items()]


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {_plain(inner)}" for name, inner in value.items())
    return str(value) if isinstance(value, str | int | float) else json.dumps(value)


def one_line(text: str) -> str:
    """Without what would break the line, or what a terminal takes for a command."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


class Progress:
    """One line on standard error that is drawn over itself; nothing where no person looks. ``total`` 0: not known."""

    def __init__(self, what: str, total: int = 0) -> None:
        self._what = what
        self._total = total
        self._seen = sys.stderr.isatty()
        self._drawn = 0

    def at(self, done: int, more: str = "", total: int | None = None) -> None:
        """``done`` of the total; ``more`` stands behind the bar."""
        if self._seen:
            line = bar(self._what, done, self._total if total is None else total, more)
            sys.stderr.write(f"\r{line:{self._drawn}}")
            sys.stderr.flush()
            self._drawn = len(line)

    def end(self) -> None:
        """What comes next begins on a new line."""
        if self._drawn:
            sys.stderr.write("\n")
            sys.stderr.flush()
            self._drawn = 0


def bar(what: str, done: int, total: int, more: str = "") -> str:
    """A line for how far something is."""
    if total <= 0:
        return f"{what} {more or done}"
    share = min(1.0, done / total)
    drawn = "#" * round(BAR_CHARS * share)
    return f"{what} [{drawn:.<{BAR_CHARS}}] {share:4.0%}  {more or f'{done} of {total}'}"


def give_up_output() -> None:
    """Nobody reads what is still to be written: the interpreter shall not complain about it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
