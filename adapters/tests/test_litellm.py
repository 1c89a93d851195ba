"""LiteLLM before Envoy with semmem, run as its README says: the proxy with keys of its own, and the SDK in a server."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import World, eventually

EXAMPLE = Path(__file__).parents[2] / "examples" / "litellm"
HEADER = "x-litellm-user"
START_S = 150.0


def environment(world: World, **more: str) -> dict[str, str]:
    """Of a gateway that only the Envoy behind it hears. It asks nobody on the net what models cost."""
    own = {"SEMMEM_ENVOY": f"{world.gateway}/v1", "MODEL_KEY": "sk-model", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    return {**os.environ, **own, **more}


@pytest.fixture(scope="module")
def keys() -> dict[str, str]:
    """The user of each key."""
    return {f"key-{secrets.token_hex(8)}": f"{name}-{secrets.token_hex(6)}" for name in ("erin", "frank")}


@pytest.fixture(scope="module")
def proxy(world: World, keys: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("litellm")
    shutil.copy(EXAMPLE / "semmem_user.py", folder)
    config = (EXAMPLE / "config.yaml").read_text()
    assert "your-model" in config
    (folder / "config.yaml").write_text(config.replace("your-model", "stand-in"))
    (folder / "keys.json").write_text(json.dumps(keys))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    argv = [str(Path(sys.executable).with_name("litellm")), "--config", "config.yaml"]
    environ = environment(world, KEYS_FILE=str(folder / "keys.json"), LITELLM_MASTER_KEY="sk-" + secrets.token_hex(24))
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(
            [*argv, "--host", "127.0.0.1", "--port", str(port)], cwd=folder, env=environ, stdout=log, stderr=log
        )
    try:
        url = f"http://127.0.0.1:{port}"
        eventually(lambda: running.poll() is not None or _is_live(url), within_s=START_S)
        assert running.poll() is None, (folder / "log").read_text()[-3000:]
        yield url
    finally:
        running.terminate()
        running.wait(20)


def _is_live(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/liveliness", timeout=2).is_success
    except httpx.TransportError:
        return False


def ask(url: str, key: str, text: str, session: str, forged: Mapping[str, str] | None = None, **body: Any) -> str:
    told = httpx.post(
        f"{url}/v1/chat/completions",
        json={"model": "with-memory", "messages": [{"role": "user", "content": text}], **body},
        headers={"authorization": f"Bearer {key}", "x-session-id": session, **(forged or {})},
        timeout=60,
    )
    assert told.status_code == 200, told.text
    if not body.get("stream"):
        return str(told.json()["choices"][0]["message"]["content"])
    parts = [json.loads(line[6:]) for line in told.text.splitlines() if line.startswith("data: {")]
    return "".join(part["choices"][0]["delta"].get("content") or "" for part in parts if part["choices"])


def test_each_user_of_the_proxys_keys_has_a_memory_of_their_own(
    world: World, proxy: str, keys: Mapping[str, str]
) -> None:
    (erin, erins), (frank, _) = [(key, user) for key, user in keys.items()]
    ask(proxy, erin, "My parrot is called Rio.", "q1")
    assert world.learnt(erins, "Rio")["session_id"] == "q1"

    question = "What is my parrot called?"
    assert "Rio" in ask(proxy, erin, question, "q2")
    assert "Rio" in ask(proxy, erin, question, "q3", stream=True)
    assert "Rio" not in ask(proxy, frank, question, "q4")
    forged = {HEADER: erins}
    for body in (
        {"extra_headers": forged},
        {"headers": forged},
        {"user": erins},
        {"extra_body": {"extra_headers": forged}},
    ):
        assert "Rio" not in ask(proxy, frank, question, "q5", forged, **body), body
    nobody = httpx.post(
        f"{proxy}/v1/chat/completions", json={"model": "with-memory"}, headers={"authorization": "Bearer x"}, timeout=60
    )
    assert nobody.status_code == 401


def test_a_server_with_litellms_sdk_says_whom_it_has_signed_in(world: World, alice: str, bob: str) -> None:
    def say(user: str, text: str, *options: str) -> str:
        argv = [sys.executable, str(EXAMPLE / "sdk.py"), text, "--user", user, "--session", "s", "--model", "stand-in"]
        done = subprocess.run(
            [*argv, *options], env=environment(world), capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    say(alice, "My bicycle is green.")
    world.learnt(alice, "bicycle")
    assert "bicycle is green" in say(alice, "What colour is my bicycle?", "--stream")
    assert "green" not in say(bob, "What colour is my bicycle?")


def test_the_header_of_the_gateway_says_nothing_to_an_envoy_that_clients_reach(world: World, alice: str) -> None:
    world.remember(alice, "User's bicycle is green")
    answer = httpx.post(
        f"{world.envoy}/v1/chat/completions",
        json={"model": "stand-in", "messages": [{"role": "user", "content": "What colour is my bicycle?"}]},
        headers={HEADER: alice, "authorization": "Bearer sk-anything"},
        timeout=30,
    )
    assert answer.status_code == 200
    assert "green" not in answer.text
