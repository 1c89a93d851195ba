"""Statistics of use: single requests, their sums by hour and by day, sessions, and the key of the digests in them."""

from __future__ import annotations

from typing import Any

from alembic import op
from sqlalchemy import BigInteger, Column, Double, Index, Integer, MetaData, Table, Text
from sqlalchemy.dialects import postgresql

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

TEXT = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
GROUP = ("user_name", "project", "endpoint", "model_asked", "model", "provider")
SUMS = ("requests", "errors", "messages", "tool_calls", "tokens_in", "tokens_out", "estimated", "duration_ms")


def group(*, is_key: bool) -> list[Column[Any]]:
    return [
        *(Column(name, TEXT, primary_key=is_key, nullable=False) for name in GROUP),
        Column("streamed", Integer, primary_key=is_key, nullable=False, autoincrement=False),
    ]


def began_at() -> Column[int]:
    return Column("began_at", BigInteger, primary_key=True, autoincrement=False)


tables = MetaData()
Table(
    "usage_key",
    tables,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("key", Text, nullable=False),
)
requests = Table(
    "usage_requests",
    tables,
    Column("id", Text, primary_key=True),
    Column("at", Double, nullable=False),
    *group(is_key=False),
    Column("session", Text, nullable=False),
    Column("tokens_in", BigInteger, nullable=False),
    Column("tokens_out", BigInteger, nullable=False),
    Column("estimated", Integer, nullable=False),
    Column("duration_ms", BigInteger, nullable=False),
    Column("ending", Text, nullable=False),
    Column("tool_calls", Integer, nullable=False),
    Column("messages", Integer, nullable=False),
)
Index("usage_requests_at", requests.c.at)
Index("usage_requests_user", requests.c.user_name)
for name in ("usage_hours", "usage_days"):
    sums = Table(
        name, tables, began_at(), *group(is_key=True), *(Column(each, BigInteger, nullable=False) for each in SUMS)
    )
    Index(f"{name}_user", sums.c.user_name)
sessions = Table(
    "usage_sessions",
    tables,
    began_at(),
    Column("user_name", Text, primary_key=True),
    Column("session", Text, primary_key=True),
)
Index("usage_sessions_user", sessions.c.user_name)


def upgrade() -> None:
    tables.create_all(op.get_bind())


def downgrade() -> None:
    tables.drop_all(op.get_bind())
