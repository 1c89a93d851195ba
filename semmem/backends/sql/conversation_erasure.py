"""What erasing takes out of the record of conversations, and what may not come into it any more, inside the caller's
transaction. Whoever calls is alone with the user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, and_, select, update

from semmem.backends.sql import marks
from semmem.backends.sql.conversation_rows import IDS_MAX, remove_empty, remove_messages
from semmem.backends.sql.rows import upsert_into, within
from semmem.backends.sql.tables import (
    conversation_messages,
    conversations,
    forgotten_conversations,
    forgotten_memories,
)
from semmem.memory import Scope


def forget_said(conn: Connection, scope: Scope, at: float) -> Counter[str]:
    """All of the scope that was said then or before; how many messages and conversations. A title that somebody gave,
    and tags, go with it, unless they were given later."""
    mine = within(conversations, scope)
    theirs = select(conversations.c.id).where(mine)
    conn.execute(
        update(conversations).where(mine, conversations.c.titled_at <= at).values(title="", tags="", titled_at=None)
    )
    said = and_(
        conversation_messages.c.user_id == scope.user,
        conversation_messages.c.conversation_id.in_(theirs),
        conversation_messages.c.turn_at <= at,
    )
    gone = remove_messages(conn, said)
    gone["conversations"] += remove_empty(conn, and_(mine, conversations.c.created_at <= at))
    return +gone


def forget_turns_said(conn: Connection, turns: Mapping[str, float], user: str | None = None) -> int:
    """Turns that a memory was learnt from which somebody had erased: what was said in them until then; how many
    messages. Without ``user`` by the digests of their ids, whoever said them."""
    if user is None:
        turns = {
            turn: turns[digest]
            for turn in conn.execute(select(conversation_messages.c.turn_id).distinct()).scalars()
            if (digest := marks.digest(turn)) in turns
        }
    number = 0
    for turn, at in sorted(turns.items()):
        this = and_(conversation_messages.c.turn_id == turn, conversation_messages.c.turn_at <= at)
        whose = this if user is None else and_(this, conversation_messages.c.user_id == user)
        number += remove_messages(conn, whose)["messages"]
    return number


def mark_conversations(conn: Connection, marked: Iterable[tuple[str, float]]) -> None:
    """What was said in them then or before is turned away from now on. A mark moves on to a later time, never back."""
    statement = upsert_into(conn.dialect.name, forgotten_conversations)
    later = statement.excluded.forgotten_at
    rising = statement.on_conflict_do_update(
        index_elements=["id"], set_={"forgotten_at": later}, where=forgotten_conversations.c.forgotten_at < later
    )
    if rows := [{"id": each, "forgotten_at": at} for each, at in sorted(marked)]:
        conn.execute(rising, rows)


def forget_marked_conversations(conn: Connection) -> Counter[str]:
    """What an older copy still has of conversations that were removed."""
    counts: Counter[str] = Counter()
    for row in conn.execute(select(forgotten_conversations)).all():
        said = and_(
            conversation_messages.c.conversation_id == row.id, conversation_messages.c.turn_at <= row.forgotten_at
        )
        counts += remove_messages(conn, said)
        older = and_(conversations.c.id == row.id, conversations.c.created_at <= row.forgotten_at)
        counts["conversations"] += remove_empty(conn, older)
    return +counts


class Doors:
    """What is erased, of some turns and conversations: whether what was said then may still come in."""

    def __init__(self, conn: Connection, scopes: Iterable[Scope], turn_ids: Iterable[str], ids: Iterable[str]) -> None:
        self._conn = conn
        self._marks = marks.of_users(conn, {scope.user for scope in scopes})
        digests = {marks.digest(turn): turn for turn in turn_ids}
        self._turns: dict[str, float] = {}
        for row in _among(conn, forgotten_memories.c.turn_digest, sorted(digests)):
            turn = digests[row.turn_digest]
            self._turns[turn] = max(row.forgotten_at, self._turns.get(turn, row.forgotten_at))
        found = _among(conn, forgotten_conversations.c.id, sorted(set(ids)))
        self._conversations = {row.id: row.forgotten_at for row in found}

    def shut(self, scope: Scope, turn: str, conversation_id: str, at: float) -> bool:
        """Whether what was said there then is erased."""
        return (
            at <= self._turns.get(turn, -1.0)
            or at <= self._conversations.get(conversation_id, -1.0)
            or marks.covered(self._marks, scope, at)
        )


def _among(conn: Connection, column: Any, values: Sequence[str]) -> list[Any]:
    found: list[Any] = []
    for start in range(0, len(values), IDS_MAX):
        found += conn.execute(select(column.table).where(column.in_(values[start : start + IDS_MAX]))).all()
    return found
