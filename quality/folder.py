"""Which file of a folder is which set, told by its name alone, wherever in the folder it lies."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """How the files of a set are called, the fields that each row must have, and the one by which rows belong together
    (empty: every row is always there)."""

    pattern: str
    fields: tuple[str, ...]
    group: str


SETS: dict[str, Kind] = {
    "first_person_facts": Kind("first_person_facts*.jsonl", ("user", "text", "evidence"), "user"),
    "first_person_questions": Kind("first_person_questions*.jsonl", ("user", "question", "evidence"), "user"),
    "locomo_turns": Kind("locomo_turns*.jsonl", ("conversation", "id", "text"), "conversation"),
    "locomo_questions": Kind("locomo_questions*.jsonl", ("conversation", "question", "evidence"), "conversation"),
    "bfcl_turns": Kind("bfcl_memory_turns*.jsonl", ("scenario", "id", "text"), ""),  # of two or three scenarios only
    "bfcl_questions": Kind("bfcl_memory_questions*.jsonl", ("scenario", "question", "evidence"), "question"),
    "clinc": Kind("clinc*.jsonl", ("text", "intent"), "text"),
    "general": Kind("general_facts_*.jsonl", ("text",), "text"),
    "personal": Kind("personal_*.jsonl", ("text",), "text"),
    "memory_guard": Kind("memory_guard*.jsonl", ("value", "attack"), "value"),
    "poison": Kind("poison_*.jsonl", ("id", "attack_marker", "memory_store"), "id"),
    "bipia": Kind("bipia_*.jsonl", ("text",), "text"),
    "extraction": Kind("extraction*.jsonl", ("text", "facts"), "text"),
    "pairs": Kind("pairs*.jsonl", ("old", "new", "label"), "old"),
    "preferences": Kind("preferences*.jsonl", ("user", "preference", "question"), "user"),
    "talks": Kind("talks*.jsonl", ("id", "turns", "preference", "question"), "id"),
    "leakage": Kind("leakage_*.jsonl", ("kind", "query", "memories"), "query"),
    "peers": Kind("*_scenarios*.jsonl", ("scenario",), "scenario"),
    "stories": Kind("stories*.jsonl", ("id", "kind", "turns", "asks"), "id"),
}
FIFTHS = ("all", "without", "only")
"""What is measured: everything, all but the fifth that is put aside, or that fifth alone."""


class FolderError(Exception):
    """The folder cannot be measured; the message says which file and line, and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Folder:
    """Rows of every set by file stem. A set that the folder does not have is empty."""

    sets: dict[str, dict[str, list[Row]]]
    ignored: tuple[str, ...]
    fifth: str = "all"

    def files(self, name: str) -> dict[str, list[Row]]:
        return self.sets.get(name, {})

    def rows(self, name: str) -> list[Row]:
        """All rows of a set, its files one after another in the order of their names."""
        return [row for rows in self.files(name).values() for row in rows]

    def part(self, fifth: str) -> Folder:
        """What is left of it: one of FIFTHS. Raises ValueError for another word."""
        if fifth not in FIFTHS:
            raise ValueError(f"fifth must be one of {', '.join(FIFTHS)}")
        sets = {
            name: {file: [row for row in rows if is_in(fifth, _group(name, row))] for file, rows in files.items()}
            for name, files in self.sets.items()
        }
        return Folder(sets, self.ignored, fifth)


def read_folder(path: Path) -> Folder:
    """Read every file whose name is known. Raises FolderError."""
    if not path.is_dir():
        raise FolderError(f"{path} is not a folder")
    sets: dict[str, dict[str, list[Row]]] = {}
    ignored: list[str] = []
    for file in sorted(file for file in path.rglob("*") if file.is_file()):
        name = next((name for name, kind in SETS.items() if file.match(kind.pattern)), None)
        if name is None:
            ignored.append(str(file.relative_to(path)))
        else:
            sets.setdefault(name, {}).setdefault(file.stem, []).extend(read_rows(file, SETS[name].fields))
    if not sets:
        raise FolderError(f"{path} holds no file that is known: {', '.join(kind.pattern for kind in SETS.values())}")
    return Folder(sets, tuple(ignored))


def read_rows(file: Path, fields: Sequence[str] = ()) -> list[Row]:
    """JSON Lines; blank lines do not count. Raises FolderError."""
    rows: list[Row] = []
    for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), start=1):
        if line.strip():
            rows.append(_row(line, fields, f"{file}:{number}"))
    return rows


def is_aside(group: str) -> bool:
    """Whether rows of this group belong to the fifth that is put aside: the same in every run and on every machine."""
    return int.from_bytes(hashlib.sha256(group.encode("utf-8", "surrogatepass")).digest()) % 5 == 0


def is_in(fifth: str, group: str | None) -> bool:
    """Whether rows of this group are measured; those of no group (None) always are."""
    return fifth == "all" or group is None or is_aside(group) == (fifth == "only")


def _group(name: str, row: Row) -> str | None:
    return str(row[SETS[name].group]) if SETS[name].group else None


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
