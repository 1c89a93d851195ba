"""What stands for the older part of long sessions in their requests."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Double, Index, Integer, MetaData, Table, Text
from sqlalchemy.dialects import postgresql

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

TEXT = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

tables = MetaData()
session_states = Table(
    "session_states",
    tables,
    Column("user_id", TEXT, primary_key=True),
    Column("session", TEXT, primary_key=True),
    Column("turns", Integer, primary_key=True, autoincrement=False),
    Column("replaced", Integer, nullable=False),
    Column("digest", Text, nullable=False),
    Column("made_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("made_by", Text, nullable=False),
    Column("body", TEXT, nullable=False),
)
Index("session_states_expiry", session_states.c.expires_at)


def upgrade() -> None:
    tables.create_all(op.get_bind())


def downgrade() -> None:
    tables.drop_all(op.get_bind())
