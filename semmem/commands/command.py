"""A command, the parser that is made from it, and how it fails: a place, a reason, a code that stays the same, and an
exit status for the kind of failure."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NoReturn, Self


class Exit(IntEnum):
    """Every exit status, and what it ``means``."""

    means: str

    def __new__(cls, status: int, means: str) -> Self:
        made = int.__new__(cls, status)
        made._value_, made.means = status, means
        return made

    DONE = 0, "done"
    NOT_DONE = 1, "not done, or not all of it"
    MISUSED = 2, "the arguments or the configuration are wrong; nothing was begun"
    NO_ANSWER = 3, "no semmem answered: nothing listens there, or it took too long"
    REFUSED = 4, "no token, one that is not good (401), or one that may not do this (403)"
    NOT_FOUND = 5, "there is no such thing (404)"
    NOT_NOW = 6, "not now: too many calls (429), somebody else is at it (409), or a part is away (503)"
    PENDING = 7, "the erasure is pending: hidden from now on, and finished later (503 ERASURE_PENDING)"
    INTERRUPTED = 130, "interrupted by Ctrl-C"  # what shells say of a program that Ctrl-C ended
    PIPE_CLOSED = 141, "whoever read standard output went away"


class Failure(Exception):
    """A command cannot go on. ``path``: the place, a URL, file, option or configuration key; ``reason``: a sentence
    without a full stop; ``code``: stable, in capitals; ``status``: its exit; ``text``: what people read, where that
    is more than place and reason; ``more``: further JSON members."""

    def __init__(
        self, code: str, path: str, reason: str, status: Exit = Exit.NOT_DONE, *, text: str = "", **more: Any
    ) -> None:
        super().__init__(text or (f"{path}: {reason}" if path else reason))
        self.code = code
        self.path = path
        self.reason = reason
        self.status = status
        self.more = more

    def shown(self) -> dict[str, Any]:
        """For a program to read."""
        told = {"code": self.code, "path": self.path, "reason": self.reason, "exit_status": int(self.status)}
        return {"error": told | self.more}


def misused(path: str, reason: str) -> Failure:
    """Arguments that no command can be run with."""
    return Failure("USAGE", path, reason, Exit.MISUSED)


def report(failure: Failure, command: str, *, as_json: bool) -> None:
    """One line on standard error. ``command``: as it was called."""
    sys.stderr.write(f"{json.dumps(failure.shown())}\n" if as_json else f"{command}: {failure}\n")


LOCAL_EXITS = (Exit.DONE, Exit.NOT_DONE, Exit.MISUSED, Exit.INTERRUPTED, Exit.PIPE_CLOSED)
"""Of a command that asks nobody."""
ASKING_EXITS = tuple(each for each in Exit if each is not Exit.PENDING)
"""Of a command that asks a running semmem."""

Run = Callable[[argparse.Namespace], int]
Argument = Callable[[argparse._ActionsContainer], object]
"""What adds an argument or an option to a parser."""


def argument(*names: str, **more: Any) -> Argument:
    """As ``add_argument`` of argparse takes it."""
    return lambda parser: parser.add_argument(*names, **more)


def one_of(*options: Argument, required: bool = False) -> Argument:
    """Options of which at most one may be given."""

    def add(parser: argparse._ActionsContainer) -> None:
        group = parser.add_mutually_exclusive_group(required=required)
        for option in options:
            option(group)

    return add


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """``does``: one line. ``about``: paragraphs. ``run``: its exit status, or Failure; None for a group of ``inside``.
    ``examples``: what one would type, and what that is for. ``prints``: what ``--json`` prints; empty where there is
    no such option. ``also``: other names. ``files`` and ``environment``: what is read beside the arguments."""

    name: str
    does: str
    about: str
    run: Run | None = None
    arguments: Sequence[Argument] = ()
    examples: Sequence[tuple[str, str]] = ()
    prints: str = ""
    also: Sequence[str] = ()
    inside: Sequence[Command] = ()
    exits: Sequence[Exit] = LOCAL_EXITS
    files: Sequence[tuple[str, str]] = ()
    environment: Sequence[tuple[str, str]] = ()


ERRORS_TOO = "; errors as JSON too"
"""Ends the help of every ``--json``."""


class Parser(argparse.ArgumentParser):
    """Of one command; ``page`` writes its help."""

    def __init__(self, command: Command, prog: str, page: Callable[[Parser], str], **more: Any) -> None:
        super().__init__(prog=prog, allow_abbrev=False, add_help=False, **more)
        self.command = command
        self._page = page
        self.inside: dict[str, Parser] = {}
        for each in command.arguments:
            each(self)
        self.add_argument("-h", "--help", action="help", help="print this page, and end")
        if command.prints:
            self.add_argument("--json", action="store_true", help=f"print {command.prints}{ERRORS_TOO}")
        self.set_defaults(command=command, named=prog, json=False)
        self._add_inside(command)

    def _add_inside(self, command: Command) -> None:
        if not command.inside:
            return
        parsers = self.add_subparsers(metavar="COMMAND", parser_class=Parser)
        for child in command.inside:
            prog = f"{self.prog} {child.name}"
            self.inside[child.name] = parsers.add_parser(
                child.name, aliases=list(child.also), command=child, prog=prog, page=self._page
            )

    @property
    def everything(self) -> list[Parser]:
        """This one and those inside of it, in the table's order."""
        return [self, *(found for child in self.inside.values() for found in child.everything)]

    @property
    def shown_actions(self) -> list[argparse.Action]:
        """Positional arguments first, then options; without the commands inside."""
        found = [action for action in self._actions if not isinstance(action, argparse._SubParsersAction)]
        return sorted(found, key=lambda action: bool(action.option_strings))

    def called(self, words: Sequence[str]) -> str:
        """The command that these words name, as one would type it."""
        child = next((found for found in self.inside.values() if words and words[0] in found.names), None)
        return self.prog if child is None else child.called(words[1:])

    @property
    def names(self) -> tuple[str, ...]:
        """Its name and its other ones."""
        return (self.command.name, *self.command.also)

    def format_help(self) -> str:
        return self._page(self)

    def error(self, message: str) -> NoReturn:
        """Raises Failure in place of an exit."""
        raise misused("", f"{message} ({self.prog} --help tells more)")
