"""Which answers are recorded to the letter, with all that led to them."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Integer, inspect

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    known = {column["name"] for column in inspect(op.get_bind()).get_columns("conversation_messages")}
    if "whole" not in known:
        op.add_column("conversation_messages", Column("whole", Integer, nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("conversation_messages", "whole")
