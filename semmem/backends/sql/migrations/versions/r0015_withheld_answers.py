"""What an answer was shown, and which answers are put into no prompt any more."""

from __future__ import annotations

from typing import Any

from alembic import op
from sqlalchemy import Column, Double, Integer, Text, inspect, text
from sqlalchemy.dialects import postgresql

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

TEXT = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
COLUMNS: tuple[tuple[str, str, Any, str], ...] = (
    ("conversation_messages", "shown", TEXT, ""),
    ("conversation_messages", "withheld", Integer(), "0"),
    ("conversations", "withheld_from", TEXT, ""),
    ("conversations", "withheld_until", Double(), "0"),
    ("forgotten", "hidden_at", Double(), "0"),
)


def upgrade() -> None:
    found = inspect(op.get_bind())
    known = {table: {column["name"] for column in found.get_columns(table)} for table, *_ in COLUMNS}
    for table, name, kind, default in COLUMNS:
        if name not in known[table]:
            op.add_column(table, Column(name, kind, nullable=False, server_default=default))
    told = text("shown != ''")
    op.create_index(
        "conversation_messages_shown",
        "conversation_messages",
        ["user_id"],
        sqlite_where=told,
        postgresql_where=told,
        if_not_exists=True,
    )


def downgrade() -> None:
    op.drop_index("conversation_messages_shown", "conversation_messages")
    for table, name, *_ in COLUMNS:
        op.drop_column(table, name)
