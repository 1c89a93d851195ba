"""Where it is kept for whom an administrator switched reading or storing off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Switch:
    """May memories be shown in prompts, may turns be stored and learnt from. None: nothing is said of it."""

    reading: bool | None = None
    storing: bool | None = None


UNSAID = Switch()


@dataclass(frozen=True, slots=True)
class SwitchRow:
    """One user's or group's. ``key`` is a digest of the name; ``group`` the name itself, empty for a user, of whom no
    name is kept. ``number`` rises with every change of any switch. ``changed_at`` is a Unix time."""

    key: str
    group: str
    switch: Switch
    number: int
    changed_at: float


class SwitchRecords(Protocol):
    """All raise JournalError."""

    async def set_switch(self, key: str, group: str, switch: Switch, *, now: float, entries_max: int) -> bool:
        """From here on this holds; with UNSAID nothing does. False, and nothing is changed, when it would be one more
        than ``entries_max``. Processes that listen are told."""

    async def switches_since(self, number: int) -> Sequence[SwitchRow]:
        """Those with a greater number, in its order; for a day also those of which nothing is said any more."""
