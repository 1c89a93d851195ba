"""Stores of memories whose gold ids are known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from quality.folder import Folder
from quality.wiring import DAY_S, NOW, Semmem
from semmem.memory import Hit

FIRST_PERSON = "first-person"
"""What the users of that set are called by, before a slash and their name."""
BFCL = "bfcl"


@dataclass(slots=True)
class Library:
    """The memories of one set: whose they are, which gold ids each one holds, and when they are asked about."""

    prefix: str
    evidence: dict[str, dict[str, tuple[object, ...]]] = field(default_factory=dict)
    asked_at: dict[str, float] = field(default_factory=dict)

    def user(self, owner: str) -> str:
        return f"{self.prefix}/{owner}"

    @property
    def users(self) -> list[str]:
        return [self.user(owner) for owner in sorted(self.evidence)]

    async def add(self, semmem: Semmem, owner: str, text: str, gold: Iterable[object], at: float) -> None:
        held = self.evidence.setdefault(owner, {})
        memory_id = f"mem_{self.prefix}_{len(held):06d}"
        held[memory_id] = tuple(gold)
        self.asked_at[owner] = max(self.asked_at.get(owner, 0.0), at + DAY_S)
        await semmem.remember(self.user(owner), memory_id, text, at=at)

    def answerable(self, owner: str, gold: Iterable[object]) -> set[object]:
        """The gold ids that some memory of the owner holds: no ranking can find the others."""
        return set(gold) & {name for names in self.evidence.get(owner, {}).values() for name in names}

    def found(self, owner: str, hits: Sequence[Hit]) -> list[tuple[object, ...]]:
        return [self.evidence[owner][hit.memory.id] for hit in hits]


async def first_person_library(folder: Folder, semmem: Semmem) -> Library:
    """Facts about each user, in the order in which they were said. Storing them again changes nothing."""
    library = Library(FIRST_PERSON)
    for second, row in enumerate(folder.rows("first_person_facts")):
        await library.add(semmem, row["user"], row["text"], row["evidence"], NOW - DAY_S + second)
    return library


async def bfcl_library(folder: Folder, semmem: Semmem) -> Library:
    """Long turns as they were said, all of a scenario at one time. Storing them again changes nothing."""
    library = Library(BFCL)
    for row in folder.rows("bfcl_turns"):
        await library.add(semmem, row["scenario"], row["text"], [row["id"]], NOW - DAY_S)
    return library
