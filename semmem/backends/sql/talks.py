"""Past conversations as questions about them need them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, Connection, case, func, or_, select, update

from semmem.backends.sql.conversation_rows import says
from semmem.backends.sql.part import JournalPart, one_read, quiet_write
from semmem.backends.sql.rows import within
from semmem.backends.sql.tables import AnyText, conversation_messages, conversations
from semmem.memory import Role, Scope
from semmem.ports.talks import Placed, Talk, Unplaced, Utterance

_SPOKEN = (Role.USER.value, Role.ASSISTANT.value)
_MAY_BE_SHOWN = conversation_messages.c.withheld == 0


class SqlTalks(JournalPart):
    """TalkRecords and TalkPlacing."""

    @one_read
    def talks_of_time(
        self, conn: Connection, scope: Scope, *, since: float | None, until: float | None, limit: int
    ) -> list[str]:
        c = conversations.c
        asked: list[ColumnElement[bool]] = [within(conversations, scope)]
        if since is not None:
            asked.append(c.updated_at >= since)
        if until is not None:
            asked.append(c.created_at < until)
        newest = select(c.id).where(*asked).order_by(c.updated_at.desc(), c.id).limit(limit)
        return list(conn.execute(newest).scalars())

    @one_read
    def talks_holding(
        self, conn: Connection, scope: Scope, words: Sequence[str], *, messages_max: int, chars_max: int, limit: int
    ) -> list[str]:
        m = conversation_messages.c
        mine = select(conversations.c.id).where(within(conversations, scope))
        content = func.substr(m.content, 1, chars_max, type_=AnyText()).label("content")
        newest = select(m.conversation_id, content).where(m.user_id == scope.user, m.role.in_(_SPOKEN), _MAY_BE_SHOWN)
        read = newest.order_by(m.turn_at.desc()).limit(messages_max).subquery()
        held = [says(read.c.content, word) for word in words]
        each = [func.max(case((one, 1), else_=0)) for one in held]
        found = select(read.c.conversation_id, *each).where(or_(*held), read.c.conversation_id.in_(mine))
        counted = Counter(
            {row[0]: sum(row[1:]) for row in conn.execute(found.group_by(read.c.conversation_id))},
        )
        return [talk for talk, _ in counted.most_common(limit)]

    @one_read
    def talk_vectors(self, conn: Connection, scope: Scope, model: str, *, limit: int) -> list[Placed]:
        m = conversation_messages.c
        mine = select(conversations.c.id).where(within(conversations, scope))
        known = (m.user_id == scope.user, m.role == Role.USER.value, m.vector_of == model, m.conversation_id.in_(mine))
        found = select(m.conversation_id, m.turn_id, m.turn_at, m.vector).where(*known)
        rows = conn.execute(found.order_by(m.turn_at.desc()).limit(limit))
        return [Placed(row.conversation_id, row.turn_id, row.turn_at, row.vector) for row in rows if row.vector]

    @one_read
    def read_talks(
        self, conn: Connection, scope: Scope, wanted: Mapping[str, str], *, messages_max: int, chars_max: int
    ) -> list[Talk]:
        these = conversations.c.id.in_(list(wanted))
        talks: list[Talk] = []
        for row in conn.execute(select(conversations).where(within(conversations, scope), these)):
            said = _said(conn, row.id, wanted[row.id], messages_max, chars_max)
            talks.append(Talk(row.id, row.session, row.title, row.updated_at, said))
        return talks

    @one_read
    def unplaced(self, conn: Connection, model: str, *, limit: int) -> list[Unplaced]:
        m = conversation_messages.c
        without = or_(m.vector_of < model, m.vector_of > model)  # as ranges of the index
        found = select(m.turn_id, m.step, m.number, m.content).where(m.role == Role.USER.value, without).limit(limit)
        return [Unplaced((row.turn_id, row.step, row.number), row.content) for row in conn.execute(found)]

    @quiet_write
    def place(self, conn: Connection, model: str, vectors: Mapping[tuple[str, str, int], bytes]) -> None:
        m = conversation_messages.c
        for (turn, step, number), vector in sorted(vectors.items()):
            this = (m.turn_id == turn, m.step == step, m.number == number)
            conn.execute(update(conversation_messages).where(*this).values(vector=vector, vector_of=model))


def _said(conn: Connection, talk: str, turn: str, messages_max: int, chars_max: int) -> tuple[Utterance, ...]:
    m = conversation_messages.c
    mine = (m.conversation_id == talk, m.role.in_(_SPOKEN), _MAY_BE_SHOWN)
    text = func.substr(m.content, 1, chars_max, type_=AnyText())
    said = select(m.turn_id, m.place, m.role, text.label("text")).where(*mine)
    rows = list(conn.execute(said.order_by(m.place).limit(messages_max)))
    if turn and all(row.turn_id != turn for row in rows):
        begin = select(func.min(m.place)).where(*mine, m.turn_id == turn).scalar_subquery()
        rows = [*conn.execute(said.where(m.place >= begin).order_by(m.place).limit(messages_max)), *rows]
    else:
        at = next((at for at, row in enumerate(rows) if row.turn_id == turn), 0)
        rows = rows[at:] + rows[:at]
    return tuple(Utterance(Role(row.role), row.text) for row in rows[:messages_max])
