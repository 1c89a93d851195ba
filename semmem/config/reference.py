"""The reference of every key, made from the schema: the body of docs/configuration.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from semmem.config import schema
from semmem.config.reloading import restart_reasons
from semmem.config.settings import Settings


def configuration_table() -> str:
    """Markdown: for each top-level key a heading and a table of path, type, default, unit, what a change
    takes (a reload or a restart), and meaning."""
    parts, reasons = list[str](), restart_reasons()
    for top, rows in groupby(schema.leaves(), key=lambda leaf: leaf[0][0]):
        parts += [f"## `{top}`", "", *_introduction(top), "| path | type | default | unit | change by | what it does |"]
        parts += ["|---|---|---|---|---|---|", *(_row(path, field, reasons) for path, field in rows), ""]
    return "\n".join(parts)


def _introduction(top: str) -> Iterator[str]:
    section = Settings.model_fields[top].annotation
    if schema.is_section(section):
        text = str(section.__doc__).partition(": ")[2].strip()
        yield from (text[0].upper() + text[1:], "")


def _row(path: tuple[str, ...], field: FieldInfo, reasons: Mapping[str, str]) -> str:
    kind = schema.describe_field(field).replace("one of ", "")
    kind += ", secret" if field.annotation is SecretStr else ""
    key = ".".join(path)
    takes = "restart" if reasons.get(key) else "reload"
    cells = (f"`{key}`", kind, _default(field), schema.unit_of(path[-1]), takes, str(field.description))
    return f"| {' | '.join(cells)} |"


def _default(field: FieldInfo) -> str:
    return "required" if field.is_required() else f"`{_spelling(field.get_default())}`"


def _spelling(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    if isinstance(value, float):
        return f"{value:g}"
    text = str(value.get_secret_value() if isinstance(value, SecretStr) else value)
    return text or '""'
