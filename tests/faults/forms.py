"""The forms of a request: which API it speaks, and whether the answer is JSON or SSE."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

QUESTION = "What's my budget for the trip?"
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}


@dataclass(frozen=True, slots=True)
class Form:
    """``api`` is a key of PATHS."""

    api: str = "chat"
    sse: bool = False

    @property
    def path(self) -> str:
        return PATHS[self.api]

    def question(self, text: str = QUESTION, **members: Any) -> bytes:
        """A request's body in the words of this API."""
        said = [{"role": "user", "content": text}]
        needed: dict[str, dict[str, Any]] = {
            "chat": {"model": "any", "messages": said},
            "responses": {"model": "any", "input": said},
            "messages": {"model": "any", "max_tokens": 500, "messages": said},
        }
        return json.dumps({**needed[self.api], **members}).encode()

    def __str__(self) -> str:
        return f"{self.api:9} {'SSE ' if self.sse else 'JSON'}"


JSON, SSE = Form(sse=False), Form(sse=True)
KINDS = (JSON, SSE)
"""Chat completions, both ways."""
EVERY_FORM = tuple(Form(api, sse) for api in PATHS for sse in (False, True))

_INJECTED = re.compile(rb'(?<=")<semmem-memory [0-9a-f]{16}>(?:[^"\\<]|\\.)*</semmem-memory>\\n\\n')


def without_injection(body: bytes) -> bytes:
    """The body without what semmem put in front of the user's words."""
    return _INJECTED.sub(b"", body, count=1)
