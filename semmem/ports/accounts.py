"""What is kept for the management API: which calls were made under an idempotency key and what came of them; its
tokens, never the token, only what it is known again by; and for whom an administrator switched reading or storing off.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """``body`` is JSON; None: it is not kept, or not any more. ``counts``: what of it holds no content, as JSON; empty
    where there is nothing of that kind."""

    status: int
    body: bytes | None = None
    counts: str = ""


@dataclass(frozen=True, slots=True)
class KnownCall:
    """``request``: a digest of what was asked. ``answer`` None: somebody is at it."""

    request: str
    answer: CallAnswer | None = None


@dataclass(frozen=True, slots=True)
class TokenRow:
    """``token_hash``: SHA-256 of the whole token, in hex. ``user_digest`` is empty where a token is of no single user,
    else a digest of that user, so that all of a user's tokens can be revoked. Times are Unix seconds."""

    id: str
    role: str
    label: str
    user_digest: str
    token_hash: str
    created_at: float
    expires_at: float | None = None
    revoked_at: float | None = None

    def is_good_at(self, now: float) -> bool:
        """Whether nobody has taken it back, and its time is not over."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class TokenRecords(Protocol):
    """All raise JournalError."""

    async def add_token(self, row: TokenRow) -> None: ...

    async def token(self, token_id: str) -> TokenRow | None: ...

    async def tokens(self) -> Sequence[TokenRow]:
        """All, the newest first; those that are revoked too."""

    async def revoke_tokens(self, *, now: float, token_id: str | None = None, user_digest: str | None = None) -> int:
        """Revoke one token, all of a user, or where neither is given all there are; how many were not revoked until
        now. They are gone 90 days later."""


@dataclass(frozen=True, slots=True)
class Switch:
    """May memories be shown in prompts, may turns be stored and learnt from. None: nothing is said of it."""

    reading: bool | None = None
    storing: bool | None = None


UNSAID = Switch()


@dataclass(frozen=True, slots=True)
class SwitchRow:
    """One user's or group's. ``key`` is a digest of the name; ``group`` the name itself, empty for a user, of whom no
    name is kept. ``number`` rises with every change of any switch. ``changed_at`` is a Unix time."""

    key: str
    group: str
    switch: Switch
    number: int
    changed_at: float
