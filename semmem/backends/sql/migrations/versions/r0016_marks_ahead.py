"""Until when a mark was dated by a clock that was ahead."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Double, inspect

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if "ahead_at" not in {column["name"] for column in inspect(op.get_bind()).get_columns("forgotten")}:
        op.add_column("forgotten", Column("ahead_at", Double(), nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("forgotten", "ahead_at")
