"""A running semmem's preview says what the requests of a session, as they came through Envoy's door, were shown."""

from __future__ import annotations

import json
from collections.abc import Iterator

import grpc
import pytest

from tests.core.envoy.test_service import body, ended, headers, written
from tests.integration.test_two_processes import stream
from tests.support.harness import Json, SemmemProcess, semmem_process

TOLD = "User's budget for the Hawaii trip is $10,000"
QUESTION = "What's my budget for the Hawaii trip?"


@pytest.fixture(scope="module")
def semmem(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SemmemProcess]:
    with semmem_process(tmp_path_factory.mktemp("shown"), {"memory": {"backend": "in_process"}}) as running:
        yield running


async def prompt(semmem: SemmemProcess, user: str, session: str, messages: list[Json]) -> str:
    """The body as the model would see it."""
    request = json.dumps({"model": "m", "messages": messages, "user": f"{user}'s client"}).encode()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{semmem.grpc_port}") as channel:
        call = stream(channel)
        await written(call, headers(x_user_id=user, x_session_id=session))
        await call.read()
        await written(call, body(request))
        answer = await call.read()
        await call.done_writing()
        await ended(call)
    changed: bytes = answer.request_body.response.body_mutation.body
    return "\n".join(message["content"] for message in json.loads(changed or request)["messages"])


def preview(semmem: SemmemProcess, user: str, session: str) -> Json:
    asked = {"user_id": user, "session_id": session, "query": QUESTION}
    return semmem.api("POST", "/v1/memory/preview", json=asked)


async def test_a_preview_has_the_blocks_of_a_sessions_requests_and_changes_none(semmem: SemmemProcess) -> None:
    memory = semmem.remember("alice", TOLD)
    before = preview(semmem, "alice", "s")
    assert (before["shown_before"], before["memories"][0]["in_prompt"]) == ([], False)
    assert TOLD in before["block"]
    said: list[Json] = [{"role": "user", "content": QUESTION}]
    first = await prompt(semmem, "alice", "s", said)
    assert before["block"] in first

    found = preview(semmem, "alice", "s")
    assert found["shown_before"] == [before["block"]]
    assert (found["memories"][0]["in_prompt"], found["block"], found["tokens"]) == (True, "", 0)
    assert preview(semmem, "alice", "another")["shown_before"] == []
    said += [{"role": "assistant", "content": "It is $10,000."}, {"role": "user", "content": QUESTION}]
    following = await prompt(semmem, "alice", "s", said)
    assert following.startswith(first)
    assert following.count(TOLD) == 1

    semmem.api("DELETE", f"/v1/memory/{memory['id']}", params={"user_id": "alice"})
    gone = preview(semmem, "alice", "s")
    assert (gone["shown_before"], gone["memories"], gone["block"]) == ([], [], "")
