"""How far conversations are that a model's API would keep, and does not."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Text, inspect, text
from sqlalchemy.dialects import postgresql

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

COLUMNS = {"progress": Text(), "last_answer": Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")}


def upgrade() -> None:
    known = {column["name"] for column in inspect(op.get_bind()).get_columns("conversations")}
    for name, kind in COLUMNS.items():
        if name not in known:
            op.add_column("conversations", Column(name, kind, nullable=False, server_default=""))
    op.create_index("conversations_session", "conversations", ["user_id", "session"], if_not_exists=True)
    empty = text("messages = 0")
    op.create_index(
        "conversations_empty",
        "conversations",
        ["updated_at"],
        sqlite_where=empty,
        postgresql_where=empty,
        if_not_exists=True,
    )


def downgrade() -> None:
    op.drop_index("conversations_empty", "conversations")
    op.drop_index("conversations_session", "conversations")
    for name in COLUMNS:
        op.drop_column("conversations", name)
