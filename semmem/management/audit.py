"""Who did what through the API, when, to whose memories, and how it ended: one JSON line for each call that changes
something, and for each that shows somebody else's memories. Never what was said: of users keyed digests, of answers
numbers and codes alone.

The line is written before the answer goes out. Where it cannot be written the call is answered all the same; that is
counted and logged.
"""

import asyncio
import json
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from starlette.types import Send
from typing_extensions import TypedDict

from semmem.background import Outage
from semmem.management.access import Act
from semmem.management.idempotency import READING, TOOLS, Call, Heard, Run, counts_of, path_of
from semmem.management.problems import Denied
from semmem.management.routes import UserId, needs
from semmem.ports.events import Announce, ApiAudited, nobody_listens


def in_order(append: Callable[[str], None]) -> Callable[[str], Awaitable[None]]:
    """Calls ``append`` in a thread of its own, once at a time; the line is out when it returns. Raises OSError."""
    thread = ThreadPoolExecutor(1, "semmem-audit")

    async def write(line: str) -> None:
        await asyncio.get_running_loop().run_in_executor(thread, append, line)

    return write


@dataclass(eq=False)
class AuditFile:
    """Appends lines to ``path``, which becomes ``path.1`` before it has more than ``bytes_max``; of ``files_max`` files
    in all the oldest goes. It is opened for each line, so that others may turn it over as well. For its owner alone."""

    path: Path
    _: KW_ONLY
    bytes_max: int
    files_max: int

    def __call__(self, line: str) -> None:
        data = line.encode() + b"\n"
        if self._size() + len(data) > self.bytes_max:
            self._turn_over()
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)

    def _size(self) -> int:
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def _turn_over(self) -> None:
        names = [self.path, *(self.path.with_name(f"{self.path.name}.{number}") for number in range(1, self.files_max))]
        for earlier, later in reversed([*pairwise(names)]):
            if earlier.exists():
                os.replace(earlier, later)
        self.path.unlink(missing_ok=True)  # the only file


def to_stdout(line: str) -> None:
    """One line on standard output, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


log = logging.getLogger(__name__)

SHOWS_EVERYBODY = frozenset({"/v1/export", "/v1/users", "/v1/memories"})
USERS_MAX = 20
"""Names of users in a line."""
TOLD_BYTES_MAX = 64 * 1024
"""Of a longer answer no numbers are told."""


@dataclass(eq=False)
class Audit:
    """``write`` appends a line, and raises OSError; ``name`` gives the keyed digest of a user. ``reading``: also calls
    that show memories of somebody whom the caller is not bound to. ``clock`` in seconds since the epoch."""

    write: Callable[[str], Awaitable[None]]
    name: Callable[[str], str]
    _: KW_ONLY
    clock: Callable[[], float]
    reading: bool = True
    announce: Announce = nobody_listens
    _outage: Outage = field(init=False, default_factory=lambda: Outage(log, "write the audit log"))

    async def call(self, call: Call, scope: Mapping[str, Any], run: Run, send: Send) -> None:
        """Run it, and write its line if it has one. Raises what ``run`` raises."""
        if path_of(call.head) == TOOLS:
            await run(send)
            return
        heard = Heard(send, bytes_max=TOLD_BYTES_MAX)
        status, code = 500, "INTERNAL"
        try:
            await run(heard)
            status, code = heard.status, str(heard.told.get("code", "REFUSED"))
        except Denied as denied:
            status, code = denied.status, denied.code
            raise
        finally:
            if self._wants(call):
                await self._note(self._line(call, scope, status, code, heard))
            await heard.release()

    def _wants(self, call: Call) -> bool:
        path = path_of(call.head)
        if call.head.method not in ("GET", "HEAD", "OPTIONS") and path not in READING:
            return True
        return self.reading and call.caller.user is None and (bool(call.users) or path in SHOWS_EVERYBODY)

    def _line(self, call: Call, scope: Mapping[str, Any], status: int, code: str, heard: Heard) -> str:
        caller = call.caller
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(self.clock(), UTC).isoformat(timespec="milliseconds"),
            "role": str(caller.role),
            "token_id": caller.token_id or None,
            "caller": None if caller.user is None else self.name(caller.user),
            "act": f"{call.head.method} {getattr(scope.get('route'), 'path', 'none')}",
            "users": [self.name(user) for user in sorted(call.users)[:USERS_MAX]],
            "status": status,
            "outcome": code if status >= 400 else "replayed" if heard.is_replayed else "done",
            "counts": counts_of(heard.told),
        }
        return json.dumps(told, separators=(",", ":"))

    async def _note(self, line: str) -> None:
        try:
            await self.write(line)
        except OSError as error:
            self._outage.failed(error.strerror)
            self.announce(ApiAudited("failed"))
        else:
            self._outage.worked()
            self.announce(ApiAudited("written"))


class AuditName(TypedDict):
    """``name``: what stands in the log for the user."""

    user_id: str
    name: str


def audit_routes(audit: Audit | None) -> APIRouter:
    """``audit`` None: there is no log."""
    routes = APIRouter()

    @routes.get("/v1/audit/name", **needs(Act.ADMINISTER, "MISSING_USER_ID", "NOT_FOUND"))
    async def get_audit_name(user_id: UserId = None) -> AuditName:
        """What a user is called in the audit log."""
        if not user_id:
            raise Denied("MISSING_USER_ID", "name the user who is looked for")
        if audit is None:
            raise Denied("NOT_FOUND", "no audit log is written (listeners.api.audit.to)")
        return {"user_id": user_id, "name": audit.name(user_id)}

    return routes
