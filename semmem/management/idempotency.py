"""Calls that are made once, however often they are sent: under an ``Idempotency-Key``, as the IETF's draft has it.

The same key, caller and request get the same answer, on any replica; the key with another request is refused, and so is
one whose first call is still under way. Only success is kept: a call that failed may be sent again under its key. What
is known of a call are digests, made with the client's own key, and its answer, which goes when something of the user is
erased that it shows; that the call was done stays known, so that what was erased is not written again by a retry.
"""

import contextlib
import json
import re
from collections.abc import Awaitable, Callable, Collection
from dataclasses import KW_ONLY, dataclass, field
from hashlib import blake2b
from typing import Any, Protocol

from starlette.types import Message, Send

from semmem.management.access import Caller
from semmem.management.problems import Denied
from semmem.ports.accounts import CallAnswer, KnownCall
from semmem.ports.errors import JournalError
from semmem.request.head import RequestHead
from semmem.text.digest import digest

HEADER = "idempotency-key"
METHODS = frozenset({"POST", "PATCH"})
"""Those that do something again when they are sent again."""
TOOLS = "/mcp"
"""The door to tools, each of which is a call by itself."""
READING = frozenset({"/v1/memory/search", "/v1/memory/preview", TOOLS})
"""Calls that change nothing, though they have a body."""
OF_NO_USER = frozenset({"/v1/import", "/v1/memory/reindex"})
"""Calls that name no user, whose answers hold numbers and names of collections alone."""

COUNTS = frozenset(
    "candidates deleted dropped dry_run purge_seconds purged receipt released restored revoked success superseded"
    " tokens_saved turns imported updated unchanged erased versions".split()
)
"""Members of answers that are numbers, truth values, or objects of such: nothing that anybody said."""

_KEY = re.compile(r"[!-~]{1,255}")


class CallRecords(Protocol):
    """Keys are digests. All raise JournalError."""

    async def begin_call(
        self, key: str, request: str, *, now: float, lease_s: float, keep_s: float, calls_max: int
    ) -> KnownCall | None:
        """None: the call is the caller's, who has to end it, for ``lease_s`` or as long as the process lives; else what
        is known of it. A call of a process that is gone is given to whoever asks next with the same request. What is
        older than ``keep_s`` is gone; of more than about ``calls_max`` the oldest go."""

    async def end_call(self, key: str, answer: CallAnswer, users: Collection[str]) -> None:
        """It is answered. The body goes when something of one of these users is erased, and is not kept when something
        of anybody was erased while the call was under way."""

    async def drop_call(self, key: str) -> None:
        """Nothing was done: the key may be used again."""


class Heard:
    """A ``send`` that remembers the status and, up to ``bytes_max``, the body. Nothing goes out until ``release``, but
    for a body that is longer, or is no JSON: that may be a stream which somebody waits for."""

    def __init__(self, send: Send, *, bytes_max: int) -> None:
        self._send = send
        self._bytes_max = bytes_max
        self._waiting: list[Message] | None = []
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
            if self._fits:
                self._body += message.get("body", b"")
            self.is_whole = not message.get("more_body", False)
            if len(self._body) > self._bytes_max:
                self._fits = False
                self._body.clear()
        if self._waiting is None:
            await self._send(message)
            return
        self._waiting.append(message)
        if not self._fits:
            await self.release()

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


@dataclass(frozen=True, slots=True)
class IdempotencyRules:
    """``keep_s``: how long a call is known. ``lease_s``: how long a call may take; a process that dies with a call lets
    go of it as soon as others notice. ``calls_max``: known at a time. ``answer_bytes_max``: of a longer answer it is
    only known that it was given."""

    keep_s: float = 3600.0
    lease_s: float = 900.0
    calls_max: int = 100_000
    answer_bytes_max: int = 64 * 1024


@dataclass(frozen=True, slots=True)
class Call:
    """A call whose caller is known and whose body is read. ``users``: whom it turns out to touch, while it runs."""

    caller: Caller
    head: RequestHead
    query: bytes
    body: bytes
    users: set[str] = field(init=False, default_factory=set)


Run = Callable[[Send], Awaitable[None]]


@dataclass(eq=False)
class Idempotency:
    """``clock`` in seconds since the epoch, the same on every replica."""

    records: CallRecords
    rules: IdempotencyRules
    _: KW_ONLY
    clock: Callable[[], float]

    async def call(self, call: Call, run: Run, send: Send) -> None:
        """Run it, or answer as it was answered. Raises Denied."""
        given, rules = key_of(call.head), self.rules
        if given is None:
            await run(send)
            return
        key, request = digest("idempotency key", call.caller.name, given), _request(given, call)
        try:
            known = await self.records.begin_call(
                key, request, now=self.clock(), lease_s=rules.lease_s, keep_s=rules.keep_s, calls_max=rules.calls_max
            )
        except JournalError:
            reason = "calls under a key cannot be looked up now; nothing was done, try again later"
            raise Denied("IDEMPOTENCY_NOT_AVAILABLE", reason) from None
        if known is None:
            await self._run(key, call, run, send)
        else:
            await _replay(known, request, send)

    async def _run(self, key: str, call: Call, run: Run, send: Send) -> None:
        heard = Heard(send, bytes_max=self.rules.answer_bytes_max)
        try:
            await run(heard)
        except Exception:
            await self._end(key, None, ())
            raise
        answer = None
        if 200 <= heard.status < 300:
            keeps = len(call.users) == 1 or (not call.users and path_of(call.head) in OF_NO_USER)
            counts = counts_of(heard.told)
            answer = CallAnswer(heard.status, heard.body if keeps else None, json.dumps(counts) if counts else "")
        await self._end(key, answer, call.users)
        await heard.release()

    async def _end(self, key: str, answer: CallAnswer | None, users: Collection[str]) -> None:
        """What cannot be noted stays under way: a retry is told so, until the lease is over."""
        with contextlib.suppress(JournalError):
            if answer is None:
                await self.records.drop_call(key)
            else:
                await self.records.end_call(key, answer, users)


def key_of(head: RequestHead) -> str | None:
    """The key of a call that changes something; None where there is none. Raises Denied."""
    given = head.headers.get(HEADER)
    if given is None or head.method not in METHODS or path_of(head) in READING:
        return None
    if len(given) != 1 or not _KEY.fullmatch(given[0].strip()):
        raise Denied("INVALID_IDEMPOTENCY_KEY", "Idempotency-Key: one value of 1 to 255 visible ASCII characters")
    return given[0].strip()


async def _replay(known: KnownCall, request: str, send: Send) -> None:
    if known.request != request:
        raise Denied("IDEMPOTENCY_KEY_REUSED", "this key was used for another request")
    answer = known.answer
    if answer is None:
        raise Denied("IDEMPOTENCY_IN_PROGRESS", "the first call with this key is under way; try again in a few seconds")
    body = answer.body if answer.body is not None else answer.counts.encode()
    if not body:
        reason = f"the call with this key was done, with status {answer.status}; its answer is not kept"
        raise Denied("IDEMPOTENCY_ANSWER_GONE", reason)
    said, length = b"true" if answer.body is not None else b"counts", str(len(body)).encode()
    headers = [(b"content-type", b"application/json"), (b"idempotency-replayed", said), (b"content-length", length)]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def path_of(head: RequestHead) -> str:
    """Without the query, its escapes as they came."""
    return head.path.partition("?")[0]


def _request(key: str, call: Call) -> str:
    """Made with the client's key, so that nobody who reads it can try out what was said."""
    state = blake2b(key=blake2b(key.encode()).digest(), digest_size=16)
    head = call.head
    for part in (head.method.encode(), head.path.encode("latin-1", "replace"), call.query, call.body):
        state.update(len(part).to_bytes(8, "big") + part)
    return state.hexdigest()
