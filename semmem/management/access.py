"""Who may call the API, what they may do, on whose memories, and how often.

A bearer token (the configured administrator's, one of those that were made, or a JSON Web Token of the gateway's) or a
trusted identity header says who calls. A role is a set of acts; each route names the act it needs.
"""

import base64
import binascii
import hmac
import ipaddress
import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from enum import Flag, StrEnum, auto
from hashlib import blake2b, sha256

from cachetools import LRUCache

from semmem.management.problems import RETRY_AFTER, Denied
from semmem.management.web_tokens import KeysUnavailable, NotValid, VerifiedWebTokens, looks_like_one
from semmem.ports.accounts import TokenRecords, TokenRow
from semmem.ports.errors import JournalError
from semmem.ports.events import Announce, ApiLimited, nobody_listens
from semmem.request.head import RequestHead
from semmem.request.identity import user_in_header
from semmem.text.digest import digest

CALLER, TOUCHED = "semmem.caller", "semmem.touched"
"""Where in the ASGI scope a route finds who calls, and where it notes whose memories the call touches."""


class Act(Flag):
    """What a call does. READ and WRITE are of memories and what they say; OPERATE is of the running semmem, and shows
    no content; ADMINISTER is of everybody: tokens, copies, what a screen refused."""

    READ = auto()
    WRITE = auto()
    OPERATE = auto()
    ADMINISTER = auto()


class CallerRole(StrEnum):
    """Who a caller is."""

    ADMIN = "admin"
    OPERATOR = "operator"
    USER = "user"
    READER = "reader"

    @property
    def acts(self) -> Act:
        return _ACTS[self]


_ACTS = {
    CallerRole.ADMIN: Act.READ | Act.WRITE | Act.OPERATE | Act.ADMINISTER,
    CallerRole.OPERATOR: Act.OPERATE,
    CallerRole.USER: Act.READ | Act.WRITE,
    CallerRole.READER: Act.READ,
}

_MAY_NOT = {
    Act.READ: "this token may not see what memories say",
    Act.WRITE: "this token may only read",
    Act.OPERATE: "only an operator or an administrator may",
    Act.ADMINISTER: "only an administrator may",
}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls. ``user``: the only one whose memories this caller may touch; None for any. ``token_id`` names the
    token in the audit log, where it was one of those that were made. ``by_header``: a proxy says who it is,
    whatever the query says."""

    role: CallerRole = CallerRole.ADMIN
    user: str | None = None
    token_id: str = ""
    by_header: bool = False

    def must(self, act: Act) -> None:
        """Raises Denied where this caller may not."""
        if act not in self.role.acts:
            raise Denied("FORBIDDEN", _MAY_NOT[act])

    @property
    def name(self) -> str:
        """One for each caller, that no other has: of a token, of a user however they were known, or a role."""
        if self.token_id:
            return f"token {self.token_id}"
        return f"{self.role} {self.user}" if self.user is not None else f"{self.role}"


TOKEN_PREFIX = "semmem_"
"""So that people and scanners of secrets know one when they see it."""
ID_BYTES, SECRET_BYTES = 6, 32
TOKEN_CHARS_MAX = 2048


@dataclass(eq=False)
class Tokens:
    """Those that an administrator makes: shown once, kept as a hash, revoked at any time. Raises JournalError.
    ``semmem_ID_SECRET`` or ``semmem_ID_SECRET.USER``: the user that a token is bound to is in the token itself, in
    base64, so that no name is kept here after an erasure. 256 random bits need no slow hash (NIST SP 800-63B,
    5.1.2.2)."""

    records: TokenRecords
    _: KW_ONLY
    clock: Callable[[], float]

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
            created_at=self.clock(),
            expires_at=expires_at,
        )
        await self.records.add_token(row)
        return token, row

    async def caller(self, token: str) -> tuple[TokenRow, str | None] | None:
        """The row and the user of a good token."""
        if len(token) > TOKEN_CHARS_MAX:
            return None
        body, _, user = token.removeprefix(TOKEN_PREFIX).partition(".")
        row = await self.records.token(body.partition("_")[0])
        if row is None or not hmac.compare_digest(row.token_hash, _hash(token)) or not row.is_good_at(self.clock()):
            return None
        bound_to = _user_of(user)
        return (row, bound_to) if _user_digest(bound_to) == row.user_digest else None

    async def revoke(self, *, token_id: str | None = None, user: str | None = None) -> int:
        """Revoke one, or all of a user's; how many were not revoked until now."""
        user_digest = None if user is None else _user_digest(user)
        return await self.records.revoke_tokens(now=self.clock(), token_id=token_id, user_digest=user_digest)


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


@dataclass(frozen=True, slots=True)
class AccessRules:
    """``admin_token`` empty: nobody is admin by it. ``trusted_headers``: those of this listener, not those of Envoy's,
    which strips them from clients; ``user_chars_max`` as in ``IdentityRules``. ``tokens`` None: none can be made."""

    admin_token: str = field(default="", repr=False)
    trusted_headers: tuple[str, ...] = ()
    user_chars_max: int = 256
    tokens: Tokens | None = None
    web_tokens: VerifiedWebTokens | None = None


async def authenticate(rules: AccessRules, head: RequestHead) -> Caller:
    """Who calls, from the request's head alone. Raises Denied."""
    scheme, _, token = (head.header("authorization") or "").partition(" ")
    token = token.strip() if scheme.lower() == "bearer" else ""
    if rules.admin_token and hmac.compare_digest(token.encode("utf-8", "replace"), rules.admin_token.encode()):
        return Caller()
    if token.startswith(TOKEN_PREFIX):
        return await _known(rules.tokens, token)
    if rules.web_tokens is None or not looks_like_one(token):
        named, _ = user_in_header(rules.trusted_headers, head, rules.user_chars_max)
        if named is None:
            raise _nobody("give a bearer token, or a trusted identity header")
        return Caller(CallerRole.USER, named, by_header=True)
    try:
        user = await rules.web_tokens.user_of(token)
    except NotValid as reason:
        raise _nobody(str(reason)) from None
    except KeysUnavailable as reason:
        raise _unknown(str(reason)) from None
    if len(user) > rules.user_chars_max:
        raise _nobody("its user's name is too long")
    return Caller(CallerRole.USER, user)


def user_for(caller: Caller, asked_for: str | None, act: Act, place: str) -> str:
    """The user whose memories this call may touch in this way, asked for in the call's ``place``. Raises Denied."""
    caller.must(act)
    if caller.user is None:
        if not asked_for:
            raise Denied("MISSING_USER_ID", f"this caller is bound to no user: name one as user_id in the {place}")
        return asked_for
    if asked_for and asked_for != caller.user:
        raise Denied("NOT_FOUND", "no such memory")
    return caller.user


async def _known(tokens: Tokens | None, token: str) -> Caller:
    try:
        found = None if tokens is None else await tokens.caller(token)
    except JournalError:
        raise _unknown("tokens cannot be looked up now") from None
    if found is None:
        raise _nobody("this token is not known, revoked, or its time is over")
    row, user = found
    return Caller(CallerRole(row.role), user, row.id)


def _nobody(reason: str) -> Denied:
    return Denied("UNAUTHENTICATED", reason, {"www-authenticate": "Bearer"})


def _unknown(reason: str) -> Denied:
    return Denied("IDENTITY_NOT_AVAILABLE", f"{reason}; try again later")


# --- how often --------------------------------------------------------------------------------------------------------
# A token bucket for each caller, and one for each address whose credentials are refused. A bucket holds `burst` calls
# and is filled again at a steady rate. Callers are those that the door knows, so one who shares an address with many is
# not slowed by them. Addresses count only for credentials that were refused: looking one up costs a read of the journal
# or a check of a signature, and an address that has failed too often is heard with those credentials alone that were
# good before.


@dataclass(frozen=True, slots=True)
class RateRules:
    """``calls_per_s`` with ``burst`` at once, of each caller; ``failures_per_minute``, as many at once, of each
    address. 0: without a limit. ``callers_max``: so many are known at a time, about 200 bytes each; whoever called the
    longest time ago is forgotten, and begins with a full bucket."""

    calls_per_s: float = 0.0
    burst: int = 1000
    failures_per_minute: float = 0.0
    callers_max: int = 10_000


@dataclass(eq=False)
class Buckets:
    """One for each key. ``per_s`` 0: nobody is limited."""

    per_s: float
    burst: float
    keys_max: int
    clock: Callable[[], float]
    _left: OrderedDict[str, tuple[float, float]] = field(init=False, default_factory=OrderedDict)

    def __len__(self) -> int:
        return len(self._left)

    def wait_s(self, key: str) -> float:
        """In how many seconds something can be taken; 0: now."""
        if not self.per_s:
            return 0.0
        return max(0.0, (1.0 - self._filled(key)) / self.per_s)

    def take(self, key: str) -> float:
        """Take one, if there is one; else nothing, and in how many seconds there is."""
        wait_s = self.wait_s(key)
        if self.per_s and not wait_s:
            self._left[key] = self._filled(key) - 1.0, self.clock()
            self._left.move_to_end(key)
            if len(self._left) > self.keys_max:
                self._left.popitem(last=False)
        return wait_s

    def _filled(self, key: str) -> float:
        left, at = self._left.get(key, (self.burst, 0.0))
        return min(self.burst, left + (self.clock() - at) * self.per_s)


@dataclass(eq=False)
class RateLimits:
    """What the door asks before and after it knows who calls. Bounded, and of this process alone."""

    rules: RateRules = RateRules()
    _: KW_ONLY
    clock: Callable[[], float] = time.monotonic
    announce: Announce = nobody_listens

    def __post_init__(self) -> None:
        rules, per_minute = self.rules, self.rules.failures_per_minute
        self._calls = Buckets(rules.calls_per_s, rules.burst, rules.callers_max, self.clock)
        self._failures = Buckets(per_minute / 60.0, per_minute, rules.callers_max, self.clock)
        self._good: LRUCache[bytes, bool] = LRUCache(rules.callers_max)

    def before(self, address: str, head: RequestHead) -> None:
        """Before a credential is looked at. Raises Denied."""
        wait_s, credential = self._failures.wait_s(_network(address)), _credential(head)
        if wait_s and credential is not None and credential not in self._good:
            self._refuse("address", wait_s)

    def failed(self, address: str) -> None:
        """A credential from there was refused."""
        self._failures.take(_network(address))

    def known(self, caller: Caller, head: RequestHead) -> None:
        """Somebody calls whose credential is good. Raises Denied."""
        if (credential := _credential(head)) is not None:
            self._good[credential] = True
        if wait_s := self._calls.take(caller.name):
            self._refuse("caller", wait_s)

    def anybody(self, address: str) -> None:
        """A call for which nobody needs to say who they are. Raises Denied."""
        if wait_s := self._calls.take(f"address {_network(address)}"):
            self._refuse("address", wait_s)

    def _refuse(self, who: str, wait_s: float) -> None:
        self.announce(ApiLimited(who))
        after = {RETRY_AFTER: str(max(1, math.ceil(wait_s)))}
        raise Denied("RATE_LIMITED", "too many calls; try again when Retry-After says", after)


def _credential(head: RequestHead) -> bytes | None:
    given = head.headers.get("authorization")
    return None if given is None else blake2b("\n".join(given).encode("utf-8", "replace"), digest_size=16).digest()


def _network(address: str) -> str:
    """An IPv6 network of 64 bits is one customer's."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(ipaddress.ip_network((found, 64), strict=False)) if found.version == 6 else address
