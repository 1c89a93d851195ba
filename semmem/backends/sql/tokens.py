"""Tokens of the management API."""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select, update

from semmem.backends.sql.part import JournalPart, one_read, one_write
from semmem.backends.sql.tables import api_tokens
from semmem.ports.tokens import TokenRow

REVOKED_KEPT_S = 90 * 86_400.0
"""So long an operator can look up which token it was."""


class SqlTokens(JournalPart):
    """TokenRecords."""

    @one_write
    def add_token(self, conn: Connection, row: TokenRow) -> None:
        columns = {column.name: getattr(row, column.name) for column in api_tokens.c}
        conn.execute(insert(api_tokens).values(columns))

    @one_read
    def token(self, conn: Connection, token_id: str) -> TokenRow | None:
        row = conn.execute(select(api_tokens).where(api_tokens.c.id == token_id)).one_or_none()
        return None if row is None else TokenRow(**row._mapping)

    @one_read
    def tokens(self, conn: Connection) -> list[TokenRow]:
        rows = conn.execute(select(api_tokens).order_by(api_tokens.c.created_at.desc(), api_tokens.c.id))
        return [TokenRow(**row._mapping) for row in rows]

    @one_write
    def revoke_tokens(
        self, conn: Connection, *, now: float, token_id: str | None = None, user_digest: str | None = None
    ) -> int:
        conn.execute(delete(api_tokens).where(api_tokens.c.revoked_at < now - REVOKED_KEPT_S))
        good = update(api_tokens).where(api_tokens.c.revoked_at.is_(None)).values(revoked_at=now)
        if token_id is not None:
            good = good.where(api_tokens.c.id == token_id)
        if user_digest is not None:
            good = good.where(api_tokens.c.user_digest == user_digest)
        return conn.execute(good).rowcount
