"""What the store will never take ends with its batch, costs the batch's other facts nothing and holds up nobody."""

from __future__ import annotations

from pathlib import Path

from semmem.backends.in_process import InProcessStore
from semmem.backends.sql.journal import SqlJournal
from semmem.extraction.comparing import Comparing
from semmem.extraction.dedup import Dedup
from semmem.extraction.pipeline import Learning
from semmem.extraction.reading import Reader
from semmem.extraction.screen import screen
from semmem.extraction.storing import Storing
from semmem.memory import Memory, Scope, Turn
from semmem.ports.errors import StoreRefused
from semmem.ports.learning import Batch, BatchRules
from tests.core.extraction.fakes import GivenFacts, all_own
from tests.core.extraction.test_pipeline import BEES, BUDGET, ROWS, World, by_turn
from tests.support.empty_journal import empty_journal
from tests.support.traced_journal import Journals

LONG = "User likes " + "漢字" * 2000


def any_length(fact: object, said: object) -> object:
    return screen(fact, said, chars_max=8000, grounded_share_min=0.0)  # type: ignore[arg-type]


async def test_a_fact_that_is_too_long_for_the_store_is_counted_and_the_others_are_kept(journals: Journals) -> None:
    world = await World(journals).open()
    result = await world.learn(by_turn(t_1=[BUDGET, LONG], t_2=[BEES]), screening=any_length)
    assert (result.status, result.rejected) == ("stored", {"unstorable": 1})
    assert await world.contents() == sorted([BUDGET, BEES])
    assert world.journal.statuses == ["stored"]


async def test_a_batch_of_a_session_whose_name_is_too_long_ends_at_once(journals: Journals) -> None:
    world = await World(journals, scope=Scope("alice", session="conv_" + "x" * 2000)).open()
    result = await world.learn(by_turn(t_1=[BUDGET], t_2=[BEES, ROWS]))
    assert (result.status, result.rejected) == ("rejected", {"unstorable": 3})
    assert world.journal.statuses == ["rejected"]
    assert await world.contents() == []


async def test_nothing_is_superseded_by_what_cannot_be_kept(journals: Journals) -> None:
    world = await World(journals).open()
    await world.learn(by_turn(t_1=[BUDGET]))
    [old] = await world.store.list(Scope("alice"))
    world.scope = Scope("alice", session="s" * 2000)
    await world.say("first", BUDGET.replace("10000", "15000"), first=3)
    result = await world.learn(by_turn(t_4=[BUDGET.replace("10000", "15000")]))
    assert result.rejected == {"unstorable": 1}
    assert await world.store.list(Scope("alice")) == [old]
    assert await world.journal.versions(Scope("alice"), old.id) == []


async def test_a_store_with_limits_of_its_own_may_refuse_as_well(journals: Journals) -> None:
    class Strict(InProcessStore):
        async def put(self, scope: Scope, *memories: Memory) -> None:
            if any("bees" in memory.content for memory in memories):
                raise StoreRefused("content", "is not what I keep")
            await super().put(scope, *memories)

    world = World(journals)
    world.store = Strict()
    await world.open()
    result = await world.learn(by_turn(t_1=[BUDGET], t_2=[BEES, ROWS]))
    assert (result.status, result.rejected) == ("stored", {"unstorable": 1})
    assert await world.contents() == sorted([BUDGET, ROWS])


async def test_the_users_other_sessions_are_learnt_from_at_once(tmp_path: Path, journals: Journals) -> None:
    journal = SqlJournal(empty_journal(tmp_path / "journal.db"))
    await journal.open()
    world = await World(journals).open()
    rules = BatchRules(size=1, idle_s=10.0, answer_wait_s=0.0, lease_s=60.0)
    for number, session in enumerate(("x" * 2000, "short")):
        turn = Turn(f"t-{number}", Scope("alice", session=session), 1, "I keep bees", opened_at=1000.0 + number)
        await journal.record([turn], [])
    learning = Learning(
        journal,
        Storing(world.embedder, Dedup(Comparing(world.store), journal), clock=lambda: 1100.0),
        GivenFacts("given", by_turn(t_0=[BEES], t_1=[BEES])),
        reader=Reader(hear=all_own),
    )
    ended: list[tuple[str, str]] = []
    for _ in range(2):
        batch: Batch | None = await journal.claim(rules, now=1100.0)
        assert batch is not None
        ended.append(((batch.scope.session or "")[:5], (await learning.learn(batch)).status))
    assert ended == [("xxxxx", "rejected"), ("short", "stored")]
    assert await journal.claim(rules, now=1100.0) is None
    await journal.close()
