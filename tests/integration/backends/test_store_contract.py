"""What every store must do, isolation first."""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from semmem.memory import Memory, MemoryStatus, MemoryType, Scope, Source
from semmem.ports.errors import StoreError, StoreRefused, StoreUnavailable
from semmem.ports.storable import CONTENT_BYTES_MAX, METADATA_DEPTH_MAX, depth_exceeds
from semmem.ports.store import Enumerable, Fillable, Store
from tests.support.examples import examples
from tests.support.memories import DIMENSION, NOW, found, found_ids, memory, put, towards

SEVERAL = 210
"""More than a store writes in one call."""
HOSTILE = [
    'a" or user_id != "',
    '" or "" == "',
    "o'hara",
    'a"b',
    "back\\slash",
    'a\\"b',
    "ends with \\",
    '"] or user_id != "',
    "new\nline",
    "return\rhere",
    "tab\tx",
    "nul\x00byte",
    "新用户",
    "%",
    "_",
    "👩‍👩‍👧 family",
    " ",
    "user_id",
    "A" * 256,
    "漢" * 256,
    "😀" * 256,
]


def names(user: str) -> list[str]:
    """Hostile user ids of this test alone, that share everything but their hostile part."""
    return [(name + user)[-256:] if len(name) < 200 else (user + name)[:256] for name in HOSTILE]


# --- isolation -------------------------------------------------------------------------------------------------------


async def test_nobody_else_reads_a_memory(store: Store, user: str) -> None:
    await put(store, memory(user, project="p", session="s"))
    for other in (Scope(user + "x"), Scope(user[:-1]), Scope(user.upper()), Scope(user + "x", "p", None, "s")):
        assert await store.get(other, "mem_1") is None
        assert await store.list(other) == []
        assert await store.count(other) == 0
        assert await found(store, other) == []


async def test_nobody_else_removes_a_memory(store: Store, user: str) -> None:
    await put(store, memory(user))
    other = Scope(user + "x")
    assert await store.forget(other, "mem_1") is False
    assert await store.forget_scope(other) == 0
    assert await found_ids(store, Scope(user)) == ["mem_1"]


async def test_nobody_else_changes_a_memory_by_using_its_id(store: Store, user: str) -> None:
    mine, same, theirs = memory(user), memory(user + "x", content="same"), memory(user + "x", version=7)
    await put(store, mine, same, theirs)
    assert await store.list(Scope(user)) == [mine]
    assert await store.get(Scope(user + "x"), "mem_1") == theirs
    assert await store.forget(Scope(user + "x"), "mem_1") is True
    assert await store.get(Scope(user), "mem_1") == mine


async def test_a_memory_is_only_written_in_its_own_users_scope(store: Store, user: str) -> None:
    with pytest.raises(StoreError):
        await store.put(Scope(user + "x"), memory(user))
    assert await store.count(Scope(user)) == await store.count(Scope(user + "x")) == 0


async def test_hostile_user_ids_are_isolated_from_each_other(store: Store, user: str) -> None:
    users = names(user)
    assert len(set(users)) == len(HOSTILE)
    memories = {name: memory(name, content=f"content {number}") for number, name in enumerate(users)}
    await put(store, *memories.values())
    for name, expected in memories.items():
        scope = Scope(name)
        assert await store.list(scope) == [expected]
        assert await store.get(scope, "mem_1") == expected
        assert [hit.memory for hit in await found(store, scope, limit=50)] == [expected]
        assert await store.count(scope) == 1


async def test_forgetting_a_hostile_user_leaves_the_others(store: Store, user: str) -> None:
    users = names(user)
    await put(store, *(memory(name) for name in users), *(memory(name, "mem_2") for name in users))
    for gone, name in enumerate(users):
        assert await store.forget(Scope(name), "mem_1") is True
        assert await store.forget_scope(Scope(name)) == 1
        assert await store.count(Scope(name)) == 0
        if gone + 1 < len(users):
            assert await store.count(Scope(users[gone + 1])) == 2


async def test_hostile_memory_ids_are_kept_apart(store: Store, user: str) -> None:
    scope = Scope(user)
    await put(store, *(memory(user, name) for name in HOSTILE))
    assert {one.id for one in await store.list(scope)} == set(HOSTILE)
    for left, name in reversed(list(enumerate(HOSTILE))):
        one = await store.get(scope, name)
        assert one is not None
        assert one.id == name
        assert await store.forget(scope, name) is True
        assert await store.get(scope, name) is None
        assert await store.count(scope) == left


@pytest.mark.parametrize("part", ["project", "agent", "session"])
async def test_hostile_scope_names_are_kept_apart(store: Store, user: str, part: str) -> None:
    await put(store, *(memory(user, f"mem_{number}", **{part: name}) for number, name in enumerate(HOSTILE)))
    for number, name in enumerate(HOSTILE):
        scope = structs.replace(Scope(user), **{part: name})
        expected = [f"mem_{number}"]
        assert [one.id for one in await store.list(scope)] == expected
        assert await found_ids(store, scope) == expected
    assert await store.forget_scope(structs.replace(Scope(user), **{part: HOSTILE[0]})) == 1
    assert await store.count(Scope(user)) == len(HOSTILE) - 1


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.tuples(st.text(max_size=40), st.text(max_size=40)).filter(lambda parts: parts[0] != parts[1]))
async def test_any_two_users_are_isolated(store: Store, parts: tuple[str, str]) -> None:
    nonce = secrets.token_hex(4)
    mine, theirs = (memory(f"{part}{nonce}", part) for part in parts)
    await put(store, mine, theirs)
    assert await store.list(Scope(mine.user)) == [mine]
    assert await store.get(Scope(theirs.user), mine.id) is None
    assert await store.forget_scope(Scope(mine.user)) == 1
    assert await found_ids(store, Scope(theirs.user)) == [theirs.id]


# --- what was put comes back -----------------------------------------------------------------------------------------


async def test_every_field_comes_back(store: Store, user: str) -> None:
    whole = Memory(
        id="mem_whole",
        version=3,
        type=MemoryType.PROCEDURAL,
        content='Line one\nline "two" \\ 新 😀 \x00 end',
        user=user,
        project="p",
        agent="a",
        session="s",
        source=Source(role="user", session="s", turn="t", request_id="r", time=NOW + 0.123456),
        key="k",
        metadata={"b": 1, "a": [1.5, None, True, {"x": "ü"}], "big": 2**80, "": "empty"},
        importance=0.123456789,
        created_at=NOW + 0.123,
        updated_at=NOW + 0.456,
        occurred_at=-1.5,
        expires_at=NOW + 9.999,
        status=MemoryStatus.QUARANTINED,
        embedding=towards(3, leaning=4, by=0.5),
    )
    await put(store, whole)
    for read in (await store.get(Scope(user), "mem_whole"), *await store.list(Scope(user))):
        assert read == whole
        assert list(read.metadata) == list(whole.metadata)
        assert read.embedding is not None
        assert read.embedding.dtype == np.float32
        np.testing.assert_allclose(read.embedding, towards(3, leaning=4, by=0.5), atol=1e-6)


async def test_absent_fields_stay_absent(store: Store, user: str) -> None:
    bare = memory(user, embedding=None)
    await put(store, bare)
    read = await store.get(Scope(user), "mem_1")
    assert read == bare
    assert read.embedding is None
    assert (read.project, read.agent, read.session, read.key, read.occurred_at, read.expires_at) == (None,) * 6


async def test_a_memory_does_not_change_with_its_writers_dictionary(store: Store, user: str) -> None:
    metadata = {"tags": ["a"]}
    await put(store, memory(user, metadata=metadata))
    metadata["tags"].append("b")
    (read,) = await store.list(Scope(user))
    read.metadata["tags"].append("c")
    assert (await store.list(Scope(user)))[0].metadata == {"tags": ["a"]}


# --- search ----------------------------------------------------------------------------------------------------------


async def test_search_returns_the_nearest_first_with_their_cosines(store: Store, user: str) -> None:
    cosines = [0.9, -0.3, 0.0, 0.5, 1.0]
    await put(
        store,
        *(memory(user, f"mem_{at}", embedding=towards(at + 1, by=cosine)) for at, cosine in enumerate(cosines)),
    )
    hits = await found(store, Scope(user), limit=4)
    assert [hit.memory.id for hit in hits] == ["mem_4", "mem_0", "mem_3", "mem_2"]
    assert [hit.cosine for hit in hits] == pytest.approx([1.0, 0.9, 0.5, 0.0], abs=1e-5)
    assert all(hit.score == hit.cosine for hit in hits)


async def test_search_finds_exactly_what_a_user_has(store: Store, user: str) -> None:
    """Per user, the count and the order equal an exact search over that user's own vectors."""
    random = np.random.default_rng(7)
    users = [f"{user}-{number}" for number in range(6)]
    vectors = random.standard_normal((6, 8, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    for name, own in zip(users, vectors, strict=True):
        await put(store, *(memory(name, f"mem_{at}", embedding=vector) for at, vector in enumerate(own)))
    for name, own in zip(users, vectors, strict=True):
        expected = [f"mem_{at}" for at in np.argsort(-(own @ towards(0)))]
        assert await found_ids(store, Scope(name)) == expected


async def test_a_search_on_the_request_path_shows_a_write_soon(store: Store, user: str) -> None:
    await put(store, memory(user))
    deadline = asyncio.get_running_loop().time() + 5
    hits = await found(store, Scope(user), as_of=None)
    while not hits and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.02)
        hits = await found(store, Scope(user), as_of=None)
    assert [hit.memory.id for hit in hits] == ["mem_1"]


async def test_expired_memories_are_not_found(store: Store, user: str) -> None:
    await put(store, memory(user, "past", expires_at=NOW - 1), memory(user, "at_zero", expires_at=0.0))
    await put(store, memory(user, "future", expires_at=NOW + 1), memory(user, "never"))
    assert sorted(await found_ids(store, Scope(user))) == ["future", "never"]
    assert sorted(await found_ids(store, Scope(user), now=NOW + 1)) == ["never"]
    assert await store.count(Scope(user)) == 4


@pytest.mark.parametrize("status", [MemoryStatus.SUPERSEDED, MemoryStatus.QUARANTINED])
async def test_only_active_memories_are_found(store: Store, user: str, status: MemoryStatus) -> None:
    await put(store, memory(user), memory(user, "mem_2", status=status))
    assert await found_ids(store, Scope(user)) == ["mem_1"]
    assert {one.id for one in await store.list(Scope(user))} == {"mem_1", "mem_2"}
    await put(store, memory(user, version=2, status=status))
    assert await found_ids(store, Scope(user)) == []


async def test_types_narrow_every_call_that_takes_them(store: Store, user: str) -> None:
    scope = Scope(user)
    await put(store, *(memory(user, kind.value, type=kind) for kind in MemoryType))
    two = (MemoryType.SEMANTIC, MemoryType.EPISODIC)
    assert sorted(await found_ids(store, scope, types=two)) == ["episodic", "semantic"]
    assert sorted(one.id for one in await store.list(scope, types=two)) == ["episodic", "semantic"]
    assert await store.count(scope, types=two) == 2
    assert await store.forget_scope(scope, types=two) == 2
    assert sorted(await found_ids(store, scope)) == ["procedural", "reflective"]


@pytest.mark.parametrize("part", ["project", "agent", "session"])
async def test_a_narrow_scope_narrows_every_call(store: Store, user: str, part: str) -> None:
    narrow, wide = structs.replace(Scope(user), **{part: "one"}), Scope(user)
    await put(store, memory(user, "in", **{part: "one"}), memory(user, "out", **{part: "two"}), memory(user, "none"))
    assert await found_ids(store, narrow) == ["in"]
    assert [one.id for one in await store.list(narrow)] == ["in"]
    assert await store.count(narrow) == 1
    assert await store.get(narrow, "in") is not None
    assert await store.get(narrow, "out") is None
    assert await store.forget(narrow, "out") is False
    assert await store.forget_scope(narrow) == 1
    assert sorted(await found_ids(store, wide)) == ["none", "out"]


async def test_a_search_in_a_project_may_see_what_belongs_to_none(store: Store, user: str) -> None:
    await put(store, memory(user, "in", project="one"), memory(user, "out", project="two"), memory(user, "none"))
    assert sorted(await found_ids(store, Scope(user, project="one", reads_common=True))) == ["in", "none"]
    assert await found_ids(store, Scope(user, project="", reads_common=True)) == ["none"]
    assert sorted(await found_ids(store, Scope(user, reads_common=True))) == ["in", "none", "out"]


async def test_a_memory_without_an_embedding_is_listed_but_not_found(store: Store, user: str) -> None:
    await put(store, memory(user, "without", embedding=None), memory(user, "with"))
    assert await found_ids(store, Scope(user)) == ["with"]
    assert await store.count(Scope(user)) == 2


async def test_a_vector_is_normalised_when_it_is_not(store: Store, user: str) -> None:
    await put(store, memory(user, embedding=towards(1, by=0.1) * 5))
    (hit,) = await found(store, Scope(user), towards(0) * 7)
    assert hit.cosine == pytest.approx(0.1)
    read = await store.get(Scope(user), "mem_1")
    assert read is not None
    assert read.embedding is not None
    np.testing.assert_allclose(read.embedding, towards(1, by=0.1), atol=1e-6)


@pytest.mark.parametrize(
    "vector",
    [
        np.ones(DIMENSION + 1, dtype=np.float32),
        np.zeros(DIMENSION, dtype=np.float32),
        np.full(DIMENSION, np.nan, dtype=np.float32),
        np.full(DIMENSION, np.inf, dtype=np.float32),
        np.ones((1, DIMENSION), dtype=np.float32),
    ],
    ids=["long", "zero", "nan", "inf", "matrix"],
)
async def test_unusable_vectors_are_refused(store: Store, user: str, vector: np.ndarray) -> None:
    with pytest.raises(StoreError):
        await put(store, memory(user, embedding=vector))
    with pytest.raises(StoreError):
        await found(store, Scope(user), vector)
    assert await store.count(Scope(user)) == 0


async def test_a_limit_of_nothing_finds_nothing(store: Store, user: str) -> None:
    await put(store, memory(user))
    assert await found(store, Scope(user), limit=0) == []
    assert await store.list(Scope(user), limit=0) == []


@pytest.mark.parametrize(
    "fields",
    [{"metadata": {"x": {1, 2}}}, {"metadata": {"x": math.nan}}, {"created_at": math.nan}, {"expires_at": math.inf}],
    ids=["set", "nan", "no time", "for ever"],
)
async def test_what_cannot_be_kept_is_refused(store: Store, user: str, fields: dict[str, Any]) -> None:
    with pytest.raises(StoreError):
        await put(store, memory(user, **fields))
    assert await store.count(Scope(user)) == 0


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth - 1):
        value = {"deeper": value}
    return value


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("id", {"id": "i" * 1025}),
    ("project", {"project": "漢" * 342}),
    ("agent", {"agent": "a" * 1025}),
    ("session", {"session": "s" * 15_000}),
    ("session", {"session": "lone \udfff"}),
    ("content", {"content": "漢" * (CONTENT_BYTES_MAX // 3 + 1)}),
    ("content", {"content": "lone \ud800"}),
    ("metadata", {"metadata": {"x": "m" * 70_000}}),
    ("metadata", {"metadata": {"x": "lone \ud800"}}),
    ("metadata", {"metadata": {"x": math.nan}}),
    ("metadata", {"metadata": nested(METADATA_DEPTH_MAX + 1)}),
    ("metadata", {"metadata": nested(900)}),
    ("metadata", {"key": "k" * 70_000}),
    ("metadata", {"source": Source(request_id="r" * 70_000)}),
    ("created_at", {"created_at": math.nan}),
    ("expires_at", {"expires_at": math.inf}),
    ("importance", {"importance": math.nan}),
]


@pytest.mark.parametrize(("field", "fields"), REFUSED, ids=[f"{n}-{field}" for n, (field, _) in enumerate(REFUSED)])
async def test_what_is_never_taken_is_refused_by_its_name_and_for_good(
    store: Store, user: str, field: str, fields: dict[str, Any]
) -> None:
    kept = memory(user, "mem_kept")
    await put(store, kept)
    with pytest.raises(StoreRefused, match=f"^{field}") as refused:
        await put(store, memory(user, **fields))
    assert refused.value.field.startswith(field)
    assert len(str(refused.value)) < 120
    assert await store.list(Scope(user)) == [kept]


async def test_a_user_whose_name_is_never_taken_is_refused(store: Store, user: str) -> None:
    with pytest.raises(StoreRefused, match=r"^user"):
        await put(store, memory(user + "x" * 1024))


async def test_metadata_at_the_limit_of_depth_is_kept(store: Store, user: str) -> None:
    await put(store, memory(user, metadata=nested(METADATA_DEPTH_MAX)))
    assert (await store.list(Scope(user)))[0].metadata == nested(METADATA_DEPTH_MAX)


def test_depth_counts_objects_and_lists() -> None:
    assert not depth_exceeds({"a": 1}, 1)
    assert depth_exceeds({"a": {}}, 1)
    assert depth_exceeds({"a": [[]]}, 2)
    assert not depth_exceeds({"a": [[]]}, 3)
    own: list[Any] = []
    own.append(own)
    assert depth_exceeds({"a": own}, 64)


# --- versions --------------------------------------------------------------------------------------------------------


async def test_only_the_highest_version_is_visible(store: Store, user: str) -> None:
    scope = Scope(user)
    versions = [memory(user, version=number, content=f"version {number}") for number in (1, 2, 3)]
    await put(store, *versions)
    assert await store.get(scope, "mem_1") == versions[-1]
    assert await store.list(scope) == versions[-1:]
    assert [hit.memory for hit in await found(store, scope)] == versions[-1:]
    assert await store.count(scope) == 1


async def test_a_lower_version_that_comes_late_changes_nothing(store: Store, user: str) -> None:
    await put(store, memory(user, version=3), memory(user, version=2, project="old"))
    assert await store.get(Scope(user), "mem_1") == memory(user, version=3)
    assert await store.count(Scope(user)) == 1
    assert await store.count(Scope(user, "old")) == 0


async def test_putting_a_version_again_changes_nothing(store: Store, user: str) -> None:
    first = memory(user)
    await put(store, first, first, replace(first, content="other words"))
    assert await store.list(Scope(user)) == [first]
    assert [hit.memory for hit in await found(store, Scope(user))] == [first]


async def test_several_are_put_as_if_one_after_another(store: Store, user: str) -> None:
    await put(store, memory(user, "newer", version=3), memory(user, "older"), memory(user, "same"))
    await put(store, memory(user + "x", "fresh", content="of somebody else"))
    told = [
        memory(user, "newer", version=2, content="too late"),
        memory(user, "older", version=2, content="in other words"),
        memory(user, "same", content="not written"),
        *(memory(user, f"fresh {number}") for number in range(SEVERAL)),
    ]
    for _ in range(2):
        await store.put(Scope(user), *told)
    kept = {one.id: one for one in await store.list(Scope(user), limit=2 * SEVERAL)}
    expected = [memory(user, "newer", version=3), told[1], memory(user, "same"), *told[3:]]
    assert kept == {one.id: one for one in expected}
    assert await store.count(Scope(user + "x")) == 1


async def test_of_several_none_is_somebody_elses(store: Store, user: str) -> None:
    with pytest.raises(StoreError):
        await store.put(Scope(user), memory(user + "x"), memory(user))
    with pytest.raises(StoreError):
        await store.put(Scope(user), memory(user, embedding=towards(0)[:3]))
    assert await store.count(Scope(user)) == await store.count(Scope(user + "x")) == 0


async def test_none_at_all_changes_nothing(store: Store, user: str) -> None:
    await store.put(Scope(user))
    assert await store.count(Scope(user)) == 0


async def test_what_is_found_as_of_a_time_brings_its_vector(store: Store, user: str) -> None:
    await put(store, memory(user, embedding=towards(2, leaning=1, by=0.6)))
    [hit] = await found(store, Scope(user), towards(2))
    assert hit.memory.embedding == pytest.approx(towards(2, leaning=1, by=0.6), abs=1e-6)


async def test_versions_count_from_one(store: Store, user: str) -> None:
    with pytest.raises(StoreError):
        await put(store, memory(user, version=0))


async def test_a_new_version_may_move_to_another_project(store: Store, user: str) -> None:
    await put(store, memory(user, project="a"), memory(user, version=2, project="b"))
    assert await found_ids(store, Scope(user, "a")) == []
    assert await store.get(Scope(user, "a"), "mem_1") is None
    assert await found_ids(store, Scope(user, "b")) == ["mem_1"]


async def test_every_user_keeps_all_memories_through_updates(store: Store, user: str) -> None:
    users = [f"{user}-{number}" for number in range(6)]
    for version in (1, 2):
        await put(store, *(memory(name, f"mem_{at}", version=version) for at in range(6) for name in users))
    for name in users:
        assert await store.count(Scope(name)) == 6
        assert [one.version for one in await store.list(Scope(name))] == [2] * 6
        assert len(await found(store, Scope(name), limit=50)) == 6


@pytest.mark.long(30)
async def test_searches_during_updates_see_exactly_one_version(store: Store, user: str) -> None:
    scope, updates = Scope(user), 80
    await put(store, memory(user))
    await found(store, scope)
    done = False

    async def searching() -> int:
        return len(await store.search(scope, towards(0), limit=5, now=NOW))

    async def listing() -> int:
        return len(await store.list(scope))

    async def watch(read: Callable[[], Awaitable[int]]) -> list[int]:
        seen: list[int] = []
        while not done:
            seen.append(await read())
            await asyncio.sleep(0)
        return seen

    async with asyncio.TaskGroup() as group:
        watchers = [group.create_task(watch(read)) for read in (searching, listing)]
        for version in range(2, updates + 2):
            await put(store, memory(user, version=version, embedding=towards(version % DIMENSION)))
            await asyncio.sleep(0)
        done = True
    seen = [number for watcher in watchers for number in watcher.result()]
    assert set(seen) == {1}
    assert len(seen) > 50
    latest = await store.get(scope, "mem_1")
    assert latest is not None
    assert latest.version == updates + 1


async def test_concurrent_writers_lose_nothing(store: Store, user: str) -> None:
    async with asyncio.TaskGroup() as group:
        for number in range(40):
            group.create_task(put(store, memory(user, f"mem_{number % 20}", version=1 + number // 20)))
    assert {one.id: one.version for one in await store.list(Scope(user))} == {f"mem_{at}": 2 for at in range(20)}


# --- list and forget -------------------------------------------------------------------------------------------------


async def test_a_list_without_vectors_is_the_same_list(store: Store, user: str) -> None:
    scope = Scope(user)
    for number in range(3):
        await store.put(scope, memory(user, f"mem_{number}", created_at=float(number), metadata={"n": number}))
    await store.put(scope, memory(user, "mem_1", version=2, created_at=1.0, content="newer"))
    whole = await store.list(scope)
    assert all(each.embedding is not None for each in whole)
    bare = await store.list(scope, vectors=False, limit=2)
    assert [replace(each, embedding=None) for each in bare] == [replace(each, embedding=None) for each in whole[:2]]


async def test_list_is_newest_first_and_paged(store: Store, user: str) -> None:
    times = {"b": 2.0, "a": 2.0, "oldest": 1.0, "newest": 3.0}
    await put(store, *(memory(user, name, created_at=NOW + at) for name, at in times.items()))
    scope = Scope(user)
    assert [one.id for one in await store.list(scope)] == ["newest", "a", "b", "oldest"]
    assert [one.id for one in await store.list(scope, limit=2, offset=1)] == ["a", "b"]
    assert await store.list(scope, offset=4) == []


async def test_forget_removes_every_version_of_one_memory(store: Store, user: str) -> None:
    scope = Scope(user)
    await put(store, memory(user), memory(user, version=2), memory(user, "mem_2"))
    assert await store.forget(scope, "mem_1") is True
    assert await store.forget(scope, "mem_1") is False
    assert await store.get(scope, "mem_1") is None
    assert await found_ids(store, scope) == ["mem_2"]


async def test_a_forgotten_memory_may_be_learnt_again(store: Store, user: str) -> None:
    await put(store, memory(user, version=2))
    await store.forget(Scope(user), "mem_1")
    await put(store, memory(user))
    assert await store.list(Scope(user)) == [memory(user)]


async def test_forget_scope_counts_memories_not_versions(store: Store, user: str) -> None:
    await put(store, memory(user), memory(user, version=2), memory(user, "mem_2", status=MemoryStatus.SUPERSEDED))
    assert await store.forget_scope(Scope(user)) == 2
    assert await store.forget_scope(Scope(user)) == 0
    assert await store.list(Scope(user)) == []


# --- open and closed -------------------------------------------------------------------------------------------------


class CopiedStore(Store, Enumerable, Fillable, Protocol):
    """A store as copies of everything see it."""


async def test_everybody_with_a_memory_of_any_status_is_named(store: CopiedStore, user: str) -> None:
    retired = replace(memory(user + "x"), status=MemoryStatus.SUPERSEDED)
    await put(store, memory(user), memory(user, "mem_2"), retired)
    assert {user, user + "x"} <= await store.users()
    await store.forget_scope(Scope(user))
    assert user not in await store.users()


async def test_what_fills_a_store_is_there_as_it_was(store: CopiedStore, user: str) -> None:
    copied = [memory(user, f"mem_{number}", version=number + 1) for number in range(5)]
    await store.fill(copied)
    assert sorted(await store.list(Scope(user)), key=lambda one: one.id) == copied


async def test_health_is_silent_when_all_is_well(store: Store) -> None:
    await store.health()


async def test_a_closed_store_is_unavailable_until_opened_again(store: Store, user: str) -> None:
    await put(store, memory(user))
    await store.close()
    await store.close()
    scope = Scope(user)
    for call in (
        lambda: store.put(scope, memory(user)),
        lambda: store.get(scope, "mem_1"),
        lambda: store.list(scope),
        lambda: store.count(scope),
        lambda: store.forget(scope, "mem_1"),
        lambda: store.forget_scope(scope),
        lambda: store.health(),
        lambda: found(store, scope),
    ):
        with pytest.raises(StoreUnavailable):
            await call()
    await store.open()
    await store.open()
    assert await found_ids(store, scope) == ["mem_1"]


# --- erasing what was said until a time ------------------------------------------------------------------------------


async def test_only_what_was_said_until_then_goes(store: Store, user: str) -> None:
    said = {"early": 99.9994, "at": 100.0, "just after": 100.0001, "late": 101.0}
    for name, at in said.items():
        await put(store, memory(user, name, source=Source(time=at)))
    await put(store, memory(user, "undated", created_at=50.0), memory(user, "elsewhere", project="p", created_at=50.0))
    await put(store, memory(user, "said anew", source=Source(time=50.0)))
    await put(store, memory(user, "said anew", version=2, source=Source(time=150.0)))
    assert await store.forget_scope(Scope(user, project="p"), said_until=100.0) == 1
    assert await store.forget_scope(Scope(user), said_until=100.0) == 3
    assert {each.id for each in await store.list(Scope(user))} == {"just after", "late", "said anew"}
    assert await store.forget_scope(Scope(user), said_until=100.0) == 0
