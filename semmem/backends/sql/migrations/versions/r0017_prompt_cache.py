"""How many tokens of prompts were cached, as their providers reported it."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, inspect

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

REQUEST = ("prompt_tokens", "cached_tokens")
SUMS = ("cache_reported", "prompt_tokens", "cached_tokens")
COLUMNS = {"usage_requests": REQUEST, "usage_hours": SUMS, "usage_days": SUMS}


def upgrade() -> None:
    found = inspect(op.get_bind())
    for table, names in COLUMNS.items():
        known = {column["name"] for column in found.get_columns(table)}
        for name in names:
            if name not in known:
                op.add_column(table, _column(table, name))


def _column(table: str, name: str) -> Column[int]:
    """Of a request null: it is not known. A sum is of those of which it is."""
    if table == "usage_requests":
        return Column(name, BigInteger)
    return Column(name, BigInteger, nullable=False, server_default="0")


def downgrade() -> None:
    for table, names in COLUMNS.items():
        for name in names:
            op.drop_column(table, name)
