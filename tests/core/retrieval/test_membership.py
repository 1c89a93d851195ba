"""Which memories lie in a scope: the arrays say what the store's own rule says."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.memory import MEMORY_TYPES, STANDING, Memory, MemoryType, Scope, Standing
from semmem.ports.storable import contains
from semmem.retrieval.index.membership import Membership
from tests.support.cpu_time import within_cpu_s

NAMES = st.sampled_from([None, "", "a", "b"])
NOW = 1000.0
MEMORIES = st.lists(
    st.builds(
        Memory,
        id=st.just("m"),
        version=st.just(1),
        type=st.sampled_from(MEMORY_TYPES),
        content=st.just("tea"),
        user=st.just("ada"),
        project=NAMES,
        agent=NAMES,
        session=NAMES,
        metadata=st.sampled_from([{}, *({STANDING: one.value} for one in Standing)]),
        expires_at=st.sampled_from([None, NOW - 1, NOW, NOW + 1, float("nan"), float("inf")]),
    ),
    max_size=6,
)


@settings(deadline=None)
@given(MEMORIES, NAMES, NAMES, NAMES, st.lists(st.sampled_from(MEMORY_TYPES), max_size=2))
def test_it_is_the_stores_own_rule(
    memories: list[Memory], project: str | None, agent: str | None, session: str | None, types: list[MemoryType]
) -> None:
    scope = Scope("ada", project=project, agent=agent, session=session)
    expected = [
        contains(scope, memory, types) and (memory.expires_at is None or memory.expires_at > NOW) for memory in memories
    ]
    assert Membership(memories).within(scope, types, NOW).tolist() == expected


@settings(deadline=None)
@given(MEMORIES, NAMES, NAMES)
def test_a_request_in_a_project_reads_what_belongs_to_none_and_what_the_user_must(
    memories: list[Memory], project: str | None, agent: str | None
) -> None:
    read = Membership(memories).within(Scope("ada", project, agent, reads_common=True), (), NOW)
    for memory, is_read in zip(memories, read.tolist(), strict=True):
        is_here = project is None or (memory.project or "") in (project, "") or memory.standing is Standing.MUST
        is_agents = agent is None or (memory.agent or "") == agent
        is_current = memory.expires_at is None or memory.expires_at > NOW
        assert is_read == (is_here and is_agents and is_current)


def test_five_thousand_memories_cost_a_request_next_to_nothing() -> None:
    membership = Membership([Memory(str(n), 1, MemoryType.SEMANTIC, "tea", "ada", project="p") for n in range(5000)])
    scope = Scope("ada", project="p")
    assert within_cpu_s(0.001, lambda _: membership.within(scope, tuple(MemoryType), NOW), tries=20)
