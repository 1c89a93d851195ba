"""JSON Web Tokens: which are believed, and where the keys come from."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from semmem.background import Tasks
from semmem.management.access import AccessRules
from semmem.management.api import create_api
from semmem.management.routes import MetadataLimits
from semmem.management.server import HttpListener
from semmem.management.web_tokens import (
    FETCH_AGAIN_S,
    KeysUnavailable,
    NotValid,
    VerifiedWebTokens,
    WebTokenRules,
    keys_at,
    looks_like_one,
)

RSA, OTHER_RSA = (rsa.generate_private_key(65537, 2048) for _ in range(2))
EC, ED = ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()
FUTURE, PAST = 4_000_000_000, 1_000_000_000
RULES = WebTokenRules(issuer="https://id.example", audience="semmem")
CLAIMS = {"sub": "alice", "iss": "https://id.example", "aud": "semmem", "exp": FUTURE}


def jwk(key: Any, kid: str) -> dict[str, Any]:
    algorithm = {rsa.RSAPrivateKey: "RS256", ec.EllipticCurvePrivateKey: "ES256"}
    name = next((name for kind, name in algorithm.items() if isinstance(key, kind)), "EdDSA")
    shown: dict[str, Any] = json.loads(jwt.get_algorithm_by_name(name).to_jwk(key.public_key()))
    return shown | {"kid": kid, "alg": name, "use": "sig"}


def signed(claims: Mapping[str, Any] = CLAIMS, key: Any = RSA, algorithm: str = "RS256", kid: str | None = "1") -> str:
    return jwt.encode(dict(claims), key, algorithm, headers={"kid": kid} if kid else None)


class Keys:
    def __init__(self, *keys: dict[str, Any]) -> None:
        self.keys, self.fetched, self.broken, self.now = list(keys), 0, False, 1000.0

    async def __call__(self) -> Mapping[str, Any]:
        self.fetched += 1
        await asyncio.sleep(0)
        if self.broken:
            raise KeysUnavailable("https://id.example/keys: ConnectError")
        return {"keys": self.keys}

    def believed(self, rules: WebTokenRules = RULES) -> VerifiedWebTokens:
        return VerifiedWebTokens(self, rules, clock=lambda: self.now)


@pytest.mark.parametrize(("key", "algorithm"), [(RSA, "RS256"), (RSA, "PS512"), (EC, "ES256"), (ED, "EdDSA")])
async def test_a_signed_token_names_its_user(key: Any, algorithm: str) -> None:
    keys = Keys({name: value for name, value in jwk(key, "1").items() if name != "alg"})
    assert await keys.believed().user_of(signed(key=key, algorithm=algorithm)) == "alice"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"exp": PAST}, "expired signature"),
        ({"exp": None}, "missing required claim"),
        ({"aud": "somebody else"}, "invalid audience"),
        ({"aud": None}, "missing required claim"),
        ({"iss": "https://evil.example"}, "invalid issuer"),
        ({"nbf": FUTURE - 1}, "immature signature"),
        ({"sub": None}, "names no user"),
        ({"sub": ""}, "names no user"),
        ({"sub": "a\nb"}, "names no user"),
    ],
)
async def test_a_token_that_is_not_good_now_and_for_us_is_refused(changed: dict[str, Any], why: str) -> None:
    claims = {name: value for name, value in (CLAIMS | changed).items() if value is not None}
    with pytest.raises(NotValid, match=why):
        await Keys(jwk(RSA, "1")).believed().user_of(signed(claims))


async def test_no_token_is_believed_without_its_signature() -> None:
    believed = Keys(jwk(RSA, "1")).believed()
    head, body, signature = signed().split(".")
    none = base64.urlsafe_b64encode(b'{"alg":"none","kid":"1"}').rstrip(b"=").decode()
    public = RSA.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    import hashlib
    import hmac

    shared_head = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"1"}').rstrip(b"=").decode()
    mac = hmac.new(public, f"{shared_head}.{body}".encode(), hashlib.sha256).digest()
    with_public_key_as_secret = f"{shared_head}.{body}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"
    forged = [
        f"{none}.{body}.",
        f"{head}.{body}.",
        f"{head}.{body}.{signature[:-4]}AAAA",
        with_public_key_as_secret,
        signed(key=OTHER_RSA),
        "a.b.c",
        "..",
    ]
    for token in forged:
        with pytest.raises(NotValid):
            await believed.user_of(token)


async def test_a_refusal_holds_nothing_of_the_token() -> None:
    with pytest.raises(NotValid) as refused:
        await Keys(jwk(RSA, "1")).believed().user_of(signed(CLAIMS | {"aud": "the-payroll-system"}))
    assert "payroll" not in str(refused.value)


async def test_a_key_that_is_new_is_fetched_and_one_that_is_gone_believed_no_more() -> None:
    keys = Keys(jwk(RSA, "1"))
    believed = keys.believed()
    await believed.user_of(signed())
    keys.keys = [jwk(OTHER_RSA, "2")]
    keys.now += FETCH_AGAIN_S
    assert await believed.user_of(signed(key=OTHER_RSA, kid="2")) == "alice"
    with pytest.raises(NotValid):
        await believed.user_of(signed())


async def test_made_up_keys_do_not_have_them_fetched_again_and_again() -> None:
    keys = Keys(jwk(RSA, "1"))
    believed = keys.believed()

    async def refused(number: int) -> None:
        with pytest.raises(NotValid):
            await believed.user_of(signed(kid=f"made up {number}"))

    await asyncio.gather(*(refused(number) for number in range(50)))
    assert keys.fetched == 1


async def test_a_key_that_was_withdrawn_is_believed_no_longer_than_keys_may_grow_old() -> None:
    keys = Keys(jwk(RSA, "1"))
    believed = keys.believed()
    await believed.user_of(signed())
    keys.keys = []
    keys.now += RULES.refresh_s
    with pytest.raises(NotValid):
        await believed.user_of(signed())


async def test_a_provider_that_is_away_costs_nobody_their_way_in() -> None:
    keys = Keys(jwk(RSA, "1"))
    believed = keys.believed()
    await believed.user_of(signed())
    keys.broken, keys.now = True, keys.now + 10 * RULES.refresh_s
    assert await believed.user_of(signed()) == "alice"


async def test_without_keys_nobody_is_called_wrong() -> None:
    keys = Keys()
    keys.broken = True
    with pytest.raises(KeysUnavailable):
        await keys.believed().user_of(signed())
    access = AccessRules(web_tokens=keys.believed())
    nothing: Any = SimpleNamespace(limits=MetadataLimits())
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(create_api(nothing, access)), base_url="http://semmem"
    ) as client:
        answer = await client.get("/v1/memory", headers={"authorization": f"Bearer {signed()}"})
        wrong = await client.get("/v1/memory", headers={"authorization": "Bearer nothing-of-that-shape"})
    assert (answer.status_code, wrong.status_code) == (503, 401)


async def test_a_provider_that_never_answered_is_not_asked_by_every_call() -> None:
    keys = Keys()
    keys.broken = True
    believed = keys.believed()

    async def refused() -> None:
        with pytest.raises(KeysUnavailable):
            await believed.user_of(signed())

    await asyncio.gather(*(refused() for _ in range(50)))
    assert keys.fetched == 1
    keys.broken, keys.keys, keys.now = False, [jwk(RSA, "1")], keys.now + FETCH_AGAIN_S
    assert await believed.user_of(signed()) == "alice"


async def test_a_nested_claim_is_found() -> None:
    rules = WebTokenRules(issuer="https://id.example", user_claim=("realm", "user"))
    claims = CLAIMS | {"realm": {"user": "bob"}}
    assert await Keys(jwk(RSA, "1")).believed(rules).user_of(signed(claims)) == "bob"


def test_only_what_has_three_parts_looks_like_one() -> None:
    assert looks_like_one(signed())
    assert not looks_like_one("sk-something")
    assert not looks_like_one("a." * 5000)


async def test_keys_come_from_a_file_that_may_change(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": [jwk(RSA, "1")]}))
    assert (await keys_at(str(path))())["keys"][0]["kid"] == "1"
    path.write_text("[]")
    with pytest.raises(KeysUnavailable, match=r"keys\.json holds no JWK set"):
        await keys_at(str(path))()
    with pytest.raises(KeysUnavailable, match="No such file"):
        await keys_at(str(tmp_path / "other.json"))()


async def test_keys_come_from_a_url() -> None:
    async def app(scope: Any, _receive: Any, send: Any) -> None:
        body = {"/keys": json.dumps({"keys": [jwk(RSA, "1")]}), "/long": "x" * 300_000}.get(scope["path"])
        await send({"type": "http.response.start", "status": 200 if body else 404, "headers": []})
        await send({"type": "http.response.body", "body": (body or "").encode()})

    listener = HttpListener(app, "127.0.0.1:0")
    address = listener.bind()
    tasks = Tasks()
    serving = tasks.spawn("serve", listener.serve())
    try:
        assert (await keys_at(f"http://{address}/keys")())["keys"][0]["kid"] == "1"
        with pytest.raises(KeysUnavailable, match="HTTPStatusError"):
            await keys_at(f"http://{address}/none")()
        with pytest.raises(KeysUnavailable, match="longer than"):
            await keys_at(f"http://{address}/long")()
    finally:
        listener.stop()
        await serving
        listener.close()
    with pytest.raises(KeysUnavailable, match="ConnectError"):
        await keys_at(f"http://{address}/keys")()
