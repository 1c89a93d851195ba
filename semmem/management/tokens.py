"""Tokens that an administrator makes: shown once, kept as a hash, revoked at any time.

``semmem_ID_SECRET`` or ``semmem_ID_SECRET.USER``: the user that a token is bound to is in the token itself, in base64,
so that no name is kept here after an erasure. 256 random bits need no slow hash (NIST SP 800-63B, 5.1.2.2).
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from collections.abc import Callable, Sequence
from hashlib import sha256

from semmem.management.access import TOKEN_PREFIX, CallerRole, KnownTokens
from semmem.ports.tokens import TokenRecords, TokenRow
from semmem.text.digest import digest

ID_BYTES, SECRET_BYTES = 6, 32
TOKEN_CHARS_MAX = 2048


class Tokens(KnownTokens):
    """Raises JournalError."""

    def __init__(self, records: TokenRecords, *, clock: Callable[[], float]) -> None:
        self._records = records
        self._clock = clock

    async def make(
        self, role: CallerRole, *, label: str, user: str | None, expires_at: float | None = None
    ) -> tuple[str, TokenRow]:
        """The token, which nobody can be shown again, and what is kept of it."""
        token_id = secrets.token_hex(ID_BYTES)
        token = f"{TOKEN_PREFIX}{token_id}_{secrets.token_urlsafe(SECRET_BYTES)}"
        if user is not None:
            token += "." + base64.urlsafe_b64encode(user.encode()).decode().rstrip("=")
        row = TokenRow(
            id=token_id,
            role=role,
            label=label,
            user_digest=_user_digest(user),
            token_hash=_hash(token),
            created_at=self._clock(),
            expires_at=expires_at,
        )
        await self._records.add_token(row)
        return token, row

    async def caller(self, token: str) -> tuple[TokenRow, str | None] | None:
        """The row and the user of a good token."""
        if len(token) > TOKEN_CHARS_MAX:
            return None
        body, _, user = token.removeprefix(TOKEN_PREFIX).partition(".")
        row = await self._records.token(body.partition("_")[0])
        if row is None or not hmac.compare_digest(row.token_hash, _hash(token)) or not row.is_good_at(self._clock()):
            return None
        bound_to = _user_of(user)
        return (row, bound_to) if _user_digest(bound_to) == row.user_digest else None

    async def all(self) -> Sequence[TokenRow]:
        return await self._records.tokens()

    async def revoke(self, token_id: str) -> int:
        """Revoke one; 0 when there is none, or it was revoked already."""
        return await self._records.revoke_tokens(now=self._clock(), token_id=token_id)

    async def revoke_of(self, user: str) -> int:
        """Revoke all of a user's; how many were not revoked until now."""
        return await self._records.revoke_tokens(now=self._clock(), user_digest=_user_digest(user))


def _hash(token: str) -> str:
    return sha256(token.encode("utf-8", "replace")).hexdigest()


def _user_digest(user: str | None) -> str:
    return digest("token of", user) if user else ""


def _user_of(text: str) -> str | None:
    if not text:
        return None
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (binascii.Error, ValueError):
        return None
