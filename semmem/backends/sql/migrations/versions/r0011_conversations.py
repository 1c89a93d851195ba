"""Conversations, their messages, and which of them were removed."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, Double, Index, Integer, LargeBinary, MetaData, Table, Text
from sqlalchemy.dialects import postgresql

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

TEXT = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def name(called: str) -> Column[str]:
    return Column(called, TEXT, nullable=False, server_default="")


tables = MetaData()
conversations = Table(
    "conversations",
    tables,
    Column("id", Text, primary_key=True),
    *(name(each) for each in ("user_id", "project", "agent", "session", "title")),
    Column("titled_at", Double),
    name("tags"),
    Column("messages", Integer, nullable=False, server_default="0"),
    Column("tokens_in", BigInteger, nullable=False, server_default="0"),
    Column("tokens_out", BigInteger, nullable=False, server_default="0"),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
)
Index("conversations_user", conversations.c.user_id, conversations.c.updated_at, conversations.c.id)
messages = Table(
    "conversation_messages",
    tables,
    Column("turn_id", TEXT, primary_key=True),
    Column("step", Text, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("conversation_id", Text, nullable=False),
    Column("user_id", TEXT, nullable=False),
    Column("place", TEXT, nullable=False),
    Column("turn_at", Double, nullable=False),
    Column("at", Double, nullable=False),
    Column("role", Text, nullable=False),
    name("content"),
    Column("cut", Integer, nullable=False, server_default="0"),
    *(name(each) for each in ("answers", "calls", "model_asked", "model", "backend")),
    Column("tokens_in", BigInteger),
    Column("tokens_out", BigInteger),
    *(name(each) for each in ("answer_id", "finish_reason", "after")),
    Column("vector", LargeBinary),
    Column("vector_of", Text, nullable=False, server_default=""),
)
Index("conversation_messages_place", messages.c.conversation_id, messages.c.place)
Index("conversation_messages_user", messages.c.user_id, messages.c.turn_at)
Index("conversation_messages_at", messages.c.turn_at)
Index(
    "conversation_messages_answer",
    messages.c.user_id,
    messages.c.answer_id,
    sqlite_where=messages.c.answer_id != "",
    postgresql_where=messages.c.answer_id != "",
)
Index(
    "conversation_messages_vector",
    messages.c.vector_of,
    sqlite_where=messages.c.role == "user",
    postgresql_where=messages.c.role == "user",
)
Table(
    "forgotten_conversations",
    tables,
    Column("id", Text, primary_key=True),
    Column("forgotten_at", Double, nullable=False),
)


def upgrade() -> None:
    tables.create_all(op.get_bind())


def downgrade() -> None:
    tables.drop_all(op.get_bind())
