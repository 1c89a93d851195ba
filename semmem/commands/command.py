"""A command, the parser that is made from it, and how it fails: a place, a reason, a code that stays the same, and an
exit status for the kind of failure."""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
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


NOBODY_ASKED = (Exit.NO_ANSWER, Exit.REFUSED, Exit.NOT_FOUND, Exit.NOT_NOW, Exit.PENDING)
"""No end of a command that asks nobody."""

Run = Callable[[argparse.Namespace], int]
Row = dict[str, Any]
Argument = Mapping[str, Any]
"""What ``add_argument`` of argparse takes, or ``one_of``: options of which at most one may be given."""
Rows = Sequence[tuple[str, str]]
"""Of (what, explained)."""
TYPES = {"path": Path, "int": int, "float": float}
ASKING = {"arguments": "connection", "files": "api", "environment": "token"}
"""What whoever asks a running semmem has behind its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A row of commands.toml. ``does``: one line. ``about``: paragraphs. ``run``: its exit status, or Failure; None for
    a group of ``inside``. ``examples``: what one would type, and what that is for. ``prints``: what ``--json`` prints;
    empty where there is no such option. ``also``: other names. ``files`` and ``environment``: what is read beside the
    arguments. ``asks``: a running semmem; ``may_pend``: what was asked for may be done later."""

    name: str
    does: str
    about: str
    run: Run | None = None
    arguments: Sequence[Argument] = ()
    examples: Rows = ()
    prints: str = ""
    also: Sequence[str] = ()
    inside: Sequence[Command] = ()
    asks: bool = False
    may_pend: bool = False
    files: Rows = ()
    environment: Rows = ()

    @property
    def exits(self) -> Sequence[Exit]:
        """How it may end."""
        never = () if self.may_pend else (Exit.PENDING,) if self.asks else NOBODY_ASKED
        return [each for each in Exit if each not in never]


def declared(runs: Mapping[str, Run]) -> tuple[Command, ...]:
    """Every command of commands.toml, with the function of its name."""
    told = tomllib.loads(Path(__file__).with_name("commands.toml").read_text(encoding="utf-8"))
    return tuple(_inside("", [_spelt_out(row, told["shared"]) for row in told["commands"]], runs))


def _spelt_out(row: Row, shared: Row) -> Row:
    """With what is shared in the place of its name."""
    told = dict(row)
    if row.get("asks"):
        told |= {part: [*row.get(part, ()), name] for part, name in ASKING.items()}
    for part, known in shared.items():
        told[part] = [each for one in told.get(part, ()) for each in (known[one] if isinstance(one, str) else [one])]
    told |= {part: [*map(tuple, told.get(part, ()))] for part in ("examples", "files", "environment")}
    return told | {"about": "\n\n".join(" ".join(lines.split()) for lines in row["about"].split("\n\n"))}


def _inside(group: str, rows: Sequence[Row], runs: Mapping[str, Run]) -> Iterator[Command]:
    """``group``: the words in front of a command's own name."""
    for row in rows:
        words, _, name = row["name"].rpartition(" ")
        if words == group:
            inside = tuple(_inside(row["name"], rows, runs))
            yield Command(**row | {"name": name, "run": None if inside else runs[row["name"]], "inside": inside})


ERRORS_TOO = "; errors as JSON too"
"""Ends the help of every ``--json``."""


class Parser(argparse.ArgumentParser):
    """Of one command; ``page`` writes its help."""

    def __init__(self, command: Command, prog: str, page: Callable[[Parser], str], **more: Any) -> None:
        super().__init__(prog=prog, allow_abbrev=False, add_help=False, **more)
        self.command = command
        self._page = page
        self.inside: dict[str, Parser] = {}
        self.named: Mapping[str, Parser] = {}
        """The same, by their other names too."""
        for each in command.arguments:
            _add(self, each)
        self.add_argument("-h", "--help", action="help", help="print this page, and end")
        if command.prints:
            self.add_argument("--json", action="store_true", help=f"print {command.prints}{ERRORS_TOO}")
        self.set_defaults(command=command, named=prog, json=False)
        if not command.inside:
            return
        parsers = self.add_subparsers(metavar="COMMAND", parser_class=Parser)
        self.named = parsers.choices
        for child in command.inside:
            self.inside[child.name] = parsers.add_parser(
                child.name, aliases=list(child.also), command=child, prog=f"{prog} {child.name}", page=page
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
        child = self.named.get(words[0]) if words else None
        return self.prog if child is None else child.called(words[1:])

    def format_help(self) -> str:
        return self._page(self)

    def error(self, message: str) -> NoReturn:
        """Raises Failure in place of an exit."""
        raise misused("", f"{message} ({self.prog} --help tells more)")


def _add(parser: argparse._ActionsContainer, told: Argument) -> None:
    if "one_of" not in told:
        known = {"type": TYPES[told["type"]]} if "type" in told else {}
        parser.add_argument(told["name"], **{name: value for name, value in told.items() if name != "name"} | known)
        return
    group = parser.add_mutually_exclusive_group(required=told.get("required", False))
    for option in told["one_of"]:
        _add(group, option)
