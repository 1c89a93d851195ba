"""How far memories are copied to a collection of another embedding model, and who writes to it."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Double, Integer, MetaData, Table, Text

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

tables = MetaData()
Table(
    "reindexes",
    tables,
    Column("store", Text, primary_key=True),
    *(Column(name, Text, nullable=False) for name in ("source", "target", "signature", "state", "position")),
    *(Column(name, Integer, nullable=False) for name in ("users", "users_done", "memories_done", "embedded")),
    Column("changed_at", Double, nullable=False),
    Column("claimed_by", Text),
    Column("claimed_until", Double, nullable=False, server_default="0"),
)
Table(
    "reindex_writers",
    tables,
    Column("replica_id", Text, primary_key=True),
    Column("target", Text, nullable=False),
)


def upgrade() -> None:
    tables.create_all(op.get_bind())


def downgrade() -> None:
    tables.drop_all(op.get_bind())
