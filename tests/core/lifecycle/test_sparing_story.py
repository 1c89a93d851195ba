"""Whatever is told in three sessions, and whichever are deleted meanwhile: what was said in the others is there."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.memory import Memory, MemoryStatus, Scope
from tests.core.lifecycle.test_sparing import ADA, Journal, Store, World
from tests.support.empty_journal import empty_journal

SESSIONS = st.sampled_from(["s-1", "s-2", "s-3"])
TELLS = st.tuples(st.sampled_from(["beside", "update", "replace"]), SESSIONS)
DELETES = st.tuples(st.just("delete"), SESSIONS)


class Story:
    """Each tell says something that nobody said before: beside what is known, as a new version of what was said last,
    or as a memory that replaces that."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.said: dict[str, str] = {}
        self.gone: set[str] = set()

    async def go_on(self, deed: str, session: str) -> None:
        if deed == "delete":
            await self.world.forget(Scope("ada", session=session))
            self.gone |= {content for content, where in self.said.items() if where == session}
            self.said = {content: where for content, where in self.said.items() if where != session}
        else:
            await self.tell(deed, session)
        await self.look()

    async def tell(self, deed: str, session: str) -> None:
        number = len(self.said) + len(self.gone)
        content, scope = f"User said word{number}", Scope("ada", session=session)
        active = [memory for memory in await self.world.memories() if memory.status is MemoryStatus.ACTIVE]
        last = max(active, key=lambda memory: memory.said_at, default=None)
        if last is None or deed == "beside":
            await self.world.say(scope, content, f"m-{number}")
        elif deed == "update":
            await self.world.say(scope, content, last.id)
        else:
            await self.world.say(scope, content, f"m-{number}")
            await self.world.retire(last.id, f"m-{number}")
        self.said[content] = session

    async def look(self) -> None:
        memories = await self.world.memories()
        versions = [old for memory in memories for old in await self.world.journal.versions(ADA, memory.id)]
        assert {each.content for each in [*memories, *versions]} == self.said.keys()
        assert not self.gone & {each.content for each in await self.kept()}
        active = {memory.id for memory in memories if memory.status is MemoryStatus.ACTIVE}
        assert active or not memories
        by = {str(each.metadata["superseded_by"]) for each in memories if each.id not in active}
        assert by <= {memory.id for memory in memories}

    async def kept(self) -> list[Memory]:
        """Versions of memories that are not there as well."""
        return [old for id in await self.world.journal.recorded_ids("ada") for old in await self.versions(id)]

    async def versions(self, id: str) -> list[Memory]:
        return await self.world.journal.versions(ADA, id)


async def told(deeds: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        journal, store = Journal(empty_journal(Path(folder) / "journal.db")), Store()
        await journal.open()
        await store.open()
        try:
            story = Story(World(journal, store))
            for deed, session in deeds:
                await story.go_on(deed, session)
        finally:
            await journal.close()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(TELLS, TELLS, DELETES), max_size=12))
def test_what_other_sessions_said_is_there_and_nothing_of_those_that_were_deleted(deeds: list[tuple[str, str]]) -> None:
    asyncio.run(told(deeds))
