"""Who shares the journal, and which of them hides what is being erased."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Double, Text

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table("replicas", Column("id", Text, primary_key=True), Column("seen_at", Double, nullable=False))
    op.create_table(
        "obeyed",
        Column("erasure_id", Text, primary_key=True),
        Column("replica_id", Text, primary_key=True),
        Column("forgotten_at", Double, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("obeyed")
    op.drop_table("replicas")
