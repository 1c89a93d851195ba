"""JSON Web Tokens that a gateway or an identity provider made: whose one is, by its signature and claims (RFC 7519).

Only asymmetric signatures are read: with a shared secret whoever may read the configuration could make tokens. The keys
(a JWK set, RFC 7517) come from a file or a URL; a token that names a key which is not among them has them fetched
again, so that keys can be rotated without a restart.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

from semmem.imports import as_if_absent
from semmem.ports.names import usable

with as_if_absent("httpx._main"):  # its command line, with 3 MB of libraries
    import httpx

ALGORITHMS = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""What each type of key may have signed with (RFC 7518, 8037). No secrets are shared, so HS256 is not among them."""
TOKEN_CHARS_MAX = 8192
KEYS_MAX = 100
LEEWAY_S = 30
"""Between two machines' clocks."""
FETCH_AGAIN_S = 10.0
"""At most so often for tokens that name an unknown key: anybody can make one up."""


class NotValid(Exception):
    """Why a token is not believed: a sentence without any of its content."""


class KeysUnavailable(Exception):
    """The keys cannot be had now. The message names where they should be."""


@dataclass(frozen=True, slots=True)
class WebTokenRules:
    """``issuer`` and ``audience``: what ``iss`` and ``aud`` must say; empty: not asked. ``user_claim``: the path to the
    user's id. ``refresh_s``: how old the keys may get."""

    issuer: str = ""
    audience: str = ""
    user_claim: tuple[str, ...] = ("sub",)
    refresh_s: float = 300.0


def looks_like_one(token: str) -> bool:
    """Whether it has the shape of a signed token: three parts."""
    return token.count(".") == 2 and len(token) <= TOKEN_CHARS_MAX


@dataclass(frozen=True, slots=True)
class _Key:
    key_id: object
    key: Any
    algorithms: tuple[str, ...]


Keys = Callable[[], Awaitable[Mapping[str, Any]]]


@dataclass(eq=False)
class VerifiedWebTokens:
    """``keys`` gives the JWK set as JSON has it; raises KeysUnavailable. Keys that were had once are used for as long
    as no others can be had."""

    keys: Keys
    rules: WebTokenRules
    _: KW_ONLY
    clock: Callable[[], float] = time.monotonic
    _keys: Sequence[_Key] = field(init=False, default=())
    _fetched_at: float = field(init=False, default=float("-inf"))
    _tried_at: float = field(init=False, default=float("-inf"))
    _line: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)

    async def user_of(self, token: str) -> str:
        """Whose a token is. Raises NotValid and KeysUnavailable."""
        import jwt  # and with it a library of cryptography, which most processes never need

        try:
            key_id = jwt.get_unverified_header(token).get("kid")
            for key in await self._candidates(key_id):
                try:
                    return self._user(jwt.decode(token, key.key, algorithms=key.algorithms, **self._asked()))
                except (jwt.InvalidSignatureError, jwt.InvalidKeyError, jwt.InvalidAlgorithmError):
                    continue  # another key's
        except jwt.PyJWTError as error:
            raise NotValid(f"the token is not valid: {_reason(error)}") from None
        raise NotValid("the token is not valid: no known key signed it")

    async def _candidates(self, key_id: object) -> list[_Key]:
        """The keys that may have signed it: the one it names, or, where it names none, all."""
        if self.clock() - self._fetched_at >= self.rules.refresh_s or (key_id is not None and not self._named(key_id)):
            await self._renew()
        return self._named(key_id) if key_id is not None else list(self._keys)

    def _named(self, key_id: object) -> list[_Key]:
        return [key for key in self._keys if key.key_id == key_id]

    async def _renew(self) -> None:
        """Keeps the old keys when there are no new ones. Raises KeysUnavailable when there never were any."""
        async with self._line:  # many calls at once ask once
            if self.clock() - self._tried_at < FETCH_AGAIN_S:
                if self._keys:
                    return
                raise KeysUnavailable("no keys to verify tokens with: they could not be had a moment ago")
            self._tried_at = self.clock()
            try:
                self._keys = list(_keys(await self.keys()))
                self._fetched_at = self._tried_at
            except KeysUnavailable as error:
                if not self._keys:
                    raise KeysUnavailable(f"no keys to verify tokens with: {error}") from None

    def _asked(self) -> dict[str, Any]:
        rules = self.rules
        required = ["exp", *(["iss"] if rules.issuer else []), *(["aud"] if rules.audience else [])]
        options = {"require": required, "verify_aud": bool(rules.audience), "verify_iss": bool(rules.issuer)}
        asked = {"issuer": rules.issuer or None, "audience": rules.audience or None}
        return {**asked, "leeway": LEEWAY_S, "options": options}

    def _user(self, claims: Mapping[str, Any]) -> str:
        found: Any = claims
        for name in self.rules.user_claim:
            found = found.get(name) if isinstance(found, Mapping) else None
        if not isinstance(found, str) or (user := usable(found)) is None:
            raise NotValid(f"the token's {'.'.join(self.rules.user_claim)} names no user")
        return user


def _keys(found: Mapping[str, Any]) -> Iterator[_Key]:
    """Those of a JWK set that may have signed a token; a set may hold others. Raises KeysUnavailable for no set."""
    import jwt

    told = found.get("keys")
    if not isinstance(told, list):
        raise KeysUnavailable("what is there is no JWK set")
    for one in told[:KEYS_MAX]:
        if not isinstance(one, dict) or one.get("use", "sig") != "sig":
            continue
        allowed = ALGORITHMS.get(str(one.get("kty")), ())
        named = one.get("alg")
        algorithms = tuple(name for name in allowed if named in (None, name))
        if not algorithms:
            continue
        try:
            yield _Key(one.get("kid"), jwt.PyJWK(one).key, algorithms)
        except jwt.PyJWTError:
            continue


def _reason(error: Exception) -> str:
    """What the library calls it; its messages may hold parts of the token."""
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in type(error).__name__)
    return words.strip().removesuffix(" error")


BYTES_MAX = 256 * 1024
TIMEOUT_S = 5.0


def keys_at(where: str) -> Keys:
    """``where``: an http(s) URL, or a file's path."""
    if where.startswith(("https://", "http://")):
        return lambda: _fetched(where)
    return lambda: asyncio.to_thread(_read, Path(where))


async def _fetched(url: str) -> Mapping[str, Any]:
    try:
        async with (
            asyncio.timeout(TIMEOUT_S),
            httpx.AsyncClient(trust_env=False) as http,
            http.stream("GET", url, headers={"accept": "application/json", "accept-encoding": "identity"}) as answer,
        ):
            answer.raise_for_status()
            text = bytearray()
            async for part in answer.aiter_raw():  # as it is sent: a compressed one could be a thousand times larger
                text += part
                if len(text) > BYTES_MAX:
                    raise KeysUnavailable(f"{url} is longer than {BYTES_MAX} bytes")
    except (httpx.HTTPError, TimeoutError) as error:
        raise KeysUnavailable(f"{url}: {type(error).__name__}") from None
    return _parsed(bytes(text), url)


def _read(path: Path) -> Mapping[str, Any]:
    try:
        with path.open("rb") as file:
            return _parsed(file.read(BYTES_MAX), str(path))
    except OSError as error:
        raise KeysUnavailable(f"{path}: {error.strerror}") from None


def _parsed(text: bytes, where: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise KeysUnavailable(f"{where} holds no JWK set")
    return found
