"""Where it is kept for whom an administrator switched reading or storing off."""

from __future__ import annotations

from dataclasses import dataclass


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
