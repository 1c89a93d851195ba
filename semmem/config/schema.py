"""The schema, looked up: which keys exist, what they hold, and which one was probably meant; and the pages made of it:
the reference of every key (the body of docs/configuration.md), and docs/names.md."""

from __future__ import annotations

import ast
import difflib
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import groupby, pairwise
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from semmem.config.names import NAMES, Name
from semmem.config.problems import Loc
from semmem.config.settings import Settings
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
_NUMBER_OR_NONE = {int | None: int, float | None: float}


def item_type(annotation: Any) -> Any:
    """What a list of this type holds, or None when it is no list."""
    if get_origin(annotation) is not tuple:
        return None
    item = get_args(annotation)[0]
    return get_args(item)[0] if get_origin(item) is Annotated else item


def is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Section)


def type_at(loc: Loc) -> Any:
    """The type of the value at a place, or None when the schema has no such place."""
    annotation: Any = Settings
    for part in loc:
        if isinstance(part, int):
            annotation = item_type(annotation)
        elif is_section(annotation) and part in annotation.model_fields:
            annotation = annotation.model_fields[part].annotation
        else:
            return None
    return annotation


def field_at(loc: Loc) -> FieldInfo | None:
    """The field at a place; of a list's element, the list's field."""
    keys = loc
    while keys and isinstance(keys[-1], int):
        keys = keys[:-1]
    section: Any = type_at(keys[:-1]) if keys else None
    return section.model_fields.get(keys[-1]) if is_section(section) else None


class Leaf(NamedTuple):
    """A key that holds a value, as its section declares it; ``N`` in its path stands for a list index."""

    path: tuple[str, ...]
    field: FieldInfo
    section: type[Section]


def leaves(section: type[Section] = Settings, at: tuple[str, ...] = ()) -> Iterator[Leaf]:
    """Every key, in order: what the reference, names of variables, and reasons for restarts are made of."""
    for name, field in section.model_fields.items():
        item: Any = item_type(field.annotation)
        if not is_section(field.annotation):
            yield Leaf((*at, name), field, section)
        if is_section(inner := item or field.annotation):
            yield from leaves(inner, (*at, name, "N") if item else (*at, name))  # type: ignore[arg-type]


def about(leaf: Leaf) -> str:
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


def restart_reasons() -> Mapping[str, str]:
    """Every key, dotted: why a running semmem does not take up another value; an empty text: it does."""
    return {".".join(leaf.path): leaf.section.restart_reason(leaf.path[-1]) for leaf in leaves()}


def describe(loc: Loc) -> str:
    """What belongs at a place, in words: ``a whole number from 1 to 50``."""
    field = field_at(loc)
    if field is None or isinstance(loc[-1], int):
        return _type_words(type_at(loc))
    return describe_field(field)


def describe_field(field: FieldInfo) -> str:
    """A field's type and bounds in words."""
    words = _type_words(field.annotation)
    bounds = {
        name: getattr(constraint, name)
        for constraint in field.metadata
        for name in ("ge", "gt", "le")
        if hasattr(constraint, name)
    }
    if "le" not in bounds:
        return words
    low = f"above {bounds['gt']}" if "gt" in bounds else f"from {bounds['ge']}"
    or_null = ", or null" if field.annotation in _NUMBER_OR_NONE else ""
    return f"{words} {low} to {bounds['le']}{or_null}"


def nearest_key(loc: Loc) -> str:
    """What a key that does not exist was probably meant to be."""
    section, name = type_at(loc[:-1]), str(loc[-1])
    known = list(section.model_fields) if is_section(section) else []
    prefix = "".join(f"{part}." for part in loc[:-1])
    here = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if here:
        return f"did you mean {prefix}{here[0]}?"
    prefixes = (leaf.path[:length] for leaf in leaves() for length in range(1, len(leaf.path) + 1))
    everywhere = [".".join(path) for path in dict.fromkeys(prefixes) if path[-1] != "N"]  # sections and leaves alike
    same_name = [path for path in everywhere if path.rpartition(".")[2] == name]
    near = same_name[:1] or difflib.get_close_matches(f"{prefix}{name}", everywhere, n=1, cutoff=0.75)
    return f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}"


def _type_words(annotation: Any) -> str:
    item = item_type(annotation)
    if item is not None:
        return "a list of sections" if is_section(item) else "a list of text"
    if get_origin(annotation) is Literal:
        return "one of " + ", ".join(get_args(annotation))
    if is_section(annotation):
        return "a section"
    kinds = {bool: "true or false", int: "a whole number", float: "a number", str: "text", SecretStr: "text"}
    return kinds[_NUMBER_OR_NONE.get(annotation, annotation)]


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

`python -m semmem.config names` prints this page from the table in the code.
"""


RESTART = "*Restart.* "
"""In front of what a key does that a reload does not take up."""


def names_page() -> str:
    """The whole of docs/names.md."""
    parts = [_INTRODUCTION]
    for kind, rows in groupby(NAMES, key=lambda name: name.kind):
        parts += [f"## {kind.capitalize()}s", ""]
        parts += ["| name | from | here | |", "|---|---|---|---|", *(_name_row(row) for row in rows), ""]
    return "\n".join(parts)


def _name_row(name: Name) -> str:
    here = f"`{name.becomes}`" if name.becomes else "refused"
    note = name.note if name.becomes else f"{name.reason}; {name.instead}"
    return f"| `{name.name}` | {name.origin} | {here} | {note} |"


def configuration_table() -> str:
    """Markdown: for each top-level key a heading and a table of path, values with unit and default, and meaning, which
    says where a change takes a restart."""
    parts, reasons = list[str](), restart_reasons()
    for top, rows in groupby(leaves(), key=lambda leaf: leaf.path[0]):
        parts += [f"## `{top}`", "", *_introduction(top), "| path | values (`default`) | what it does |"]
        parts += ["|---|---|---|", *(_row(leaf, reasons) for leaf in rows), ""]
    return "\n".join(parts)


def _introduction(top: str) -> Iterator[str]:
    section = Settings.model_fields[top].annotation
    if is_section(section):
        text = " ".join(str(section.__doc__).partition(": ")[2].split())
        yield from (text[0].upper() + text[1:], "")


def _row(leaf: Leaf, reasons: Mapping[str, str]) -> str:
    path, field = leaf.path, leaf.field
    unit = next((unit for suffix, unit in _UNITS.items() if path[-1].endswith(suffix)), "")
    kind = _values(describe_field(field), unit)
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
