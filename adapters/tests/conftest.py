"""A running semmem, Envoy and scripted model: ``python -m tests.adapters`` says in the environment where they are."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

Json = dict[str, Any]


@dataclass(frozen=True)
class World:
    """``envoy``: before which anybody signs in by a demo token; ``gateway``: the Envoy that only a gateway reaches."""

    api: str = os.environ.get("SEMMEM_API", "")
    admin_token: str = os.environ.get("SEMMEM_ADMIN", "")
    envoy: str = os.environ.get("SEMMEM_ENVOY", "")
    gateway: str = os.environ.get("SEMMEM_GATEWAY", "")
    model: str = os.environ.get("SEMMEM_MODEL", "")

    def call(self, method: str, path: str, **asked: Any) -> Json:
        """One call of the API as administrator, which must succeed."""
        headers = {"authorization": f"Bearer {self.admin_token}"}
        answer = httpx.request(method, self.api + path, headers=headers, timeout=30, **asked)
        assert answer.is_success, answer.text
        told: Json = answer.json()
        return told

    def token(self, user: str, role: str = "user") -> str:
        """A token that is bound to one user."""
        return str(self.call("POST", "/v1/tokens", json={"role": role, "user_id": user})["token"])

    def memories(self, user: str) -> list[Json]:
        found: list[Json] = self.call("GET", "/v1/memory", params={"user_id": user, "limit": "1000"})["memories"]
        return found

    def remember(self, user: str, content: str, **more: Any) -> Json:
        return self.call("POST", "/v1/memory", json={"user_id": user, "content": content, **more})

    def learnt(self, user: str, words: str) -> Json:
        """The memory that holds these words, as soon as there is one."""
        return eventually(lambda: next((m for m in self.memories(user) if words in m["content"]), None))

    def say(self, user: str, text: str, session: str) -> str:
        """One chat completion through Envoy; the model's answer."""
        body = {"model": "stand-in", "messages": [{"role": "user", "content": text}]}
        headers = {"authorization": f"Bearer demo-{user}", "x-session-id": session}
        answer = httpx.post(f"{self.envoy}/v1/chat/completions", json=body, headers=headers, timeout=30)
        assert answer.status_code == 200
        return str(answer.json()["choices"][0]["message"]["content"])

    def prompts(self) -> list[str]:
        """The bodies that the model received, oldest first."""
        return [one["body"] for one in httpx.get(self.model + "/requests", timeout=30).json()]


def eventually(check: Callable[[], Any], within_s: float = 30.0) -> Any:
    deadline = time.monotonic() + within_s
    while not (found := check()):
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.1)
    return found


@pytest.fixture(scope="session")
def world() -> World:
    if not World.api:
        pytest.exit("these tests need a running semmem: make adapters-test", returncode=2)
    return World()


@pytest.fixture
def alice() -> str:
    """A user nobody else has."""
    return f"alice-{secrets.token_hex(6)}"


@pytest.fixture
def bob() -> str:
    """Another one."""
    return f"bob-{secrets.token_hex(6)}"
