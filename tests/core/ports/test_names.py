"""Names are kept within bounds before anything remembers them."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.memory import Controls, Scope
from semmem.ports.names import HASHED_PREFIX, NAME_BYTES_MAX, bounded, fits, usable
from semmem.request.head import RequestHead, read_headers
from semmem.request.identity import IdentityRules, identify

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=40)
UNUSABLE = [
    "x" * (NAME_BYTES_MAX + 1),
    "漢" * 342,
    "a\x00b",
    "a\nb",
    "a\x7fb",
    "a\x85b",
    "lone \ud800",
    "\udfff" * 2000,
]
RULES = IdentityRules(trusted_headers=("x-user-id",))


@given(ANY_TEXT.map(lambda text: text * 60) | ANY_TEXT)
def test_whatever_is_given_what_is_kept_is_short_and_clean(name: str) -> None:
    kept = bounded(name)
    if not name:
        assert kept is None
        return
    assert kept is not None
    assert len(kept.encode()) <= NAME_BYTES_MAX
    assert not any(unicodedata.category(character) == "Cc" for character in kept)
    assert usable(kept) == kept == bounded(name)
    assert (usable(name) is None) == (kept != name)


@pytest.mark.parametrize("name", UNUSABLE, ids=range(len(UNUSABLE)))
def test_a_conversation_of_an_unusable_name_goes_on_under_a_digest(name: str) -> None:
    assert usable(name) is None
    kept = bounded(name)
    assert kept is not None
    assert kept.startswith(HASHED_PREFIX)
    assert kept != bounded(name + "x")
    assert kept == bounded(name)


def test_the_bound_counts_bytes() -> None:
    longest = "漢" * 341 + "x"
    assert fits(longest)
    assert bounded(longest) == longest
    assert not fits(longest + "x")
    assert usable("😀" * 256) == "😀" * 256
    assert usable("") is None
    assert usable(None) is None
    assert bounded(None) is None


@pytest.mark.parametrize("name", UNUSABLE, ids=range(len(UNUSABLE)))
def test_a_user_of_an_unusable_name_is_nobody(name: str) -> None:
    claims = {"envoy.filters.http.jwt_authn": {"jwt_payload": {"sub": name}}}
    assert identify(RULES, RequestHead("POST", "/", {}, claims), Controls()) is None
    sent = RequestHead("POST", "/", {"x-user-id": (name,)})
    assert identify(RULES, sent, Controls()) is None
    believing = IdentityRules(allow_untrusted_body=True)
    assert identify(believing, RequestHead("POST", "/", {}), Controls(claimed_user=name)) is None


@pytest.mark.parametrize("name", UNUSABLE, ids=range(len(UNUSABLE)))
def test_project_agent_and_session_of_an_unusable_name_stay_apart_from_all_others(name: str) -> None:
    sent = {"x-user-id": ("alice",), "x-project-id": (name,), "x-agent-id": (name,), "x-session-id": (name,)}
    scope = identify(RULES, RequestHead("POST", "/", sent), Controls())
    assert scope == Scope("alice", bounded(name), bounded(name), bounded(name))
    from_body = identify(RULES, RequestHead("POST", "/", {"x-user-id": ("alice",)}), Controls(project=name))
    assert from_body == Scope("alice", project=bounded(name))


def test_every_door_reads_headers_alike() -> None:
    pairs = [("X-User-Id", "jürgen".encode()), ("x-user-id", b"mallory"), ("x-old", "jürgen".encode("latin-1"))]
    assert read_headers(pairs) == {"x-user-id": ("jürgen", "mallory"), "x-old": ("jürgen",)}
