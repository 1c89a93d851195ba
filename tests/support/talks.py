"""Conversations in a list: TalkRecords that keep nothing, and are as slow or broken as a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import numpy as np

from semmem.memory import Role, Scope, Vector
from semmem.ports.errors import JournalError
from semmem.ports.talks import Placed, Talk, Utterance


def talk(name: str, at: float, *said: str, title: str = "", session: str = "") -> Talk:
    """Said by the user and answered, in turn."""
    roles = (Role.USER, Role.ASSISTANT)
    told = tuple(Utterance(roles[place % 2], text) for place, text in enumerate(said))
    return Talk(f"conv_{name}", session or name, title or said[0][:80], at, told)


class ListedTalks:
    """``talks`` by user. ``delay_s``: before each answer; ``broken``: the journal is away. ``vectors``: by talk."""

    def __init__(
        self,
        talks: dict[str, list[Talk]],
        *,
        delay_s: float = 0.0,
        broken: bool = False,
        vectors: dict[str, Vector] | None = None,
    ) -> None:
        self._talks = talks
        self._delay_s = delay_s
        self._broken = broken
        self._vectors = vectors or {}
        self.asked: list[tuple[str, ...]] = []

    async def talks_of_time(self, scope: Scope, *, since: float | None, until: float | None, limit: int) -> list[str]:
        low, high = since or 0.0, until or float("inf")
        of_time = [each for each in await self._of(scope) if low <= each.at < high]
        return [each.id for each in sorted(of_time, key=lambda each: -each.at)[:limit]]

    async def talks_holding(
        self, scope: Scope, words: Sequence[str], *, messages_max: int, chars_max: int, limit: int
    ) -> list[str]:
        self.asked.append(tuple(words))
        counted = [(sum(_holds(each, word) for word in words), each) for each in await self._of(scope)]
        found = [(count, each) for count, each in counted if count]
        return [each.id for _, each in sorted(found, key=lambda one: (-one[0], -one[1].at))[:limit]]

    async def talk_vectors(self, scope: Scope, model: str, *, limit: int) -> list[Placed]:
        placed = [(each, self._vectors[each.id]) for each in await self._of(scope) if each.id in self._vectors]
        return [Placed(each.id, "", each.at, vector.astype(np.float16).tobytes()) for each, vector in placed][:limit]

    async def read_talks(
        self, scope: Scope, wanted: Mapping[str, str], *, messages_max: int, chars_max: int
    ) -> list[Talk]:
        return [each for each in await self._of(scope) if each.id in wanted]

    async def _of(self, scope: Scope) -> list[Talk]:
        if self._broken:
            raise JournalError("away")
        await asyncio.sleep(self._delay_s)
        return self._talks.get(scope.user, [])


def _holds(each: Talk, word: str) -> bool:
    return word in " ".join([each.title, *(one.text for one in each.said)]).lower()
