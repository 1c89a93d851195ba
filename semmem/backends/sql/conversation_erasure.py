"""What erasing takes out of the record of conversations, and what may not come into it any more, inside the caller's
transaction. Whoever calls is alone with the user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from sqlalchemy import ColumnElement, Connection, and_, func, select, update

from semmem.backends.sql import marks
from semmem.backends.sql.conversation_rows import remove_empty, remove_messages
from semmem.backends.sql.rows import among, raise_times, row_scope, within
from semmem.backends.sql.tables import (
    conversation_messages,
    conversations,
    forgotten_conversations,
    forgotten_memories,
    turns,
)
from semmem.backends.sql.withholding import Reach, Reaches, begin_of, widen, withhold
from semmem.memory import Scope
from semmem.ports.conversations import conversation_id


def forget_said(conn: Connection, scope: Scope, at: float, *, now: float) -> Counter[str]:
    """All of the scope that was said then or before; how many messages and conversations. A title that somebody gave,
    and tags, go with it, unless they were given later. Answers that may repeat it are withheld."""
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
    begun = _begun(conn, said, now)
    gone = remove_messages(conn, said)
    gone["conversations"] += remove_empty(conn, and_(mine, conversations.c.created_at <= at))
    withhold(conn, scope.user, now=now, begun=begun.get(scope.user))
    return +gone


def forget_turns_said(conn: Connection, told: Mapping[str, float], user: str, *, now: float) -> tuple[int, Reaches]:
    """Turns of the user that a memory was learnt from which somebody had erased: what was said in them until then; how
    many messages, and where in their conversations."""
    number, begun = 0, _where_said(conn, told, user, now)
    for turn, at in sorted(told.items()):
        this = and_(conversation_messages.c.turn_id == turn, conversation_messages.c.turn_at <= at)
        number += remove_messages(conn, and_(this, conversation_messages.c.user_id == user))["messages"]
    return number, begun


def _where_said(conn: Connection, told: Mapping[str, float], user: str, now: float) -> Reaches:
    """Also of turns that are not recorded, or not yet, in conversations that are."""
    begun: Reaches = {}
    for row in among(conn, turns.c.id, sorted(told)):
        if row.user_id == user and row.opened_at is not None and row.opened_at <= told[row.id]:
            widen(begun, conversation_id(row_scope(row)), Reach(begin_of(row.opened_at, row.id), now))
    for row in among(conn, conversation_messages.c.turn_id, sorted(told)):
        if row.user_id == user and row.turn_at <= told[row.turn_id]:
            widen(begun, row.conversation_id, Reach(row.place, now))
    return begun


def forget_marked_turns_said(conn: Connection, told: Mapping[str, float]) -> int:
    """What an older copy still has of turns that a memory was learnt from which somebody had erased, by the digests of
    their ids; how many messages."""
    m = conversation_messages.c
    number = 0
    for turn in conn.execute(select(m.turn_id).distinct()).scalars().all():
        if (at := told.get(marks.digest(turn))) is None:
            continue
        said = and_(m.turn_id == turn, m.turn_at <= at)
        begun = _begun(conn, said, at)
        number += remove_messages(conn, said)["messages"]
        for user, reaches in begun.items():
            withhold(conn, user, now=at, begun=reaches)
    return number


def _begun(conn: Connection, said: ColumnElement[bool], until: float) -> dict[str, Reaches]:
    """Where these messages begin in their conversations, by user."""
    m = conversation_messages.c
    first = select(m.user_id, m.conversation_id, func.min(m.place).label("place")).where(said)
    begun: dict[str, Reaches] = {}
    for row in conn.execute(first.group_by(m.user_id, m.conversation_id)):
        begun.setdefault(row.user_id, {})[row.conversation_id] = Reach(row.place, until)
    return begun


def mark_conversations(conn: Connection, marked: Iterable[tuple[str, float]]) -> None:
    """What was said in them then or before is turned away from now on. A mark moves on to a later time, never back."""
    rows = [{"id": each, "forgotten_at": at} for each, at in sorted(marked)]
    raise_times(conn, forgotten_conversations.c.forgotten_at, rows)


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
        for row in among(conn, forgotten_memories.c.turn_digest, sorted(digests)):
            turn = digests[row.turn_digest]
            self._turns[turn] = max(row.forgotten_at, self._turns.get(turn, row.forgotten_at))
        found = among(conn, forgotten_conversations.c.id, sorted(set(ids)))
        self._conversations = {row.id: row.forgotten_at for row in found}

    def shut(self, scope: Scope, turn: str, talk: str, at: float) -> bool:
        """Whether what was said there then is erased."""
        return (
            at <= self._turns.get(turn, -1.0)
            or at <= self._conversations.get(talk, -1.0)
            or marks.covered(self._marks, scope, at)
        )

    def until(self, scope: Scope, turn: str, at: float) -> float:
        """Until when answers behind it may repeat what was said there then, which is erased."""
        return max(self._turns.get(turn, at), marks.covered_until(self._marks, scope, at))
