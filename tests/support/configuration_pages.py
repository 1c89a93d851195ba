"""The pages made of the configuration's schema: the reference of every key (the body of docs/configuration.md), and
docs/names.md.

    python -m tests.support.configuration_pages [names]    (prints the one, or the other)
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import groupby, pairwise
from typing import Any

from pydantic import SecretStr

from semmem.config import Settings, schema
from semmem.config.names import NAMES, Name
from semmem.config.values import Section

_UNITS = {
    "_ms": "milliseconds",
    "_per_s": "a second",
    "_per_minute": "a minute",
    "_s": "seconds",
    "_seconds": "seconds",
    "_hours": "hours",
    "_days": "days",
    "bytes_max": "bytes",
    "_chars_max": "characters",
    "_chars_min": "characters",
    "_tokens": "tokens",
    "_threshold": "cosine",
}
"""What the end of a key's name says of its unit."""


def about(leaf: schema.Leaf) -> str:
    """What the reference says of a key: what its field says, or the docstring below it."""
    sections = [each for each in leaf.section.__mro__ if issubclass(each, Section)]
    below = (_docstrings(each.__module__).get((each.__name__, leaf.path[-1])) for each in sections)
    return leaf.field.description or next(filter(None, below), "")


@cache
def _docstrings(module: str) -> Mapping[tuple[str, str], str]:
    """By section and key. Read from the source, which takes its time, when somebody asks."""
    found: dict[tuple[str, str], str] = {}
    written = ast.parse(inspect.getsource(sys.modules[module])).body
    for section in (each for each in written if isinstance(each, ast.ClassDef)):
        for pair in pairwise(section.body):
            match pair:
                case ast.AnnAssign(target=ast.Name(id=key)), ast.Expr(value=ast.Constant(value=str(words))):
                    found[section.name, key] = " ".join(words.split())
    return found


_INTRODUCTION = """# Names that you may know from elsewhere

Whoever comes from one of these systems can bring what is configured there. A name below that means something here is
taken as the key beside it; one that means nothing is refused by its name, with the reason and what to write instead.

- Keys stand in `config.yaml` where the system has them, those of OmniRoute's settings at its top.
- Environment variables have the rank of semmem's own: they override the file, and `SEMMEM_...` says the same.
  A variable that is empty counts as not set. One that means nothing here may be another program's: it stops nothing,
  and `semmem check` and the log at the start say that it is not obeyed, and why.
- Two names for one thing with different values are refused, with both names.
- Headers that name the user are believed only where the configuration names them (in lower case), like any other.
- `semmem check` says which variables of other systems it obeys.
- What semmem does otherwise than they, and why: [decision 50](decisions/0050-where-semmem-differs.md).

`python -m tests.support.configuration_pages names` prints this page from the table in the code.
"""


RESTART = "*Restart.* "
"""In front of what a key does that a reload does not take up."""


def names_page() -> str:
    """The whole of docs/names.md."""
    parts = [_INTRODUCTION]
    for kind, named in groupby(NAMES, key=lambda name: name.kind):
        rows = list(named)
        same = [row for row in rows if row.name == row.becomes and row.note == "the same"]
        parts += [f"## {kind.capitalize()}s", ""]
        if same:
            parts += [
                f"{same[0].origin}'s that are called the same here: {', '.join(f'`{row.name}`' for row in same)}.",
                "",
            ]
        others = (_name_row(row) for row in rows if row not in same)
        parts += ["| name | from | here | |", "|---|---|---|---|", *others, ""]
    return "\n".join(parts)


def _name_row(name: Name) -> str:
    here = f"`{name.becomes}`" if name.becomes else "refused"
    note = name.note if name.becomes else f"{name.reason}; {name.instead}"
    return f"| `{name.name}` | {name.origin} | {here} | {note} |"


def configuration_table() -> str:
    """Markdown: for each top-level key a heading and a table of path, values with unit and default, and meaning, which
    says where a change takes a restart."""
    parts, reasons = list[str](), schema.restart_reasons()
    for top, rows in groupby(schema.leaves(), key=lambda leaf: leaf.path[0]):
        parts += [f"## `{top}`", "", *_introduction(top), "| path | values (`default`) | what it does |"]
        parts += ["|---|---|---|", *(_row(leaf, reasons) for leaf in rows), ""]
    return "\n".join(parts)


def _introduction(top: str) -> Iterator[str]:
    section = Settings.model_fields[top].annotation
    if schema.is_section(section):
        text = " ".join(str(section.__doc__).partition(": ")[2].split())
        yield from (text[0].upper() + text[1:], "")


def _row(leaf: schema.Leaf, reasons: Mapping[str, str]) -> str:
    path, field = leaf.path, leaf.field
    unit = next((unit for suffix, unit in _UNITS.items() if path[-1].endswith(suffix)), "")
    kind = _values(schema.describe_field(field), unit)
    kind += ", secret" if field.annotation is SecretStr else ""
    kind += " (required)" if field.is_required() else f" (`{_spelling(field.get_default())}`)"
    key = ".".join(path)
    what = f"{RESTART if reasons.get(key) else ''}{about(leaf)}"
    return f"| {' | '.join((f'`{key}`', kind, what))} |"


def _values(words: str, unit: str) -> str:
    """Type and bounds in fewer words: a bound that is spelt with a point is no whole number's."""
    short = words.removeprefix("one of ").removeprefix("a whole number from ").removeprefix("a whole number ")
    short = short.removeprefix("a number from ").removeprefix("a number ")
    number, comma, null = short.partition(", or null")
    return f"{number} {unit}".rstrip() + comma + null


def _spelling(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    if isinstance(value, float):
        return f"{value:g}"
    text = str(value.get_secret_value() if isinstance(value, SecretStr) else value)
    return text or '""'


if __name__ == "__main__":
    sys.stdout.write(names_page() if sys.argv[1:] == ["names"] else configuration_table())
