"""Who shares the journal, and which of them hides what is being erased."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Double, MetaData, Table, Text

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

tables = MetaData()
Table("replicas", tables, Column("id", Text, primary_key=True), Column("seen_at", Double, nullable=False))
Table(
    "obeyed",
    tables,
    Column("erasure_id", Text, primary_key=True),
    Column("replica_id", Text, primary_key=True),
    Column("forgotten_at", Double, nullable=False),
)


def upgrade() -> None:
    tables.create_all(op.get_bind())


def downgrade() -> None:
    tables.drop_all(op.get_bind())
