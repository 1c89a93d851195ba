"""What sessions were shown. It says what memories say, so whatever is erased of a user takes all of it along."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import msgspec
from msgspec import structs
from sqlalchemy import Connection, and_, bindparam, delete, select, tuple_

from semmem.backends.sql import locks
from semmem.backends.sql.part import JournalPart, one_read, one_write
from semmem.backends.sql.prepared import Prepared
from semmem.backends.sql.rows import upsert_into
from semmem.backends.sql.states import erased_at
from semmem.backends.sql.tables import as_told, forgotten_conversations, shown_blocks
from semmem.ports.errors import JournalError
from semmem.ports.shown_blocks import ShownBlock, ShownRow
from semmem.ports.talks import TALK_ID

_KEY = ("user_id", "session", "anchor")
_COLUMNS = shown_blocks.c
_LIVE = Prepared(
    lambda _dialect: (
        select(_COLUMNS.body, _COLUMNS.expires_at)
        .where(
            _COLUMNS.user_id == bindparam("user", type_=_COLUMNS.user_id.type),
            _COLUMNS.session == bindparam("name", type_=_COLUMNS.session.type),
            _COLUMNS.expires_at > bindparam("now", type_=_COLUMNS.expires_at.type),
        )
        .order_by(_COLUMNS.shown_at)
    ),
    ("user", "name", "now"),
)


class SqlShownBlocks(JournalPart):
    """ShownBlocks."""

    @one_read
    def shown_blocks(self, conn: Connection, user: str, session: str, *, now: float) -> list[ShownBlock]:
        found = _LIVE.run(conn, [{"user": user, "name": session, "now": now}])
        return [_block(as_told(row.body), row.expires_at) for row in found]

    @one_write
    def keep_shown(self, conn: Connection, rows: Sequence[ShownRow], *, per_user: int) -> None:
        users = sorted({user for user, _, _ in rows})
        locks.users_shared(conn, users)
        erased = {user: erased_at(conn, user) for user in users}
        removed = _removed(conn, {each for _, _, block in rows if block for each in _talks(block)})
        # by user and session, as every process does it: two that write at once do not wait for each other in a circle
        for user, session, block in sorted(rows, key=lambda row: row[:2]):
            then = erased[user]
            if block is None:
                of_session = and_(shown_blocks.c.user_id == user, shown_blocks.c.session == session)
                conn.execute(delete(shown_blocks).where(of_session))
            elif then is not None and block.shown_at > max([then, *(removed.get(each, 0.0) for each in _talks(block))]):
                _keep(conn, user, session, block)
        for user in users:
            mine = shown_blocks.c.user_id == user
            newest = select(*(shown_blocks.c[name] for name in _KEY)).where(mine)
            newest = newest.order_by(shown_blocks.c.shown_at.desc()).limit(per_user)
            conn.execute(delete(shown_blocks).where(mine, _key().not_in(newest)))


def _talks(block: ShownBlock) -> list[str]:
    return [each for each, _ in block.memories if each.startswith(TALK_ID)]


def _removed(conn: Connection, talks: Set[str]) -> dict[str, float]:
    """When those of these conversations were removed that were."""
    if not talks:
        return {}
    c = forgotten_conversations.c
    found = conn.execute(select(c.id, c.forgotten_at).where(c.id.in_(sorted(talks))))
    return {row.id: row.forgotten_at for row in found}


def _keep(conn: Connection, user: str, session: str, block: ShownBlock) -> None:
    row = {
        "user_id": user,
        "session": session,
        "anchor": block.anchor,
        "shown_at": block.shown_at,
        "expires_at": block.expires_at,
        "body": msgspec.json.encode(structs.replace(block, expires_at=0.0)).decode(),
    }
    statement = upsert_into(conn.dialect.name, shown_blocks).values(row)
    conn.execute(statement.on_conflict_do_update(index_elements=list(_KEY), set_=row))


def _key() -> Any:
    return tuple_(*(shown_blocks.c[name] for name in _KEY))


def _block(body: str, expires_at: float) -> ShownBlock:
    try:
        return structs.replace(msgspec.json.decode(body, type=ShownBlock), expires_at=expires_at)
    except msgspec.MsgspecError:
        raise JournalError("the journal holds a block that cannot be read") from None
