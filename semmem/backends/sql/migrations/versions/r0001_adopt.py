"""Takes over what was written before revisions were counted: schema 1, and 2 with or without its later columns.

What is there stays as it is; tables and columns that it lacks are added. An older build may go on with it.
"""

from __future__ import annotations

from typing import Any

from alembic import op
from sqlalchemy import (
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    inspect,
    text,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateColumn

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TEXT = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

tables = MetaData()


def _key(name: str, type_: Any = TEXT) -> Column[Any]:
    return Column(name, type_, primary_key=True, autoincrement=False)


def _must(name: str, type_: Any) -> Column[Any]:
    return Column(name, type_, nullable=False)


def _or(name: str, type_: Any, default: str) -> Column[Any]:
    return Column(name, type_, nullable=False, server_default=default)


def _scope() -> list[Column[Any]]:
    return [_or(name, TEXT, "") for name in ("user_id", "project", "agent", "session")]


def _index(name: str, *columns: Column[Any], where: str, unique: bool = False) -> None:
    Index(name, *columns, unique=unique, sqlite_where=text(where), postgresql_where=text(where))


def _session_marks(name: str, at: str) -> None:
    Table(name, tables, _key("user_id"), _key("session"), _must(at, Double))


Table("journal_schema", tables, Column("version", Integer, primary_key=True))
turns = Table(
    "turns",
    tables,
    _key("id"),
    *_scope(),
    Column("session_key", TEXT),
    _or("ordinal", Integer, "0"),
    Column("opened_at", Double),
    Column("seen_at", Double),
    _or("request_id", TEXT, ""),
    _or("user_text", TEXT, ""),
    _or("closing", Integer, "0"),
    Column("closed_at", Double),
    Column("answer", TEXT),
    Column("finish_reason", TEXT),
    Column("batch_id", Text),
    Column("done_at", Double),
    _or("model", TEXT, ""),
)
batches = Table(
    "batches",
    tables,
    _key("id", Text),
    *_scope(),
    _must("trigger_word", Text),
    _must("attempt", Integer),
    _must("claimable_at", Double),
    Column("facts", Text),
    _or("applied", Integer, "0"),
    Column("status", Text),
    Column("finished_at", Double),
)
answers = Table("answers", tables, _key("id"), _key("turn_id"), _must("answered_at", Double))
_session_marks("session_ends", "ended_at")
_session_marks("session_drifts", "drifted_at")
_session_marks("session_pasts", "forgotten_at")
Table(
    "versions",
    tables,
    _key("user_id"),
    _key("memory_id"),
    _key("version", Integer),
    *_scope()[1:],
    _must("body", Text),
)
users = Table("users", tables, _key("user_id"), _or("kept_at", Double, "0"))
Table("accesses", tables, _key("user_id"), _key("memory_id"), _must("used", Integer), _must("last_at", Double))
Table(
    "dropped",
    tables,
    _key("user_id"),
    _key("memory_id"),
    _key("reason", Text),
    _must("times", Integer),
    _must("last_at", Double),
)
Table("erasures", tables, _key("batch_id", Text), _key("memory_id"), _must("user_id", TEXT))
provisional = Table(
    "provisional", tables, _key("turn_id"), _key("memory_id"), _or("user_id", TEXT, ""), _or("state", Integer, "0")
)
Table("resting", tables, _key("batch_id", Text), _must("until", Double), Column("held_until", Double))
_DIGESTS = ("user_digest", "project_digest", "agent_digest", "session_digest")
Table("forgotten", tables, *(_key(name, Text) for name in _DIGESTS), _must("forgotten_at", Double))
Table(
    "pending_erasures",
    tables,
    _key("id", Text),
    *_scope(),
    _must("narrowed", Text),
    _must("types", Text),
    Column("memory_id", TEXT),
    _must("forgotten_at", Double),
)
said = Table("said_messages", tables, _key("id"), _key("ordinal", Integer), _must("at", Double))

_WAITING = "turns.opened_at IS NOT NULL AND turns.batch_id IS NULL AND turns.done_at IS NULL"
_LIVE = "batches.status IS NULL"
_told = (turns.c.user_id, turns.c.session, turns.c.opened_at)
_index("turns_waiting", *_told, turns.c.seen_at, turns.c.closed_at, where=_WAITING)
_index("turns_oldest", turns.c.opened_at, where=_WAITING)
_index("turns_in_batch", turns.c.batch_id, where="turns.batch_id IS NOT NULL AND turns.done_at IS NULL")
_index("turns_lonely", turns.c.closed_at, where="turns.opened_at IS NULL AND turns.done_at IS NULL")
_index("turns_done", turns.c.done_at, turns.c.closing, where="turns.done_at IS NOT NULL")
_index("turns_seen", turns.c.user_id, turns.c.session_key, turns.c.seen_at, where="turns.session_key IS NOT NULL")
Index("turns_session", *_told)
_index("batches_live", batches.c.user_id, where=_LIVE, unique=True)
_index("batches_claimable", batches.c.claimable_at, where=_LIVE)
_index("batches_finished", batches.c.finished_at, where="batches.status IS NOT NULL")
Index("answers_turn", answers.c.turn_id)
Index("provisional_memory", provisional.c.user_id, provisional.c.memory_id)
Index("users_kept", users.c.kept_at)
Index("said_messages_at", said.c.at)

_KNOWN_USERS = """
INSERT INTO users (user_id)
SELECT DISTINCT user_id FROM {table} WHERE user_id != '' AND user_id NOT IN (SELECT user_id FROM users)
"""


def upgrade() -> None:
    conn = op.get_bind()
    tables.create_all(conn)
    for table in tables.sorted_tables:
        held = {column["name"] for column in inspect(conn).get_columns(table.name)}
        for column in table.columns:
            if column.name not in held:
                added = CreateColumn(column).compile(dialect=conn.dialect)
                op.execute(f"ALTER TABLE {table.name} ADD COLUMN {added}")
    version = conn.execute(text("SELECT version FROM journal_schema")).scalar()
    if version == 1:  # it did not say who is known
        for source in ("turns", "versions"):
            op.execute(_KNOWN_USERS.format(table=source))
    this = (
        "INSERT INTO journal_schema (version) VALUES (2)"
        if version is None
        else "UPDATE journal_schema SET version = 2"
    )
    op.execute(this)


def downgrade() -> None:
    """What came with this revision is what older builds made themselves: nothing has to go."""
