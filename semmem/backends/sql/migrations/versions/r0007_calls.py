"""Calls of the management API under idempotency keys, and whose content their answers hold."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Double, Index, Integer, LargeBinary, MetaData, Table, Text

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

tables = MetaData()
calls = Table(
    "api_calls",
    tables,
    Column("key", Text, primary_key=True),
    Column("request", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("lease_until", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("keep", Integer, nullable=False),
    Column("status", Integer),
    Column("answer", LargeBinary),
    Column("counts", Text, nullable=False),
)
users = Table(
    "api_call_users",
    tables,
    Column("key", Text, primary_key=True),
    Column("user_digest", Text, primary_key=True),
)
Index("api_calls_expiry", calls.c.expires_at)
Index("api_call_users_user", users.c.user_digest)


def upgrade() -> None:
    tables.create_all(op.get_bind())


def downgrade() -> None:
    tables.drop_all(op.get_bind())
