"""A fact on its way into the store, and the versions of memories that it makes. Pure."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from semmem.lifecycle.spared import without
from semmem.memory import (
    BESIDE,
    CHANGES_STANDING,
    PROVISIONAL,
    STANDING,
    TOPIC,
    UNSETTLED,
    Fact,
    Memory,
    Scope,
    Source,
    Turn,
    Vector,
)
from semmem.text.digest import stable_id

PAIR_FOUND, PAIR_REPLACED = "found", "replaced"
"""Of an unsettled pair: it was noted; one of the two went, as a later fact makes it untrue."""


class Action(StrEnum):
    """What storing a fact did. ``superseded``: it was created, and an older memory is no longer retrieved.
    ``confirmed``: a provisional memory says it, and stays. ``rewritten``: one says it in other words, and has a new
    version. ``outdated``: what was said later replaces it, and it is kept as history. ``forgotten``: its batch was
    erased meanwhile, and nothing is stored."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    SUPERSEDED = "superseded"
    QUARANTINED = "quarantined"
    CONFIRMED = "confirmed"
    REWRITTEN = "rewritten"
    OUTDATED = "outdated"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True)
class Removal:
    """What is no longer retrieved, and why (a reason word). ``by`` is empty where nothing took its place.
    ``contradicted``: the memory ``id``, since ``by`` says otherwise. ``updated``: the version before of memory ``id``.
    ``repeated``: a new fact was not stored, under ``id``, since ``by`` says the same word for word. ``rewritten``,
    ``model_dropped``, ``refused``: the provisional memory ``id`` (see semmem.memory). ``undone``: what the memory
    ``id`` said, since the user took that back."""

    reason: str
    id: str
    by: str


@dataclass(frozen=True, slots=True)
class Placed:
    """What storing a fact did, what went with it, and the id of the memory that says it now (empty: none). ``pairs``: a
    word for each pair of memories that may contradict each other and was noted or settled by it."""

    action: Action
    removals: tuple[Removal, ...] = ()
    id: str = field(default="", compare=False)
    pairs: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A screened fact on its way into the store. ``id`` is the memory id it gets if it is created, ``batch`` the batch
    or hold under which it is written. ``provisional``: no batch has learnt from its turn yet. ``apart`` are memories
    that it is not compared with, ``unsettled`` those that it may contradict. ``changes_standing``: a standing memory
    ends or changes with it."""

    id: str
    fact: Fact
    turn: Turn
    vector: Vector
    now: float
    expires_at: float | None = None
    batch: str = ""
    provisional: bool = False
    apart: frozenset[str] = frozenset()
    unsettled: tuple[str, ...] = ()
    changes_standing: bool = False


def memory_id(batch_id: str, index: int | str) -> str:
    """The same for every try to store one fact."""
    return stable_id("mem_", batch_id, str(index))


def keyed_id(user: str, key: str) -> str:
    """The memory id of what a user has under a key, alike from every batch."""
    return memory_id(user, f"key\n{key}")


def created(new: Candidate) -> Memory:
    """The first version of the memory a fact becomes."""
    scope = new.turn.scope
    return Memory(
        id=new.id,
        version=1,
        type=new.fact.type,
        content=new.fact.content,
        user=scope.user,
        project=scope.project,
        agent=scope.agent,
        session=scope.session,
        source=_source(new.turn),
        key=new.fact.key,
        metadata=_own_metadata(new),
        importance=new.fact.importance,
        created_at=new.now,
        updated_at=new.now,
        occurred_at=new.fact.occurred_at,
        expires_at=new.expires_at,
        embedding=new.vector,
    )


def updated(old: Memory, new: Candidate) -> Memory:
    """The next version of a memory, which says what the fact says, and goes with what was said where that was."""
    return replace(
        old,
        version=old.version + 1,
        content=new.fact.content,
        agent=new.turn.scope.agent,
        session=new.turn.scope.session,
        source=_source(new.turn),
        metadata=without(old, PROVISIONAL, UNSETTLED, BESIDE, CHANGES_STANDING).metadata | _own_metadata(new),
        importance=max(old.importance, new.fact.importance),
        updated_at=new.now,
        occurred_at=new.fact.occurred_at,
        expires_at=new.expires_at,
        embedding=new.vector,
    )


def confirmed(held: Memory, new: Candidate) -> Memory:
    """The version of a provisional memory that stays, whatever its status. When it was last said has not changed."""
    return replace(
        held,
        version=held.version + 1,
        type=new.fact.type,
        metadata=without(held, PROVISIONAL, UNSETTLED).metadata | _own_metadata(replace(new, provisional=False)),
        importance=max(held.importance, new.fact.importance),
        occurred_at=held.occurred_at if new.fact.occurred_at is None else new.fact.occurred_at,
        expires_at=new.expires_at,
    )


def settled(memory: Memory, gone: Collection[str], now: float) -> Memory:
    """The version of a memory that no longer stands against those that went."""
    left = [other for other in memory.unsettled if other not in gone]
    metadata = without(memory, UNSETTLED).metadata | ({UNSETTLED: left} if left else {})
    return replace(memory, version=memory.version + 1, updated_at=now, metadata=metadata)


def reconsidered(held: Memory, batch: str, now: float) -> Candidate:
    """A memory as the fact it once was. Raises ValueError when it has no vector to compare it by."""
    if held.embedding is None:
        raise ValueError("a memory is compared by its vector")
    scope = Scope(held.user, held.project, held.agent, held.session)
    turn = Turn(held.source.turn, scope, 0, "", opened_at=held.source.time, request_id=held.source.request_id)
    fact = Fact(
        held.type,
        held.content,
        turn.id,
        importance=held.importance,
        occurred_at=held.occurred_at,
        standing=held.standing,
        topic=str(held.metadata.get(TOPIC, "")),
        beside=held.metadata.get(BESIDE) is True,
    )
    return Candidate(held.id, fact, turn, held.embedding, now, held.expires_at, batch)


def expiry(fact: Fact, now: float, ttl_s: float | None) -> float | None:
    """When its memory ends: with what it says, or ``ttl_s`` after ``now``, whichever is first."""
    ends = [at for at in (fact.expires_at, None if ttl_s is None else now + ttl_s) if at is not None]
    return min(ends, default=None)


def _own_metadata(new: Candidate) -> dict[str, Any]:
    """What semmem itself notes at a memory made of this fact."""
    standing = {} if new.fact.standing is None else {STANDING: new.fact.standing.value}
    topic = {TOPIC: new.fact.topic} if new.fact.topic else {}
    unsettled = {UNSETTLED: list(new.unsettled)} if new.unsettled else {}
    flags = {BESIDE: new.fact.beside, CHANGES_STANDING: new.changes_standing, PROVISIONAL: new.provisional}
    return standing | topic | unsettled | {name: True for name, is_so in flags.items() if is_so}


def _source(turn: Turn) -> Source:
    return Source("user", turn.scope.session or "", turn.id, turn.request_id, turn.opened_at)
