"""Messages in which it slips out that something known is over or was replaced, beside others of the same people that
touch it and leave it true: ``endings.jsonl``, by writers who saw neither the code nor what it is measured on.

A row: ``language``, ``before`` (what was once said), ``message``, ``says`` (the part of it that says so), ``beside``
(messages that leave it true). A fifth, by a digest of ``before``, is never learnt from.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("endings.jsonl")
HELD_EVERY = 5


@dataclass(frozen=True, slots=True)
class Ending:
    """A row of the file."""

    language: str
    before: str
    message: str
    says: str
    beside: tuple[str, ...]

    @property
    def is_held(self) -> bool:
        """Whether it is only measured on."""
        return int(hashlib.sha256(self.before.encode()).hexdigest(), 16) % HELD_EVERY == 0


def endings(*, held: bool) -> list[Ending]:
    """Those to be learnt from, or those that are held aside."""
    rows = map(json.loads, FILE.read_text(encoding="utf-8").splitlines())
    found = [Ending(row["language"], row["before"], row["message"], row["says"], tuple(row["beside"])) for row in rows]
    return [each for each in found if each.is_held is held]
