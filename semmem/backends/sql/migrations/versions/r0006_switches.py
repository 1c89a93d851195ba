"""For whom reading or storing is switched off."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Double, Index, Integer, MetaData, Table, Text

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

tables = MetaData()
switches = Table(
    "memory_switches",
    tables,
    Column("key", Text, primary_key=True),
    Column("group_name", Text, nullable=False),
    Column("reading", Integer),
    Column("storing", Integer),
    Column("number", Integer, nullable=False),
    Column("changed_at", Double, nullable=False),
)
Index("memory_switches_number", switches.c.number)


def upgrade() -> None:
    tables.create_all(op.get_bind())


def downgrade() -> None:
    tables.drop_all(op.get_bind())
