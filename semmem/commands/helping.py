"""``semmem help``: what is said of a command, on paper too."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from semmem.commands.command import Command, Parser
from semmem.commands.failure import misused
from semmem.commands.manual import page_of, roff, text
from semmem.commands.terminal import document, write

Root = Callable[[], Parser]
"""The parser of everything; the table, which this is a row of, is not known here."""


def help_command(root: Root) -> Command:
    """The row of ``semmem help``."""

    def arguments(parser: Parser) -> None:
        parser.add_argument("topic", nargs="*", metavar="COMMAND", help="without one, semmem itself")
        parser.add_argument("--man", action="store_true", help="as roff, for man -l; without a command all of them")

    def run(given: argparse.Namespace) -> int:
        parser = found(root(), given.topic)
        if given.json:
            document({"commands": [_shown(each) for each in parser.everything]})
        elif given.man:
            pages = [page_of(each) for each in (parser.everything if parser.inside else [parser])]
            write(roff(pages).splitlines())
        else:
            write(text(page_of(parser)).splitlines())
        return 0

    return Command(
        name="help",
        does="what is said of a command: options, examples, exit status, files, environment",
        about="The same as --help behind the command.",
        run=run,
        arguments=arguments,
        examples=(
            ("semmem help token create", "one command"),
            ("semmem help --man > semmem.1 && man -l semmem.1", "all of them, as a manual page"),
        ),
        prints="every command with its arguments and options",
    )


def found(parser: Parser, topic: list[str]) -> Parser:
    """The parser of a command. Raises Failure."""
    for word in topic:
        names = {name: child for child in parser.inside.values() for name in child.names}
        if word not in names:
            known = ", ".join(parser.inside) or "none inside of it"
            raise misused("", f"{parser.prog} has no command {word!r}; there are: {known}")
        parser = names[word]
    return parser


def _shown(parser: Parser) -> dict[str, object]:
    page = page_of(parser)
    told = {each.heading.replace(" ", "_"): list(each.paragraphs or map(list, each.rows)) for each in page.sections}
    return {"name": page.name, "does": page.does, **told}
