"""Which memories were called helpful, and which were not."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, Double, Index, Integer, MetaData, Table, Text
from sqlalchemy.dialects import postgresql

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

TEXT = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

tables = MetaData()
votes = Table(
    "votes",
    tables,
    Column("user_id", TEXT, primary_key=True),
    Column("memory_id", TEXT, primary_key=True),
    Column("up", Integer, nullable=False),
    Column("down", Integer, nullable=False),
    Column("last_at", Double, nullable=False),
    Column("number", BigInteger, nullable=False),
)
Index("votes_number", votes.c.number)


def upgrade() -> None:
    tables.create_all(op.get_bind())


def downgrade() -> None:
    tables.drop_all(op.get_bind())
