"""Single memories that somebody had erased are known by digests of their ids: no older copy brings them back."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Double, Text

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_DIGESTS = ("user_digest", "memory_digest", "turn_digest")


def upgrade() -> None:
    keys = [Column(name, Text, primary_key=True, autoincrement=False) for name in _DIGESTS]
    op.create_table("forgotten_memories", *keys, Column("forgotten_at", Double, nullable=False), if_not_exists=True)


def downgrade() -> None:
    op.drop_table("forgotten_memories")
