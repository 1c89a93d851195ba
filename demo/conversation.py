"""One conversation with the model through Envoy, shown on the terminal as it happens."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import Any

from demo.envoy import DEMO_TOKEN_PREFIX
from demo.processes import Failed
from demo.stack import Stack


@dataclass(frozen=True, slots=True)
class Reply:
    """One exchange. ``prompt`` None: the model does not show what it received."""

    session: str
    outcome: str | None
    content_type: str
    events: int
    sent: list[dict[str, Any]]
    prompt: list[dict[str, Any]] | None

    @property
    def streamed(self) -> bool:
        return self.content_type.startswith("text/event-stream") and self.events > 1

    @property
    def added(self) -> list[dict[str, Any]]:
        """Messages the model received and the client did not send."""
        return [message for message in self.prompt or [] if message not in self.sent]


def say(stack: Stack, model: str, user: str, text: str) -> Reply:
    """One conversation of one message, streamed to the terminal. Its session is new, as in a new chat window."""
    session = f"demo-{secrets.token_hex(6)}"
    sent = [{"role": "user", "content": text}]
    headers = {"authorization": f"Bearer {DEMO_TOKEN_PREFIX}{user}", "x-session-id": session}
    body = {"model": model, "stream": True, "messages": sent}
    url = f"{stack.url}/v1/chat/completions"
    print(f"    {user}: {text}\n    model: ", end="", flush=True)
    events = 0
    with stack.http.stream("POST", url, json=body, headers=headers, timeout=120.0) as response:
        if response.status_code != 200:
            response.read()
            raise Failed(f"the model answered {response.status_code}: {response.text[:300]}", stack.envoy_log)
        for line in response.iter_lines():
            if line.startswith("data:"):
                events += 1
                print(_delta(line.removeprefix("data:").strip()), end="", flush=True)
    print(flush=True)
    prompt = stack.last_prompt()
    for message in prompt or []:
        print(f"    the model received  {message.get('role')}: {_indented(str(message.get('content')))}")
    outcome = response.headers.get("x-semmem-outcome")
    return Reply(session, outcome, response.headers.get("content-type", ""), events, sent, prompt)


def _delta(data: str) -> str:
    try:
        return str(json.loads(data)["choices"][0]["delta"].get("content") or "")
    except (ValueError, LookupError, TypeError, AttributeError):
        return ""


def _indented(text: str) -> str:
    return text.replace("\n", "\n        ")
