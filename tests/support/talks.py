"""Conversations in a list: TalkRecords that keep nothing, and are as slow or broken as a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from semmem.memory import Role, Scope
from semmem.ports.errors import JournalError
from semmem.ports.talks import Talk, Utterance
from semmem.text.words import words as words_of


def talk(name: str, at: float, *said: str, title: str = "", session: str = "") -> Talk:
    """Said by the user and answered, in turn."""
    roles = (Role.USER, Role.ASSISTANT)
    told = tuple(Utterance(roles[place % 2], text) for place, text in enumerate(said))
    return Talk(f"conv_{name}", session or name, title or said[0][:80], at, told)


class ListedTalks:
    """``talks`` by user. ``delay_s``: before each answer; ``broken``: the journal is away."""

    def __init__(self, talks: dict[str, list[Talk]], *, delay_s: float = 0.0, broken: bool = False) -> None:
        self._talks = talks
        self._delay_s = delay_s
        self._broken = broken
        self.asked: list[tuple[str, ...]] = []

    async def talks(
        self,
        scope: Scope,
        words: Sequence[str],
        *,
        since: float | None = None,
        until: float | None = None,
        limit: int = 12,
    ) -> list[Talk]:
        self.asked.append(tuple(words))
        if self._broken:
            raise JournalError("away")
        await asyncio.sleep(self._delay_s)
        low, high = since or 0.0, until or float("inf")
        of_time = [each for each in self._talks.get(scope.user, []) if low <= each.at < high]
        if not words:
            return sorted(of_time, key=lambda each: -each.at)[:limit]
        counted = [(sum(_holds(each, word) for word in words), each) for each in of_time]
        found = [(count, each) for count, each in counted if count]
        return [each for _, each in sorted(found, key=lambda one: (-one[0], -one[1].at))[:limit]]


def _holds(each: Talk, word: str) -> bool:
    said = " ".join([each.title, *(one.text for one in each.said)])
    return any(one.startswith(word) for one in words_of(said, chars_max=None)) or word in said
