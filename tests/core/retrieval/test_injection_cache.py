"""The blocks of running tool loops: how many, how long, and when they are dropped."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from semmem.memory import Controls, Conversation, Hit, Injection, Memory, MemoryType, Message, Role, Scope
from semmem.retrieval.block import Block, block_of
from semmem.retrieval.injection_cache import InjectionCache, Loop, goes_on, loop_of

NOW = 1_800_000_000.0
BLOCK = Block(Injection("<block>"), ("mem_1", "mem_2"), tokens=7)
ADA = Loop("ada", "one")


def kept(*, entries_max: int = 10, ttl_s: float = 60.0, changes_max: int = 1000) -> InjectionCache:
    """Blocks with ADA's in it."""
    blocks = InjectionCache(entries_max=entries_max, ttl_s=ttl_s, changes_max=changes_max)
    blocks.put(ADA, BLOCK, mark=blocks.mark(), now=NOW)
    return blocks


def test_a_block_lives_as_long_as_it_is_used() -> None:
    blocks = kept()
    assert blocks.get(ADA, now=NOW + 60) is BLOCK
    assert blocks.get(ADA, now=NOW + 120) is BLOCK
    assert blocks.get(ADA, now=NOW + 180.5) is None
    assert len(blocks) == 0


def test_none_is_kept_where_none_may_be() -> None:
    assert kept(entries_max=0).get(ADA, now=NOW) is None


def test_the_one_that_was_not_used_for_longest_makes_room() -> None:
    blocks = kept(entries_max=2)
    bob, eve = Loop("bob", "two"), Loop("eve", "three")
    blocks.put(bob, BLOCK, mark=0, now=NOW)
    assert blocks.get(ADA, now=NOW) is BLOCK
    blocks.put(eve, BLOCK, mark=0, now=NOW)
    assert [blocks.get(loop, now=NOW) for loop in (ADA, bob, eve)] == [BLOCK, None, BLOCK]


def test_what_nobody_uses_any_more_goes_when_another_comes() -> None:
    blocks = kept()
    blocks.put(Loop("bob", "two"), BLOCK, mark=0, now=NOW + 61)
    assert len(blocks) == 1


def test_a_block_that_is_over_when_it_comes_is_not_kept() -> None:
    blocks = kept()
    blocks.put(ADA, replace(BLOCK, expires_at=NOW), mark=0, now=NOW)
    assert len(blocks) == 0


def test_a_loop_without_a_block_loses_the_one_it_had() -> None:
    blocks = kept()
    blocks.put(ADA, None, mark=0, now=NOW)
    assert blocks.get(ADA, now=NOW) is None


@pytest.mark.parametrize(
    ("user", "memory_id", "stays"),
    [
        ("ada", "mem_1", False),
        ("ada", "mem_2", False),
        ("ada", None, False),
        ("ada", "mem_3", True),
        ("bob", "mem_1", True),
        ("bob", None, True),
    ],
)
def test_a_change_drops_the_blocks_it_is_about(user: str, memory_id: str | None, stays: bool) -> None:
    blocks = kept()
    blocks.changed(user, memory_id)
    assert (blocks.get(ADA, now=NOW) is BLOCK) is stays

    late = InjectionCache(entries_max=10, ttl_s=60.0)
    mark = late.mark()
    late.changed(user, memory_id)
    late.changed("eve", "mem_9")
    late.put(ADA, BLOCK, mark=mark, now=NOW)
    assert (late.get(ADA, now=NOW) is BLOCK) is stays
    late.put(ADA, BLOCK, mark=late.mark(), now=NOW)
    assert late.get(ADA, now=NOW) is BLOCK


def test_when_anything_may_have_changed_no_block_stays_and_none_that_was_being_made_is_kept() -> None:
    blocks = kept()
    before = blocks.mark()
    blocks.everything_changed()
    assert (blocks.get(ADA, now=NOW), blocks.has_any("ada"), len(blocks)) == (None, False, 0)
    blocks.changed("bob", None)
    blocks.put(ADA, BLOCK, mark=before, now=NOW)
    assert blocks.get(ADA, now=NOW) is None
    blocks.put(ADA, BLOCK, mark=blocks.mark(), now=NOW)
    assert blocks.get(ADA, now=NOW) is BLOCK


def test_who_took_longer_than_the_changes_that_are_remembered_is_not_believed() -> None:
    blocks = InjectionCache(entries_max=10, ttl_s=60.0, changes_max=3)
    mark = blocks.mark()
    for _ in range(3):
        blocks.changed("bob", None)
    blocks.put(ADA, BLOCK, mark=mark, now=NOW)
    assert blocks.get(ADA, now=NOW) is BLOCK
    blocks.changed("bob", None)
    blocks.put(ADA, BLOCK, mark=mark, now=NOW)
    assert blocks.get(ADA, now=NOW) is None


@given(
    st.lists(st.tuples(st.sampled_from("put get changed forgotten late".split()), st.integers(0, 3), st.integers(0, 9)))
)
def test_whatever_happens_it_stays_within_its_size_and_shows_nothing_that_changed(
    steps: list[tuple[str, int, int]],
) -> None:
    blocks = InjectionCache(entries_max=3, ttl_s=5.0)
    fresh: set[Loop] = set()
    for now, (step, who, which) in enumerate(steps):
        user, loop = f"user{who}", Loop(f"user{who}", f"turn{which % 3}")
        match step:
            case "put":
                blocks.put(loop, BLOCK, mark=blocks.mark(), now=now)
                fresh.add(loop)
            case "get":
                assert loop in fresh or blocks.get(loop, now=now) is None
            case "changed":
                blocks.changed(user, "mem_1")
                fresh -= {known for known in fresh if known.user == user}
            case "forgotten":
                blocks.changed(user, None)
                fresh -= {known for known in fresh if known.user == user}
            case _:
                mark = blocks.mark()
                blocks.changed(user, "mem_2")
                fresh -= {known for known in fresh if known.user == user}
                blocks.put(loop, BLOCK, mark=mark, now=now)
        assert len(blocks) <= 3


def test_a_loop_is_told_apart_by_all_its_block_depends_on() -> None:
    scope, said = Scope("ada", project="p"), Conversation((), model="m")
    loop = loop_of(scope, "t", said)
    assert loop == loop_of(scope, "t", structs.replace(said, stream=True, messages=(Message(Role.TOOL, "x"),)))
    others = [
        loop_of(structs.replace(scope, user="bob"), "t", said),
        loop_of(structs.replace(scope, project=None), "t", said),
        loop_of(scope, "u", said),
        loop_of(scope, "t", structs.replace(said, model="n")),
        loop_of(scope, "t", structs.replace(said, controls=Controls(limit=1))),
    ]
    assert len({loop, *others}) == 6
    assert len(loop_of(scope, "t", structs.replace(said, model="m" * 10_000)).name) == 32


@pytest.mark.parametrize(
    ("roles", "goes"),
    [
        ([], False),
        ([Role.USER], False),
        ([Role.USER, Role.ASSISTANT], False),
        ([Role.USER, Role.ASSISTANT, Role.TOOL], True),
        ([Role.USER, Role.ASSISTANT, Role.TOOL, Role.TOOL, Role.SYSTEM], True),
        ([Role.USER, Role.ASSISTANT, Role.TOOL, Role.USER], False),
        ([Role.TOOL], True),
    ],
)
def test_a_turn_goes_on_when_tools_spoke_last(roles: list[Role], goes: bool) -> None:
    assert goes_on(Conversation(tuple(Message(role, "x") for role in roles))) is goes


def shown(*expiries: float | None) -> list[Hit]:
    return [
        Hit(Memory(f"mem_{number}", 1, MemoryType.SEMANTIC, "x", "ada", expires_at=expires_at), 0.5, 0.5)
        for number, expires_at in enumerate(expiries)
    ]


def test_a_block_is_what_was_found_until_the_first_of_it_expires() -> None:
    injection = Injection("<block>", role="user", position="after_system")
    ids = ("mem_0", "mem_1", "mem_2")
    assert block_of(injection, shown(None, NOW + 9, NOW + 3), 9) == Block(injection, ids, 9, NOW + 3)
    assert block_of(injection, shown(None), 9) == Block(injection, ("mem_0",), 9, None)
