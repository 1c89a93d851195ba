"""The states of long sessions, and what sessions were shown. They hold what users and memories say: they are kept only
of what may be kept, and whatever is erased of a user takes all of the user's along."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import structs
from sqlalchemy import Row, and_, bindparam, func, select

from semmem.backends.sql import locks, marks, tables
from semmem.backends.sql.database import JournalPart, one_read, one_write, quiet_write
from semmem.backends.sql.recording import said_before
from semmem.backends.sql.rows import Prepared, Transaction, slices, unreadable
from semmem.backends.sql.tables import as_told, forgotten_memories, pending_erasures, session_states, shown_blocks
from semmem.ports.session_states import CurrentState, Place, SessionState, ShownBlock, ShownRow
from semmem.ports.talks import TALK_ID

ASKED_MAX = 400
"""Messages that are looked up in one statement."""
_KEPT = (session_states, shown_blocks)
_STATE = ("session", "turns", "replaced", "digest", "made_at", "expires_at", "made_by")


class SqlSessionStates(JournalPart):
    """SessionStates and LedgerRecords."""

    @one_read
    def session_states(self, conn: Transaction, user: str, session: str, *, now: float) -> list[SessionState]:
        kept = session_states.c
        mine = and_(kept.user_id == user, kept.session == session, kept.expires_at > now)
        return [_state(row) for row in conn.rows_of(session_states, mine, by=kept.turns.desc())]

    @one_read
    def last_erased(self, conn: Transaction, user: str) -> float | None:
        return erased_at(conn, user)

    @quiet_write
    def keep_state(
        self, conn: Transaction, state: SessionState, said: Sequence[Place], *, per_session: int, per_user: int
    ) -> bool:
        locks.user(conn, state.user)
        if not _may_be_kept(conn, state.user, said):
            return False
        alike = {name: getattr(state, name) for name in _STATE}
        conn.put(session_states, user_id=state.user, body=msgspec.json.encode(state.state).decode(), **alike)
        mine = session_states.c.user_id == state.user
        conn.keep_newest(and_(mine, session_states.c.session == state.session), session_states.c.made_at, per_session)
        conn.keep_newest(mine, session_states.c.made_at, per_user)
        return True

    @one_read
    def shown_blocks(self, conn: Transaction, user: str, session: str, *, now: float) -> list[ShownBlock]:
        found = _LIVE.run(conn, [{"user": user, "name": session, "now": now}])
        return [_block(as_told(row.body), row.expires_at) for row in found]

    @one_write
    def keep_shown(self, conn: Transaction, rows: Sequence[ShownRow], *, per_user: int) -> None:
        users = sorted({user for user, _, _ in rows})
        locks.users_shared(conn, users)
        erased = {user: erased_at(conn, user) for user in users}
        talks = sorted({each for _, _, block in rows if block for each in _talks(block)})
        removed = {row.id: row.forgotten_at for row in conn.among(tables.forgotten_conversations.c.id, talks)}
        # by user and session, as every process does it: two that write at once do not wait for each other in a circle
        for user, session, block in sorted(rows, key=lambda row: row[:2]):
            then = erased[user]
            if block is None:
                conn.remove(shown_blocks, shown_blocks.c.user_id == user, shown_blocks.c.session == session)
            elif then is not None and block.shown_at > max([then, *(removed.get(each, 0.0) for each in _talks(block))]):
                alike = {name: getattr(block, name) for name in ("anchor", "shown_at", "expires_at")}
                body = msgspec.json.encode(structs.replace(block, expires_at=0.0)).decode()
                conn.put(shown_blocks, user_id=user, session=session, body=body, **alike)
        for user in users:
            conn.keep_newest(shown_blocks.c.user_id == user, shown_blocks.c.shown_at, per_user)

    @one_write
    def prune_states(self, conn: Transaction, *, now: float) -> None:
        for table in _KEPT:
            conn.remove(table, table.c.expires_at <= now)


def forget_states(conn: Transaction, user: str | None = None) -> None:
    """All of the user's, or everybody's, and all that their sessions were shown: any of it may say what was erased."""
    for table in _KEPT:
        conn.remove(table, *([] if user is None else [table.c.user_id == user]))


def _may_be_kept(conn: Transaction, user: str, said: Sequence[Place]) -> bool:
    """Whether all of it is known, accepted, and said since the user's last erasure."""
    since = erased_at(conn, user)
    if since is None:
        return False
    for some in slices(said, ASKED_MAX):
        found = said_before(conn, [each.message_id for each in some])
        declined = {Place(each.message_id, each.ordinal) for each in found if each.declined}
        kept = {Place(each.message_id, each.ordinal) for each in found if not each.declined and each.at > since}
        if not declined.isdisjoint(some) or not kept.issuperset(some):
            return False
    return True


def erased_at(conn: Transaction, user: str) -> float | None:
    """When anything of the user's was erased last, 0 for never; None while something is being erased."""
    if _PENDING.run(conn, [{"user": user}]).first() is not None:
        return None
    single = _SINGLE.run(conn, [{"user": marks.digest(user)}]).scalar()
    return max(marks.forgotten_at(conn, user) or 0.0, single or 0.0)


_OF_USER: Any = bindparam("user")
_PENDING = Prepared(select(pending_erasures.c.user_id).where(pending_erasures.c.user_id == _OF_USER).limit(1))
_MARKED = forgotten_memories.c
_SINGLE = Prepared(select(func.max(_MARKED.forgotten_at)).where(_MARKED.user_digest == _OF_USER))


def _state(row: Row[Any]) -> SessionState:
    with unreadable("a state"):
        state = msgspec.json.decode(row.body, type=CurrentState)
    return SessionState(user=row.user_id, state=state, **{name: getattr(row, name) for name in _STATE})


_BLOCK = shown_blocks.c
_LIVE = Prepared(
    select(_BLOCK.body, _BLOCK.expires_at)
    .where(_BLOCK.user_id == _OF_USER, _BLOCK.session == bindparam("name"), _BLOCK.expires_at > bindparam("now"))
    .order_by(_BLOCK.shown_at)
)


def _talks(block: ShownBlock) -> list[str]:
    return [each for each, _ in block.memories if each.startswith(TALK_ID)]


def _block(body: str, expires_at: float) -> ShownBlock:
    with unreadable("a block"):
        return structs.replace(msgspec.json.decode(body, type=ShownBlock), expires_at=expires_at)
