"""Routes that forget: one memory, a scope of one user, or everybody."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import FastAPI, Query, Request

from semmem.lifecycle.erasure import Receipt
from semmem.lifecycle.everybody import ErasureOfAll
from semmem.management.access import CALLER, Act
from semmem.management.fields import MemoryId, ProjectId, SessionId, Types, UserId, missing
from semmem.management.memories import Memories
from semmem.management.problems import OF_ERASURE, Denied
from semmem.management.routes import may, refuses
from semmem.management.shown import DeletedShown
from semmem.memory import PASSAGES, Scope
from semmem.ports.store import Purgeable


@dataclass(frozen=True, slots=True)
class Purged:
    """``purged`` is False when some removed rows stay until a server compacts. ``seconds``: how long it took."""

    purged: bool
    seconds: float


class Purging:
    """Purges ``parts``, one purge at a time. Those who ask while one runs share the next."""

    def __init__(self, parts: Sequence[Purgeable], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._parts = parts
        self._clock = clock
        self._turn = asyncio.Lock()
        self._begun = 0
        self._last: tuple[int, bool] = (0, False)

    async def run(self) -> Purged:
        """Everything removed before this call has left the files when it returns.

        Raises the first error of a part (StoreError, JournalError) when all have been tried: nothing is promised then.
        """
        asked, before = self._clock(), self._begun
        async with self._turn:
            number, purged = self._last
            if number <= before:  # no purge that began after this call has ended
                purged = await self._purge()
        return Purged(purged, self._clock() - asked)

    async def _purge(self) -> bool:
        self._begun += 1
        number = self._begun
        results = await asyncio.gather(*(part.purge() for part in self._parts), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        purged = all(results)
        self._last = (number, purged)
        return purged


DAY_S = 86_400.0

OlderThan = Annotated[float | None, Query(ge=0, le=36_500, description="only what was said so many days ago")]
Purge = Annotated[bool, Query(description="rewrite the embedded store's files too")]
Everybody = Annotated[
    bool, Query(alias="all", description="everybody's: an administrator's word, in the place of a user")
]

OF_ONE: Final = frozenset({"user_id", "project_id", "purge"})
OF_SCOPE: Final = OF_ONE | {"session_id", "type", "older_than_days", "all"}
"""What the query of each of the two calls may say."""
NAME_CHARS_MAX = 60


def add_erasing_routes(api: FastAPI, memories: Memories, purging: Purging | None, of_all: ErasureOfAll | None) -> None:
    """As ``create_api`` says of them."""

    @api.delete("/v1/memory", **refuses(*OF_ERASURE))
    async def delete_memories(
        request: Request,
        user_id: UserId = None,
        project_id: ProjectId = None,
        session_id: SessionId = None,
        types: Types = None,
        older_than_days: OlderThan = None,
        everybody: Everybody = False,
        purge: Purge = False,
    ) -> DeletedShown:
        """A scope of one user, or of everybody; without a filter on types or age also what was said and waits."""
        older_than_s = None if older_than_days is None else older_than_days * DAY_S
        if set(types or ()) & set(PASSAGES):
            raise Denied("INVALID_REQUEST", "query.type: passages go with the memories of their scope, or by id")
        if everybody:
            request.scope[CALLER].must(Act.ADMINISTER)
            _narrows_as_meant(request, OF_SCOPE)
            if session_id is not None:
                raise Denied("INVALID_REQUEST", "query.session_id: is of one user, and not beside all")
            if user_id or of_all is None:
                raise Denied("INVALID_REQUEST", "query.all: is for everybody, and not beside a user")
            gone = await of_all.forget(project=project_id, types=types or [], older_than_s=older_than_s)
            return {**await _deleted(gone.receipt, purge, purging), "users": gone.users}
        scope = Scope(may(request, user_id, Act.WRITE), project=project_id, session=session_id)
        _narrows_as_meant(request, OF_SCOPE)
        receipt = await memories.forget_scope(scope, types or [], older_than_s=older_than_s)
        return await _deleted(receipt, purge, purging)

    @api.delete("/v1/memory/{memory_id}", **refuses(*OF_ERASURE))
    async def delete_memory(
        request: Request,
        memory_id: MemoryId,
        user_id: UserId = None,
        project_id: ProjectId = None,
        purge: Purge = False,
    ) -> DeletedShown:
        """With its versions and statistics."""
        scope = Scope(may(request, user_id, Act.WRITE), project=project_id)
        _narrows_as_meant(request, OF_ONE)
        receipt = await memories.forget(scope, memory_id)
        if receipt is None and not purge:  # with it: perhaps only the purge is left of an earlier call
            raise missing(memory_id)
        return await _deleted(receipt or Receipt(), purge, purging)


def _narrows_as_meant(request: Request, known: frozenset[str]) -> None:
    """What is not understood may have been meant to narrow the call: it must not forget more instead. Raises Denied."""
    for name in request.query_params:
        if name not in known:
            raise Denied("INVALID_REQUEST", f"query.{name[:NAME_CHARS_MAX]}: is nothing that this call knows")
    if request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers:
        raise Denied("INVALID_REQUEST", "body: this call takes none; what narrows it stands in the query")


async def _deleted(receipt: Receipt, purge: bool, purging: Purging | None) -> DeletedShown:
    """Raises SemmemError when the files could not be purged: never 200 for that."""
    number = receipt.memories
    message = "1 memory deleted" if number == 1 else f"{number} memories deleted"
    told: DeletedShown = {"success": True, "message": message, "deleted": number, "receipt": receipt}
    if purge:
        done = Purged(True, 0.0) if purging is None else await purging.run()
        told["purged"], told["purge_seconds"] = done.purged, round(done.seconds, 3)
    return told
