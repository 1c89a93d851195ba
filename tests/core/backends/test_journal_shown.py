"""Contract of every Journal's shown blocks: what is kept, in what order, for how long, and that erasing takes it."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec import structs

from semmem.backends.sql.journal import SqlJournal
from semmem.background import Tasks
from semmem.memory import Forgetting, Memory, MemoryType, Scope
from semmem.ports.conversations import FIRST_ANSWER, ConversationLimits, SaidHalf, Step, conversation_id
from semmem.ports.erasure import Mark
from semmem.ports.errors import JournalError
from semmem.ports.session_states import START, ShownBlock, ShownRow
from semmem.retrieval.ledger.anchors import Anchor
from semmem.retrieval.ledger.ledger import Ledger
from tests.support.journal_samples import ADA, HOSTILE, change, erase, rows_of, turn
from tests.support.journal_samples import Place as Database

TEXT = "<semmem-memory>\n- 阿達 likes “tea” \\ \x00 \u2028 🐝\n</semmem-memory>"


def block(anchor: str, at: float = 100.0, text: str = TEXT, until: float = 1000.0, **rest: Any) -> ShownBlock:
    made = ShownBlock(anchor, text, (("mem_1", 2), ("conv_1", 1)), 17, f"t_{anchor}", "turn", at, until)
    return structs.replace(made, **rest)


ONE, TWO, THREE = block("m1", 101.0), block("m2", 102.0), block("m3", 103.0)


@pytest.fixture
async def journal(place: Database) -> AsyncIterator[SqlJournal]:
    made = SqlJournal(place)
    await made.open()
    yield made
    await made.close()


async def keep(
    journal: SqlJournal, *blocks: ShownBlock | None, user: str = "ada", session: str = "s1", per_user: int = 100
) -> None:
    rows: list[ShownRow] = [(user, session, each) for each in blocks]
    await journal.keep_shown(rows, per_user=per_user)


async def kept(journal: SqlJournal, user: str = "ada", session: str = "s1", now: float = 500.0) -> list[ShownBlock]:
    return await journal.shown_blocks(user, session, now=now)


async def anchors(journal: SqlJournal, user: str = "ada", session: str = "s1") -> list[str]:
    return [each.anchor for each in await kept(journal, user, session)]


async def test_blocks_come_back_as_they_were_in_the_order_in_which_they_were_shown(journal: SqlJournal) -> None:
    await keep(journal, THREE, ONE, TWO)
    assert await kept(journal) == [ONE, TWO, THREE]
    assert await kept(journal, "eve") == await kept(journal, session="s2") == []


@pytest.mark.parametrize(
    "rest",
    [
        {"expires_at": math.inf},
        {"memories": ()},
        {"text": "", "memories": (), "tokens": 0},
        {"position": "input_item", "turn": ""},
        {"text": "x" * 100_000},
    ],
    ids=["never expires", "no memories", "nothing shown", "the beginning", "long"],
)
async def test_whatever_a_block_is_it_comes_back(journal: SqlJournal, rest: dict[str, Any]) -> None:
    await keep(journal, block(START, **rest))
    assert await kept(journal) == [block(START, **rest)]


async def test_nothing_to_keep_is_nothing(journal: SqlJournal) -> None:
    await keep(journal)
    assert await kept(journal) == []


@pytest.mark.parametrize("name", HOSTILE)
async def test_names_are_names(journal: SqlJournal, name: str) -> None:
    await keep(journal, ONE, user="nobody")
    await keep(journal, TWO, user=name)
    assert await kept(journal, name) == [TWO]
    assert await kept(journal, "nobody") == [ONE]
    await erase(journal, Scope(name), at=300.0)
    assert await kept(journal, name) == []
    assert await kept(journal, "nobody") == [ONE]


async def test_of_one_anchor_the_last_stays_also_within_one_call(journal: SqlJournal) -> None:
    await keep(journal, ONE)
    await keep(journal, block("m1", 105.0, "again"), TWO, block("m1", 104.0, "at last"))
    assert await kept(journal) == [TWO, block("m1", 104.0, "at last")]


async def test_a_session_is_forgotten_in_its_place_among_the_rows(journal: SqlJournal) -> None:
    await keep(journal, ONE, session="s2")
    await keep(journal, ONE, user="eve")
    await keep(journal, ONE, TWO, None, THREE)
    assert await kept(journal) == [THREE]
    await keep(journal, None)
    assert await kept(journal) == []
    assert await kept(journal, session="s2") == await kept(journal, "eve") == [ONE]


async def test_the_newest_of_a_user_are_kept_whatever_session_they_are_of(journal: SqlJournal) -> None:
    await keep(journal, *(block(f"e{n}", 100.0 + n) for n in range(5)), user="eve")
    await keep(journal, block("old", 101.0), block("new", 104.0), per_user=3)
    await keep(journal, block("a", 102.0), block("b", 105.0), session="s2", per_user=3)
    assert (await anchors(journal), await anchors(journal, session="s2")) == (["new"], ["a", "b"])
    assert len(await anchors(journal, "eve")) == 5


# --- time ------------------------------------------------------------------------------------------------------------


async def test_what_is_past_its_time_is_not_given_and_goes(journal: SqlJournal) -> None:
    await keep(journal, block("m1", until=200.0), block("m2", 101.0, until=300.0))
    assert [each.anchor for each in await kept(journal, now=199.9)] == ["m1", "m2"]
    assert [each.anchor for each in await kept(journal, now=200.0)] == ["m2"]
    await journal.prune_states(now=199.9)
    assert len(await kept(journal, now=0.0)) == 2
    await journal.prune_states(now=200.0)
    assert [each.anchor for each in await kept(journal, now=0.0)] == ["m2"]


# --- erasing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "what",
    [
        Forgetting(Scope("ada"), 200.0),
        Forgetting(Scope("ada", session="s2"), 200.0),
        Forgetting(Scope("ada", project="p"), 200.0),
        Forgetting(Scope("ada"), 200.0, types=(MemoryType.SEMANTIC,)),
        Forgetting(Scope("ada"), 200.0, memory_id="mem_9"),
    ],
    ids=["user", "another session", "a project", "a type", "another memory"],
)
async def test_any_erasure_of_a_users_takes_the_blocks_and_no_other_users(
    journal: SqlJournal, what: Forgetting
) -> None:
    for user in ("ada", "eve"):
        await keep(journal, ONE, user=user)
        await keep(journal, TWO, user=user, session="s2")
    hold, _ = await journal.begin_erasure(what, now=200.0)
    assert await kept(journal) == await kept(journal, session="s2") == []
    await keep(journal, block("m4", 300.0))
    assert await kept(journal) == [], "while it is under way"
    await journal.finish_erasure(what, hold)
    if what.takes_turns:
        await keep(journal, ONE, block("m4", 200.0))
        assert await kept(journal) == [], "shown before it"
        await keep(journal, block("m4", 199.0), block("m5", 200.1))
        assert await anchors(journal) == ["m5"], "shown after it"
    assert (await kept(journal, "eve"), await kept(journal, "eve", "s2")) == ([ONE], [TWO])


async def test_a_block_that_comes_after_the_erasure_of_a_single_memory_and_was_shown_before_it_is_refused(
    journal: SqlJournal,
) -> None:
    memory = Memory("mem_1", 1, MemoryType.SEMANTIC, "User likes tea", "ada", created_at=50.0)
    await journal.mark_memories([memory], at=200.0)
    await keep(journal, block("m1", 150.0), block("m2", 200.0))
    await keep(journal, block("m1", 150.0), user="eve")
    assert (await anchors(journal), await anchors(journal, "eve")) == ([], ["m1"])
    await keep(journal, block("m3", 201.0))
    assert await anchors(journal) == ["m3"]


async def test_in_one_call_the_blocks_of_others_are_kept_where_one_users_are_refused(journal: SqlJournal) -> None:
    await erase(journal, Scope("ada"), at=200.0)
    rows: list[ShownRow] = [("ada", "s1", ONE), ("eve", "s1", ONE), ("ada", "s1", block("m2", 201.0))]
    await journal.keep_shown(rows, per_user=10)
    assert (await anchors(journal), await anchors(journal, "eve")) == (["m2"], ["m1"])


async def test_erasures_of_elsewhere_take_them_all(journal: SqlJournal) -> None:
    """Marks are digests: whose blocks they mean is not looked up."""
    await keep(journal, ONE)
    await journal.add_marks([Mark(("x", "", "", ""), 50.0)])
    assert await kept(journal) == []
    await keep(journal, ONE)
    await journal.erase_marked()
    assert await kept(journal) == []


async def test_a_conversation_that_is_removed_takes_the_users_blocks_along(journal: SqlJournal) -> None:
    talk = await removed(journal, before=[ONE])
    assert await kept(journal) == []
    assert await kept(journal, "eve") == [ONE]
    assert talk.startswith("conv_")


async def test_a_block_that_shows_a_removed_conversation_is_refused_where_it_was_shown_before(
    journal: SqlJournal,
) -> None:
    talk = await removed(journal, before=[])
    shows = (("mem_1", 1), (talk, 1))
    await keep(journal, block("m1", 199.0, memories=shows), block("m2", 200.0, memories=shows))
    await keep(journal, block("m3", 199.0, memories=(("conv_other", 1),)), block("m4", 201.0, memories=shows))
    assert await anchors(journal) == ["m3", "m4"]


async def removed(journal: SqlJournal, *, before: list[ShownBlock]) -> str:
    """A conversation of Ada's, that was removed at 200; Ada and Eve were shown ``before``."""
    await journal.record([turn("t_1", opened_at=50.0)], [])
    limits = ConversationLimits(messages_max=100, per_user_max=100, message_chars_max=200, search_messages_max=1000)
    await journal.record_said([SaidHalf("t_1", Step("", FIRST_ANSWER, 50.0), ())], limits)
    for user in ("ada", "eve"):
        await keep(journal, *before, user=user)
    talk = conversation_id(ADA)
    assert await journal.forget_conversation(Scope("ada"), talk, now=200.0) is not None
    return talk


async def test_a_user_of_whom_only_a_block_is_left_is_known(journal: SqlJournal) -> None:
    """So that an erasure of everybody finds it."""
    await keep(journal, ONE, user="zoe")
    assert "zoe" in await journal.users_after("ada", limit=10)


async def test_nothing_that_was_shown_is_left_in_any_table_after_its_users_erasure(journal: SqlJournal) -> None:
    await keep(journal, block("m1", text="User likes marzipan"), user="ada")
    await erase(journal, Scope("ada"), at=200.0)
    assert "marzipan" not in repr(await rows_of(journal))


# --- trouble ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", ["", "no JSON", "[]", "null", '{"anchor": 5}', '{"anchor":"m1"}'])
async def test_a_body_that_cannot_be_read_is_an_error_of_the_journals(journal: SqlJournal, body: str) -> None:
    await keep(journal, ONE)
    await change(journal, f"UPDATE shown_blocks SET body = '{body}'")
    with pytest.raises(JournalError):
        await kept(journal)


async def test_a_ledger_finds_after_a_restart_what_an_earlier_one_has_kept(journal: SqlJournal) -> None:
    tasks = Tasks()
    first = Ledger(journal, spawn=tasks.spawn)
    page = await first.page("ada", "s1", (), held=False, now=100.0)
    for each in (ONE, TWO):
        first.add(page, each)
    await first.flush()
    second = Ledger(journal, spawn=tasks.spawn)
    again = await second.page("ada", "s1", [Anchor("m1", 0)], held=False, now=200.0)
    assert again.blocks == page.blocks == {"m1": ONE, "m2": TWO}
    second.clear(again, "erased")
    await second.flush()
    assert await kept(journal) == []
