"""Single memories that somebody had erased, as digests, so that an older copy of them is known."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Double, MetaData, Table, Text

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

tables = MetaData()
_DIGESTS = ("user_digest", "memory_digest", "turn_digest")
Table(
    "forgotten_memories",
    tables,
    *(Column(name, Text, primary_key=True) for name in _DIGESTS),
    Column("forgotten_at", Double, nullable=False),
)


def upgrade() -> None:
    tables.create_all(op.get_bind())


def downgrade() -> None:
    tables.drop_all(op.get_bind())
