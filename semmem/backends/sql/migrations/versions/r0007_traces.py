"""Where the request of a turn stands in a trace, for what is learnt from it later."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Text, inspect
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TEXT = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    if "trace" not in {column["name"] for column in inspect(op.get_bind()).get_columns("turns")}:
        op.add_column("turns", Column("trace", TEXT, nullable=False, server_default=""))


def downgrade() -> None:
    op.drop_column("turns", "trace")
