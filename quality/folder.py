"""Which file of a folder is which set, told by its name alone, wherever in the folder it lies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = dict[str, Any]

PATTERNS: dict[str, tuple[str, tuple[str, ...]]] = {
    "first_person_facts": ("first_person_facts*.jsonl", ("user", "text", "evidence")),
    "first_person_questions": ("first_person_questions*.jsonl", ("user", "question", "evidence")),
    "locomo_turns": ("locomo_turns*.jsonl", ("conversation", "id", "text")),
    "locomo_questions": ("locomo_questions*.jsonl", ("conversation", "question", "evidence")),
    "bfcl_turns": ("bfcl_memory_turns*.jsonl", ("scenario", "id", "text")),
    "bfcl_questions": ("bfcl_memory_questions*.jsonl", ("scenario", "question", "evidence")),
    "clinc": ("clinc*.jsonl", ("text", "intent")),
    "general": ("general_facts_*.jsonl", ("text",)),
    "personal": ("personal_*.jsonl", ("text",)),
    "memory_guard": ("memory_guard*.jsonl", ("value", "attack")),
    "bipia": ("bipia_*.jsonl", ("text",)),
    "extraction": ("extraction*.jsonl", ("text", "facts")),
    "pairs": ("pairs*.jsonl", ("old", "new", "label")),
}
"""Set -> pattern of its files' names, and the fields that each row must have."""


class FolderError(Exception):
    """The folder cannot be measured; the message says which file and line, and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Folder:
    """Rows of every set by file stem. A set that the folder does not have is empty."""

    sets: dict[str, dict[str, list[Row]]]
    ignored: tuple[str, ...]

    def files(self, name: str) -> dict[str, list[Row]]:
        return self.sets.get(name, {})

    def rows(self, name: str) -> list[Row]:
        """All rows of a set, its files one after another in the order of their names."""
        return [row for rows in self.files(name).values() for row in rows]


def read_folder(path: Path) -> Folder:
    """Read every file whose name is known. Raises FolderError."""
    if not path.is_dir():
        raise FolderError(f"{path} is not a folder")
    sets: dict[str, dict[str, list[Row]]] = {}
    ignored: list[str] = []
    for file in sorted(file for file in path.rglob("*") if file.is_file()):
        name = next((name for name, (pattern, _) in PATTERNS.items() if file.match(pattern)), None)
        if name is None:
            ignored.append(str(file.relative_to(path)))
        else:
            sets.setdefault(name, {}).setdefault(file.stem, []).extend(read_rows(file, PATTERNS[name][1]))
    if not sets:
        raise FolderError(f"{path} holds no file that is known: {', '.join(p for p, _ in PATTERNS.values())}")
    return Folder(sets, tuple(ignored))


def read_rows(file: Path, fields: Sequence[str] = ()) -> list[Row]:
    """JSON Lines; blank lines do not count. Raises FolderError."""
    rows: list[Row] = []
    for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), start=1):
        if line.strip():
            rows.append(_row(line, fields, f"{file}:{number}"))
    return rows


def _row(line: str, fields: Sequence[str], place: str) -> Row:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise FolderError(f"{place}: not JSON: {error}") from error
    missing = [field for field in fields if not isinstance(row, dict) or field not in row]
    if missing:
        raise FolderError(f"{place}: no field {', '.join(missing)}")
    found: Row = row
    return found
