"""Tokens of the management API: what each is known again by."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Double, MetaData, Table, Text

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

tables = MetaData()
Table(
    "api_tokens",
    tables,
    Column("id", Text, primary_key=True),
    Column("role", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("user_digest", Text, nullable=False),
    Column("token_hash", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("revoked_at", Double),
)


def upgrade() -> None:
    tables.create_all(op.get_bind())


def downgrade() -> None:
    tables.drop_all(op.get_bind())
