"""An answer on its way out: what it says is known here, and where asked it waits until somebody lets it go."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]

COUNTS = frozenset(
    "candidates deleted dropped dry_run purge_seconds purged receipt released restored revoked success superseded"
    " tokens_saved turns imported updated unchanged erased versions".split()
)
"""Members of answers that are numbers, truth values, or objects of such: nothing that anybody said."""


class Heard:
    """A ``send`` that remembers the status and, up to ``bytes_max``, the body. ``held``: nothing goes out until
    ``release``, but for a body that is longer, or is no JSON: that may be a stream which somebody waits for."""

    def __init__(self, send: Send, *, bytes_max: int, held: bool = False) -> None:
        self._send = send
        self._bytes_max = bytes_max
        self._waiting: list[Message] | None = [] if held else None
        self._body = bytearray()
        self._is_json = False
        self._fits = True
        self.is_replayed = False
        self.status = 0
        self.is_whole = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = int(message["status"])
            headers = dict(message.get("headers", ()))
            self._is_json = self._fits = headers.get(b"content-type") == b"application/json"
            self.is_replayed = b"idempotency-replayed" in headers
        elif message["type"] == "http.response.body":
            self._hear(message)
        if self._waiting is None:
            await self._send(message)
            return
        self._waiting.append(message)
        if not self._fits:
            await self.release()

    def _hear(self, message: Message) -> None:
        if self._fits:
            self._body += message.get("body", b"")
        self.is_whole = not message.get("more_body", False)
        if len(self._body) > self._bytes_max:
            self._fits = False
            self._body.clear()

    async def release(self) -> None:
        """Let go what waits, and what comes. Idempotent."""
        waiting, self._waiting = self._waiting, None
        for message in waiting or ():
            await self._send(message)

    @property
    def body(self) -> bytes | None:
        """The JSON that was answered, if it was that, and short enough."""
        return bytes(self._body) if self._is_json and self._fits and self.is_whole else None

    @property
    def told(self) -> dict[str, Any]:
        """The same as an object; empty for anything else."""
        try:
            found = json.loads(self.body or b"")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


def counts_of(told: dict[str, Any]) -> dict[str, Any]:
    """What of an answer holds nothing that anybody said."""
    return {name: value for name, value in told.items() if name in COUNTS and _counts(value)}


def _counts(value: Any) -> bool:
    members = value.values() if isinstance(value, dict) else (value,)
    return all(isinstance(each, int | float) for each in members)
