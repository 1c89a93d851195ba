"""What is to be said of a command, taken from its row and its parser: as text for a terminal, as roff for ``man -l``,
and as Markdown for docs/commands.md."""

import argparse
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from semmem import __version__
from semmem.commands.command import ERRORS_TOO, Exit, Parser, Rows, misused


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
    also = [f"Also called {', '.join(command.also)}."] if command.also else []
    spelt = [(_spelling(action), action.help or "") for action in parser.shown_actions]
    sections = (
        Section("synopsis", [synopsis(parser)]),
        Section("description", [*command.about.split("\n\n"), *also]),
        Section("commands", rows=[(name, child.command.does) for name, child in parser.inside.items()]),
        Section("arguments", rows=[row for row in spelt if not row[0].startswith("-")]),
        Section("options", rows=[row for row in spelt if row[0].startswith("-")]),
        Section("examples", rows=command.examples),
        Section("exit status", rows=[] if command.inside else [(str(each), each.means) for each in command.exits]),
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


def _spelling(action: argparse.Action) -> str:
    if not action.option_strings:
        return _value(action)
    names = ", ".join(action.option_strings)
    return names if action.nargs == 0 else f"{names} {_value(action)}"


def _value(action: argparse.Action) -> str:
    if action.choices is not None and action.option_strings:
        return "|".join(map(str, action.choices))
    return str(action.metavar or action.dest.upper())


WIDTH = 100
MARKDOWN_WIDTH = 120
HELP = "-h, --help"
"""Every command has it; one table need not say so thirty times."""
EXPLAINED_ONCE = ("options", "files", "environment")
SHARED_FROM = 5
"""Commands with the same row from which docs/commands.md explains it once, at its top."""
INDENT = 4
EXPLAINED_AT = 28
"""The column at which what stands in two columns is explained, where there is room."""
PROGRAM = "semmem"


def text(page: Page) -> str:
    """As a terminal shows it."""
    lines = ["NAME", f"    {page.name} - {page.does}"]
    for section in page.sections:
        lines += ["", section.heading.upper()]
        for number, words in enumerate(section.paragraphs):
            lines += [""] if number else []
            lines += textwrap.wrap(words, WIDTH, initial_indent=" " * INDENT, subsequent_indent=" " * INDENT)
        for what, explained in section.rows:
            lines += _row(section.heading, what, explained)
    return "\n".join(lines) + "\n"


def _row(heading: str, what: str, explained: str) -> Iterator[str]:
    column = INDENT + EXPLAINED_AT
    folded = textwrap.wrap(explained, WIDTH - column) or [""]
    if heading == "examples":
        yield from (f"{' ' * INDENT}{what}", f"{' ' * (2 * INDENT)}{explained}")
        return
    if len(what) + 2 > EXPLAINED_AT:
        yield f"{' ' * INDENT}{what}"
        what = ""
    yield f"{' ' * INDENT}{what:{EXPLAINED_AT}}{folded[0]}".rstrip()
    yield from (f"{' ' * column}{line}" for line in folded[1:])


def roff(pages: Sequence[Page]) -> str:
    """One page of section 1; further ones are its subsections."""
    first, *others = pages
    name = first.name.replace(" ", "-")
    lines = [f'.TH {name.upper()} 1 "" "{PROGRAM} {__version__}" "{PROGRAM}"', ".SH NAME"]
    lines += [f"{_escaped(name)} \\- {_escaped(first.does)}"]
    for section in first.sections:
        lines += [f".SH {section.heading.upper()}", *_roff_section(section)]
    for page in others:
        lines += [f".SH {_escaped(page.name.upper())}", _escaped(page.does[:1].upper() + page.does[1:] + ".")]
        for section in page.sections:
            lines += [f".SS {section.heading.capitalize()}", *_roff_section(section)]
    return "\n".join(lines) + "\n"


def _roff_section(section: Section) -> Iterator[str]:
    for words in section.paragraphs:
        yield from (".PP", _escaped(words))
    for what, explained in section.rows:
        yield from (".TP", f"\\fB{_escaped(what)}\\fR", _escaped(explained))


def _escaped(words: str) -> str:
    """What roff would take for a command, or for typography."""
    safe = words.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return f"\\&{safe}" if safe.startswith(".") else safe


def markdown(pages: Sequence[Page]) -> str:
    """docs/commands.md: every page, the first without its name."""
    first, *others = pages
    shared = _shared(others)
    lines = ["# Commands", "", *_from_first(first), "## Exit status", ""]
    lines += _table(("status", "means"), [(str(each), each.means) for each in Exit])
    usual = [statuses for statuses, pages_with in Counter(map(_statuses, others)).most_common() if pages_with > 1]
    lines += [f"Where nothing else is said a command ends with one of {' or of '.join(filter(None, usual))}.", ""]
    lines += ["## What many commands take", "", *_table(("option, file or variable", ""), _ticked(shared))]
    for page in others:
        lines += [f"## {page.name}", "", f"{page.does[:1].upper()}{page.does[1:]}.", ""]
        for section in page.sections:
            lines += _markdown_section(section, shared)
        if (statuses := _statuses(page)) not in usual:
            lines += [f"Exit status: {statuses}.", ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _statuses(page: Page) -> str:
    return ", ".join(status for each in page.sections if each.heading == "exit status" for status, _ in each.rows)


def _shared(pages: Sequence[Page]) -> Rows:
    """Options, files and variables that many commands explain in the same words, in the order of their appearance."""
    named = [row for page in pages for each in page.sections if each.heading in EXPLAINED_ONCE for row in each.rows]
    return [row for row, times in Counter(named).items() if times >= SHARED_FROM and row[0] != HELP]


def _from_first(page: Page) -> Iterator[str]:
    for section in page.sections:
        if section.heading == "description":
            yield from _wrapped(section.paragraphs)
        elif section.heading == "commands":
            rows = [(f"[`{page.name} {name}`](#{page.name}-{name})", does) for name, does in section.rows]
            yield from _table(("command", "what it does"), rows)


def _markdown_section(section: Section, shared: Rows) -> Iterator[str]:
    heading, told = section.heading, section.rows
    if heading == "synopsis":
        yield from ("```", *section.paragraphs, "```", "")
    elif heading == "examples":
        yield from ("```sh", *(f"{what}  # {why}" for what, why in told), "```", "")
    elif heading == "description":
        yield from _wrapped(section.paragraphs)
    elif heading != "exit status":
        rows = [row for row in told if row not in shared and row[0] != HELP]
        yield from _table((heading, ""), _ticked(rows)) if rows else ()
        if also := [f"`{what.split()[0]}`" for what, _ in told if (what, _) in shared and heading == "options"]:
            yield from _wrapped([f"{'Also' if rows else 'Options:'} {', '.join(also)}."])


def _ticked(rows: Rows) -> Rows:
    return [(f"`{what}`", explained.removesuffix(ERRORS_TOO)) for what, explained in rows]


def _wrapped(paragraphs: Sequence[str]) -> Iterator[str]:
    for words in paragraphs:
        yield from (*textwrap.wrap(words, MARKDOWN_WIDTH, break_on_hyphens=False), "")


def _table(head: tuple[str, str], rows: Rows) -> Iterator[str]:
    yield from (f"| {head[0]} | {head[1]} |", "|---|---|")
    yield from (f"| {_cell(what)} | {_cell(explained)} |" for what, explained in rows)
    yield ""


def _cell(words: str) -> str:
    return words.replace("|", "\\|")


def found(parser: Parser, topic: list[str]) -> Parser:
    """The parser of a command. Raises Failure."""
    for word in topic:
        if word not in parser.named:
            known = ", ".join(parser.inside) or "none inside of it"
            raise misused("", f"{parser.prog} has no command {word!r}; there are: {known}")
        parser = parser.named[word]
    return parser


def shown(page: Page) -> dict[str, object]:
    """For a program to read."""
    told = {each.heading.replace(" ", "_"): list(each.paragraphs or map(list, each.rows)) for each in page.sections}
    return {"name": page.name, "does": page.does, **told}
