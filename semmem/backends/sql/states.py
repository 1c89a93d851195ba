"""The states of long sessions. They hold what users said, so they are kept only of what may be kept, and go early."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, and_, delete, func, select, tuple_

from semmem.backends.sql import locks, marks
from semmem.backends.sql.messages import said_before
from semmem.backends.sql.part import JournalPart, one_look, one_read
from semmem.backends.sql.rows import upsert_into
from semmem.backends.sql.tables import forgotten_memories, pending_erasures, session_states, shown_blocks
from semmem.ports.errors import JournalError
from semmem.ports.session_states import CurrentState, Place, SessionState

ASKED_MAX = 400
"""Messages that are looked up in one statement."""
_KEY = ("user_id", "session", "turns")


class SqlSessionStates(JournalPart):
    """SessionStates."""

    @one_read
    def session_states(self, conn: Connection, user: str, session: str, *, now: float) -> list[SessionState]:
        mine = and_(session_states.c.user_id == user, session_states.c.session == session)
        live = select(session_states).where(mine, session_states.c.expires_at > now)
        return [_state(row) for row in conn.execute(live.order_by(session_states.c.turns.desc()))]

    @one_read
    def last_erased(self, conn: Connection, user: str) -> float | None:
        """As the port says."""
        return erased_at(conn, user)

    @one_look
    def keep_state(
        self, conn: Connection, state: SessionState, said: Sequence[Place], *, per_session: int, per_user: int
    ) -> bool:
        locks.user(conn, state.user)
        if not _may_be_kept(conn, state.user, said):
            return False
        row = {"user_id": state.user, "session": state.session, "turns": state.turns} | {
            "replaced": state.replaced,
            "digest": state.digest,
            "made_at": state.made_at,
            "expires_at": state.expires_at,
            "made_by": state.made_by,
            "body": msgspec.json.encode(state.state).decode(),
        }
        statement = upsert_into(conn.dialect.name, session_states).values(row)
        conn.execute(statement.on_conflict_do_update(index_elements=list(_KEY), set_=row))
        mine, made = session_states.c.user_id == state.user, session_states.c.made_at.desc()
        here = and_(mine, session_states.c.session == state.session)
        for these, number in ((here, per_session), (mine, per_user)):
            newest = select(*(session_states.c[name] for name in _KEY)).where(these).order_by(made).limit(number)
            key = tuple_(*(session_states.c[name] for name in _KEY))
            conn.execute(delete(session_states).where(these, key.not_in(newest)))
        return True


def forget_states(conn: Connection, user: str) -> None:
    """All of the user's, and all that their sessions were shown: what was erased may stand in any of them."""
    for table in (session_states, shown_blocks):
        conn.execute(delete(table).where(table.c.user_id == user))


def forget_all_states(conn: Connection) -> None:
    for table in (session_states, shown_blocks):
        conn.execute(delete(table))


def prune_states(conn: Connection, now: float) -> None:
    for table in (session_states, shown_blocks):
        conn.execute(delete(table).where(table.c.expires_at <= now))


def _may_be_kept(conn: Connection, user: str, said: Sequence[Place]) -> bool:
    """Whether all of it is known, accepted, and said since the user's last erasure."""
    since = erased_at(conn, user)
    if since is None:
        return False
    for first in range(0, len(said), ASKED_MAX):
        some = said[first : first + ASKED_MAX]
        found = said_before(conn, [each.message_id for each in some])
        declined = {(each.message_id, each.ordinal) for each in found if each.declined}
        kept = {(each.message_id, each.ordinal) for each in found if not each.declined and each.at > since}
        wanted = {(each.message_id, each.ordinal) for each in some}
        if not wanted <= kept or wanted & declined:
            return False
    return True


def erased_at(conn: Connection, user: str) -> float | None:
    """When anything of the user's was erased last, 0 for never; None while something is being erased."""
    pending = select(pending_erasures.c.id).where(pending_erasures.c.user_id == user).limit(1)
    if conn.execute(pending).first() is not None:
        return None
    single = select(func.max(forgotten_memories.c.forgotten_at))
    erased = single.where(forgotten_memories.c.user_digest == marks.digest(user))
    return max(marks.forgotten_at(conn, user) or 0.0, conn.execute(erased).scalar() or 0.0)


def _state(row: Row[Any]) -> SessionState:
    try:
        state = msgspec.json.decode(row.body, type=CurrentState)
    except msgspec.MsgspecError:
        raise JournalError("the journal holds a state that cannot be read") from None
    told = (row.replaced, row.digest, row.turns, row.made_at, row.expires_at)
    return SessionState(row.user_id, row.session, *told, state, row.made_by)
