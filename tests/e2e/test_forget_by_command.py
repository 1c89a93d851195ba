"""Told through Envoy, forgotten by the command and by a model's tool, with a purge: no answer and no file has it."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from tests.support.copies import ask
from tests.support.disk import files_holding, lone_word
from tests.support.harness import House, StandInModel, eventually, house

QUESTION = "What is my dog called?"


def tell(home: House, user: str, canary: str) -> None:
    """What is learnt, asked for and so in every cache, told by hand, and still waiting to be learnt."""
    home.converse(user, f"{canary}-session", f"My dog is called {canary}said", f"I live in {canary}town")
    home.semmem.end_session(user, f"{canary}-session")
    home.learnt(user)
    home.semmem.api("POST", "/v1/memory", json={"user_id": user, "content": f"User likes {canary}tea", "key": "tea"})
    home.semmem.api("POST", "/v1/memory", json={"user_id": user, "content": f"User likes {canary}milk", "key": "tea"})
    assert f"{canary}said".encode() in home.chat(user, QUESTION, session=f"{canary}-asked").prompt
    home.chat(user, f"I work at {canary}works", session=f"{canary}-waits")


def by_command(home: House, user: str) -> dict[str, Any]:
    done = ask(home.semmem, "forget", "--user", user, "--purge")
    assert (done.code, done.err) == (0, "")
    return done.told


def by_tool(home: House, user: str) -> dict[str, Any]:
    """``semmem mcp`` with a token that is good for this user alone."""
    made = home.semmem.api("POST", "/v1/tokens", json={"role": "user", "user_id": user})
    environment = {"THEIRS": made["token"], "PYTHONPATH": ":".join(sys.path)}
    argv = ["-m", "semmem", "mcp", "--token-env", "THEIRS", "--api", home.semmem.api_url]
    server = StdioServerParameters(command=sys.executable, args=argv, env=environment)

    async def clear() -> dict[str, Any]:
        async with Client(server) as client:
            result = await client.call_tool("memory_clear", {"purge": True})
        assert not result.is_error, result.content
        found: dict[str, Any] = json.loads(result.content[0].text)  # type: ignore[union-attr]
        return found

    return asyncio.run(clear())


@pytest.mark.long(25)
def test_what_was_told_through_envoy_is_in_no_answer_and_no_file_once_it_is_forgotten(
    tmp_path: Path, model: StandInModel
) -> None:
    canaries = [lone_word() for _ in range(3)]
    users = [f"{canary}-user" for canary in canaries]
    with house(tmp_path, model) as home:
        for user, canary in zip(users, canaries, strict=True):
            tell(home, user, canary)
        eventually(lambda: home.semmem.metric("semmem_journal_queue") == 0, within_s=60, what="all is written")
        data, (gone, stays) = home.semmem.data_dir, (canaries[:2], canaries[2])
        assert {canary for _, canary in files_holding(data, canaries)} == set(canaries)
        for receipt in (by_command(home, users[0]), by_tool(home, users[1])):
            counts = receipt["receipt"]
            assert receipt["purged"] is True
            assert counts["turns"] + counts["halves"] >= 4
            assert counts["memories"] >= 2
            assert counts["versions"] >= 1
        assert files_holding(data, gone) == set()
        for user, canary in zip(users[:2], gone, strict=True):
            assert home.semmem.memories(user) == []
            reply = home.chat(user, QUESTION, session="again")
            assert (reply.outcome, canary.encode() in reply.prompt) == ("no_hits", False)
        assert f"{stays}said".encode() in home.chat(users[2], QUESTION, session="again").prompt
        log = home.semmem.child.printed()
    told = [f"{canary}{end}" for canary in gone for end in ("said", "town", "tea", "milk", "works")]
    assert files_holding(data, told) == set()
    assert files_holding(data, [stays])
    assert not [canary for canary in canaries if canary in log]
