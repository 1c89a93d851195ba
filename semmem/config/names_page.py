"""docs/names.md, made from the table of other systems' names."""

from __future__ import annotations

from itertools import groupby

from semmem.config.names import NAMES, Name

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


def names_page() -> str:
    """The whole of docs/names.md."""
    parts = [_INTRODUCTION]
    for kind, rows in groupby(NAMES, key=lambda name: name.kind):
        parts += [f"## {kind.capitalize()}s", ""]
        parts += ["| name | from | here | |", "|---|---|---|---|", *(_row(row) for row in rows), ""]
    return "\n".join(parts)


def _row(name: Name) -> str:
    here = f"`{name.becomes}`" if name.becomes else "refused"
    note = name.note if name.becomes else f"{name.reason}; {name.instead}"
    return f"| `{name.name}` | {name.origin} | {here} | {note} |"
