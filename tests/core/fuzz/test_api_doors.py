"""A short seeded search of the API's doors; `make fuzz` searches the same for as long as one likes. And the checks
themselves, which must be able to fail."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fuzz import api
from tests.fuzz.shaken import shaken
from tests.fuzz.targets import CORPUS, TARGETS
from tests.support.examples import examples

INPUTS = {"calls": 800, "tools": 400, "web_tokens": 3000, "cursors": 3000, "import_lines": 5000}


def search(name: str, number: int, seed: int = 13) -> None:
    target = TARGETS[name]
    seeds = [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]
    for data in shaken(seeds, target.words, random.Random(seed), number):
        try:
            target.check(data)
        except BaseException as error:
            error.add_note(f"{name}: {data!r}")
            raise


@pytest.mark.long(20)
@pytest.mark.parametrize("name", INPUTS)
def test_a_search_finds_no_broken_promise(name: str) -> None:
    search(name, examples(INPUTS[name]))


def test_a_search_is_the_same_for_the_same_seed() -> None:
    first, again, other = (list(shaken([b"seed"], [b"word"], random.Random(seed), 50)) for seed in (1, 1, 2))
    assert first == again != other


# --- broken on purpose -----------------------------------------------------------------------------------------------


@pytest.fixture
def spoilt() -> Iterator[None]:
    """The world that the inputs meet is made anew behind a test that breaks it."""
    yield
    api._world.cache_clear()


@pytest.mark.usefixtures("spoilt")
def test_a_caller_who_may_name_anybody_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semmem.management.routes.user_for", lambda caller, asked, *_: asked or caller.user or "bob")
    with pytest.raises(AssertionError):
        search("calls", 2000)


@pytest.mark.usefixtures("spoilt")
def test_a_role_that_may_do_everything_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semmem.management.access.Caller.must", lambda _self, _act: None)
    monkeypatch.setattr("semmem.management.routes.user_for", lambda *_: "bob")
    with pytest.raises(AssertionError):
        search("tools", 2000)


@pytest.mark.usefixtures("spoilt")
def test_what_reaches_the_last_resort_of_the_api_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semmem.management.shown.moment_told", lambda _cursor: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        search("cursors", 10)
    monkeypatch.setattr("semmem.management.api.cut", lambda *_, **__: 1 // 0)
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        search("calls", 2000)


def test_a_token_that_is_believed_without_its_signature_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(_self: object) -> dict[str, Any]:
        return {"options": {"verify_signature": False}}

    monkeypatch.setattr("semmem.management.web_tokens.VerifiedWebTokens._asked", asked)
    with pytest.raises(AssertionError, match="is believed to be of bob"):
        search("web_tokens", 5000)


def test_a_line_that_fails_otherwise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semmem.backup.lines._digest", lambda _rest: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        search("import_lines", 200)
