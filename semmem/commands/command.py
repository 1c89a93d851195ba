"""A command, and the parser that is made from it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from semmem.commands.failure import (
    DONE,
    INTERRUPTED,
    MISUSED,
    NO_ANSWER,
    NOT_DONE,
    NOT_FOUND,
    NOT_NOW,
    PIPE_CLOSED,
    REFUSED,
    misused,
)

LOCAL_EXITS = (DONE, NOT_DONE, MISUSED, INTERRUPTED, PIPE_CLOSED)
"""Of a command that asks nobody."""
ASKING_EXITS = (DONE, NOT_DONE, MISUSED, NO_ANSWER, REFUSED, NOT_FOUND, NOT_NOW, INTERRUPTED, PIPE_CLOSED)
"""Of a command that asks a running semmem."""

Run = Callable[[argparse.Namespace], int]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """``does``: one line. ``about``: paragraphs. ``run``: its exit status, or Failure; None for a group of ``inside``.
    ``examples``: what one would type, and what that is for. ``prints``: what ``--json`` prints; empty where there is
    no such option. ``also``: other names. ``files`` and ``environment``: what is read beside the arguments."""

    name: str
    does: str
    about: str
    run: Run | None = None
    arguments: Callable[[Parser], None] = lambda _parser: None
    examples: Sequence[tuple[str, str]] = ()
    prints: str = ""
    also: Sequence[str] = ()
    inside: Sequence[Command] = ()
    exits: Sequence[int] = LOCAL_EXITS
    files: Sequence[tuple[str, str]] = ()
    environment: Sequence[tuple[str, str]] = ()


class Parser(argparse.ArgumentParser):
    """Of one command; ``page`` writes its help."""

    def __init__(self, command: Command, prog: str, page: Callable[[Parser], str], **more: Any) -> None:
        super().__init__(prog=prog, allow_abbrev=False, add_help=False, **more)
        self.command = command
        self._page = page
        self.inside: dict[str, Parser] = {}
        command.arguments(self)
        self.add_argument("-h", "--help", action="help", help="print this page, and end")
        if command.prints:
            self.add_argument("--json", action="store_true", help=f"print {command.prints}; errors as JSON too")
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
