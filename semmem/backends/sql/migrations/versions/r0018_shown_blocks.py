"""What sessions were shown, at which of their messages."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Double, Index, MetaData, Table, Text
from sqlalchemy.dialects import postgresql

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

TEXT = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

tables = MetaData()
shown_blocks = Table(
    "shown_blocks",
    tables,
    Column("user_id", TEXT, primary_key=True),
    Column("session", Text, primary_key=True),
    Column("anchor", Text, primary_key=True),
    Column("shown_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("body", TEXT, nullable=False),
)
Index("shown_blocks_expiry", shown_blocks.c.expires_at)


def upgrade() -> None:
    tables.create_all(op.get_bind())


def downgrade() -> None:
    tables.drop_all(op.get_bind())
