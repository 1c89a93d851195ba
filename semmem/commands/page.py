"""What is to be said of a command, taken from its row and its parser; how it looks is manual.py's."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from semmem.commands.command import Command, Parser
from semmem.commands.failure import EXITS

Rows = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Section:
    """Paragraphs, or rows of (what, explained)."""

    heading: str
    paragraphs: Sequence[str] = ()
    rows: Rows = ()


@dataclass(frozen=True, slots=True)
class Page:
    """``sections``: in the order of manual pages; none is empty."""

    name: str
    does: str
    sections: Sequence[Section]


def page_of(parser: Parser) -> Page:
    """What the parser's command is to be told of."""
    command = parser.command
    spelt = rows(parser)
    sections = (
        Section("synopsis", [synopsis(parser)]),
        Section("description", _about(command)),
        Section("commands", rows=[(name, child.command.does) for name, child in parser.inside.items()]),
        Section("arguments", rows=[row for row in spelt if not row[0].startswith("-")]),
        Section("options", rows=[row for row in spelt if row[0].startswith("-")]),
        Section("examples", rows=command.examples),
        Section("exit status", rows=[] if command.inside else [(str(each), EXITS[each]) for each in command.exits]),
        Section("files", rows=command.files),
        Section("environment", rows=command.environment),
    )
    return Page(parser.prog, command.does, [each for each in sections if each.paragraphs or each.rows])


def synopsis(parser: Parser) -> str:
    """The words of a call; what may be left out stands in brackets."""
    words = [parser.prog]
    actions = parser.shown_actions
    words += [_spelling(action) for action in actions if action.option_strings and action.required]
    words += ["[OPTIONS]"]
    for action in actions:
        if not action.option_strings:
            optional = action.nargs in ("?", "*")
            words.append(f"[{_value(action)}]" if optional else _value(action))
    return " ".join([*words, "COMMAND"] if parser.inside else words)


def rows(parser: Parser) -> Rows:
    """Every argument and option as it is spelt, with its help."""
    return [(_spelling(action), action.help or "") for action in parser.shown_actions]


def _spelling(action: argparse.Action) -> str:
    if not action.option_strings:
        return _value(action)
    names = ", ".join(action.option_strings)
    return names if action.nargs == 0 else f"{names} {_value(action)}"


def _value(action: argparse.Action) -> str:
    if action.choices is not None and action.option_strings:
        return "|".join(map(str, action.choices))
    return str(action.metavar or action.dest.upper())


def _about(command: Command) -> list[str]:
    told = command.about.split("\n\n")
    return [*told, f"Also called {', '.join(command.also)}."] if command.also else told
