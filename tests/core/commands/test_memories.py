"""``semmem list`` and ``semmem memories``, which is the same, against an API over real HTTP, by name and by API key."""

from __future__ import annotations

from pathlib import Path

import pytest

from semmem.cli import main
from semmem.commands.memories import lines
from semmem.memory import Controls
from semmem.request.head import RequestHead
from semmem.request.identity import IdentityRules, identify
from tests.core.commands.test_previewing import TOKEN, running

SECRET = "a-secret-of-16-characters-or-more"
BY_KEY = ["memories", "--api-key-env", "MY_API_KEY", "--api", "http://127.0.0.1:9"]


@pytest.fixture(autouse=True)
def with_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMMEM_LISTENERS__API__ADMIN_TOKEN", TOKEN)


@pytest.fixture
def with_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMMEM_IDENTITY__API_KEY__ENABLED", "true")
    monkeypatch.setenv("SEMMEM_IDENTITY__API_KEY__HMAC_SECRET", SECRET)


def shown(content: str) -> list[str]:
    memory = {"id": "mem_1", "updated_at": "2026-11-22T10:00:00.000Z", "type": "semantic", "status": "active"}
    return list(lines("alice", {"memories": [memory | {"content": content}], "total": 7}))


def test_it_shows_what_is_stored_for_a_user(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running(tmp_path) as url:
        assert main(["memories", "--user", "alice", "--api", url]) == 0
    first, memory, last = capsys.readouterr().out.splitlines()
    assert first == "user: alice"
    assert memory.startswith("mem_")
    assert memory.endswith("  2001-09-09  semantic    active       User likes green tea")
    assert last == "1 of 1 memories"


def test_a_user_without_memories_has_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running(tmp_path) as url:
        assert main(["memories", "--user", "bob", "--api", url]) == 0
    assert capsys.readouterr().out == "user: bob\n0 of 0 memories\n"


@pytest.mark.usefixtures("with_keys")
@pytest.mark.parametrize("header", [("authorization", "Bearer sk-test-1234"), ("x-api-key", "sk-test-1234")])
def test_an_api_key_leads_to_the_user_that_its_requests_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, header: tuple[str, str]
) -> None:
    monkeypatch.setenv("MY_API_KEY", " sk-test-1234\n")
    with running(tmp_path) as url:
        assert main(["memories", "--api-key-env", "MY_API_KEY", "--api", url]) == 0
    head = RequestHead("POST", "/v1/chat/completions", {header[0]: (header[1],)})
    scope = identify(IdentityRules(api_key_secret=SECRET.encode()), head, Controls())
    assert scope is not None
    assert capsys.readouterr().out.splitlines()[0] == f"user: {scope.user}"


@pytest.mark.usefixtures("with_keys")
def test_a_variable_without_a_key_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_API_KEY", raising=False)
    assert main(BY_KEY) == 2
    assert "the environment variable MY_API_KEY holds no API key" in capsys.readouterr().err


def test_keys_are_no_users_unless_the_configuration_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-test-1234")
    assert main(BY_KEY) == 2
    assert "identity.api_key.enabled is false" in capsys.readouterr().err


def test_a_user_and_a_key_together_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*BY_KEY, "--user", "alice"]) == 2
    assert "not allowed with argument" in capsys.readouterr().err


def test_a_wrong_token_is_shown_as_the_refusal_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_LISTENERS__API__ADMIN_TOKEN", "another-token-of-16-characters")
    with running(tmp_path) as url:
        assert main(["memories", "--user", "alice", "--api", url]) == 4
    assert "401" in capsys.readouterr().err


def test_a_semmem_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memories", "--user", "alice", "--api", "http://127.0.0.1:9"]) == 3
    assert "http://127.0.0.1:9/v1/memory: nothing listens there" in capsys.readouterr().err


def test_a_memory_is_one_line_of_printable_letters() -> None:
    assert shown("tea\nand \x1b[31mmilk")[1] == "mem_1  2026-11-22  semantic    active       tea and  [31mmilk"


def test_it_says_when_there_are_more_than_it_shows() -> None:
    assert shown("tea")[-1] == "1 of 7 memories"
