"""Who may call the API, and on whose memories: one admin token, or the trusted identity header for one's own."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field


class Denied(Exception):
    """A refusal as an HTTP status, a stable code and a sentence."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class AccessRules:
    """``admin_token`` empty: nobody is admin. ``trusted_headers``: as for requests through Envoy."""

    admin_token: str = field(default="", repr=False)
    trusted_headers: tuple[str, ...] = ()


def user_for(rules: AccessRules, headers: Mapping[str, str], asked_for: str | None) -> str:
    """The user whose memories this call may touch. Raises Denied."""
    if _is_admin(rules, headers.get("authorization", "")):
        if not asked_for:
            raise Denied(400, "MISSING_USER_ID", "an admin call needs user_id")
        return asked_for
    own = next((headers[name].strip() for name in rules.trusted_headers if headers.get(name, "").strip()), None)
    if own is None:
        raise Denied(401, "UNAUTHENTICATED", "give the admin token as a bearer token, or a trusted identity header")
    if asked_for and asked_for != own:
        raise Denied(404, "NOT_FOUND", "no such memory")
    return own


def _is_admin(rules: AccessRules, authorization: str) -> bool:
    scheme, _, token = authorization.partition(" ")
    if not rules.admin_token or scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(token.strip().encode(), rules.admin_token.encode())
