"""What others erase is hidden here until they are done, whether or not this process could say so."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from semmem.lifecycle.elsewhere import Elsewhere
from semmem.lifecycle.hiding_store import Marks
from semmem.memory import Forgetting, Scope
from semmem.ports.errors import JournalUnavailable

ADA = Forgetting(Scope("ada"), at=100.0)


class Records:
    """What others are at, and what this process said to it; the saying may fail."""

    def __init__(self) -> None:
        self.pending = [ADA]
        self.said: list[Forgetting] = []
        self.is_down = False

    async def pending_erasures(self, *, limit: int) -> list[Forgetting]:
        return self.pending[:limit]

    async def obey(self, what: Forgetting, _turned_away: Sequence[str]) -> None:
        if self.is_down:
            raise JournalUnavailable("down")
        self.said.append(what)

    async def not_obeyed(self, _what: Forgetting) -> int:
        return 0


class Here:
    """What this process holds: how often it was dropped."""

    def __init__(self) -> None:
        self.dropped = 0

    def forget(self, _what: Forgetting) -> tuple[int, list[str]]:
        self.dropped += 1
        return 0, []

    async def written(self, *, timeout_s: float) -> None: ...

    async def settled(self, user: str, *, timeout_s: float) -> None: ...

    def forget_memories(self, user: str, memory_ids: Sequence[str] | None) -> None: ...


class World:
    def __init__(self) -> None:
        self.records, self.marks, self.here = Records(), Marks(), Here()
        self.elsewhere = Elsewhere(self.records, self.marks, self.here, hidden_s=0.0)

    async def look(self) -> None:
        await self.elsewhere.obey(lambda _what: False)


@pytest.fixture
def world() -> World:
    return World()


async def test_what_others_erase_is_hidden_and_said_once_and_let_go_when_they_are_done(world: World) -> None:
    await world.look()
    await world.look()
    assert world.marks.any_of("ada")
    assert world.records.said == [ADA]
    world.records.pending = []
    await world.look()
    assert not world.marks.any_of("ada")
    assert world.here.dropped == 2, "once more at the end: it may have been read again meanwhile"


async def test_what_could_not_be_said_is_hidden_all_the_same_and_said_at_the_next_look(world: World) -> None:
    world.records.is_down = True
    with pytest.raises(JournalUnavailable):
        await world.look()
    assert world.marks.any_of("ada")
    world.records.is_down = False
    await world.look()
    assert world.records.said == [ADA]


async def test_what_could_never_be_said_is_let_go_as_well_when_the_others_are_done(world: World) -> None:
    world.records.is_down = True
    with pytest.raises(JournalUnavailable):
        await world.look()
    world.records.pending = []
    await world.look()
    assert not world.marks.any_of("ada")
