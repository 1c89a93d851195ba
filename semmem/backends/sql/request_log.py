"""The request log: one row for each request, of two halves that commute, as those of turns do."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import structs
from sqlalchemy import ColumnElement, Row, literal_column, select, union_all

from semmem.backends.sql import locks, marks, tables
from semmem.backends.sql.database import JournalPart, one_read, one_write, quiet_write
from semmem.backends.sql.rows import (
    IDS_MAX,
    Prepared,
    PreparedForMany,
    Transaction,
    later,
    row_scope,
    scope_row,
    slices,
    unreadable,
    upsert_into,
)
from semmem.backends.sql.tables import forgotten, forgotten_memories, request_log
from semmem.ports.request_log import KeptRequest, LoggedAnswer, LoggedRequest, RequestDetails

_LOG = request_log.c
_details, _answer = msgspec.json.Decoder(RequestDetails), msgspec.json.Decoder(LoggedAnswer)
_REQUEST_HALF = ("key", "user_id", *tables.NARROWING, "request_id", "at", "outcome", "body")
_ANSWER_HALF = ("key", "at", "answer")


class SqlRequestLog(JournalPart):
    """RequestLog."""

    @quiet_write
    def log_requests(self, conn: Transaction, halves: Sequence[LoggedRequest | LoggedAnswer]) -> int:
        requests = [half for half in halves if isinstance(half, LoggedRequest)]
        users = sorted({half.scope.user for half in requests})
        locks.users_shared(conn, users)
        erased = _Erased(conn, users)
        rows = [_request_row(half) for half in requests if not erased.is_in(half)]
        locks.alone_with(conn, locks.REQUEST_LOG)
        answers = [_answer_row(half) for half in halves if isinstance(half, LoggedAnswer)]
        for statement, these in ((_REQUESTS, rows), (_ANSWERS, answers)):
            if these:
                statement.run(conn, these)
        return len(requests) - len(rows)

    @one_read
    def logged(self, conn: Transaction, user: str, *, outcome: str | None, limit: int) -> list[KeptRequest]:
        mine = [_LOG.user_id == user, _LOG.body != "", *([] if outcome is None else [_LOG.outcome == outcome])]
        found = select(request_log).where(*mine).order_by(_LOG.at.desc(), _LOG.key).limit(limit)
        return [_kept(row) for row in conn.execute(found)]

    @one_read
    def logged_request(self, conn: Transaction, id: str, user: str | None) -> KeptRequest | None:
        own = [_LOG.body != "", *([] if user is None else [_LOG.user_id == user])]
        found = select(request_log).where(_LOG.request_id == id, *own).order_by(_LOG.at.desc()).limit(1)
        row = conn.execute(found).first()
        return None if row is None else _kept(row)

    @one_write
    def forget_requests(self, conn: Transaction, user: str, memory_ids: Sequence[str]) -> int:
        """Those in whose prompts one of these memories was, or might have been; how many."""
        gone = frozenset(memory_ids)
        if not gone:
            return 0
        locks.user(conn, user)
        mine = select(_LOG.key, _LOG.body).where(_LOG.user_id == user).execution_options(yield_per=IDS_MAX)
        named = [row.key for row in conn.execute(mine) if _names_one(row.body, gone)]
        return sum(conn.remove(request_log, _LOG.key.in_(some)) for some in slices(named))

    @quiet_write
    def prune_requests(self, conn: Transaction, *, before: float, number: int) -> int:
        gone = max(conn.count(request_log, _LOG.at < before), conn.count(request_log) - number, 0)
        oldest = select(_LOG.key).order_by(_LOG.at, _LOG.key).limit(min(gone, self._limits.prune_rows_max))
        return conn.remove(request_log, _LOG.key.in_(oldest))


def forget_logged(conn: Transaction, *which: ColumnElement[bool]) -> int:
    """Those that meet all of this, else everybody's; how many. An answer whose request is gone names nobody."""
    return conn.remove(request_log, _LOG.user_id != "", *which)


class _Erased:
    """What is erased of some users: until when their prompts may have been given memories of a scope, and digests of
    single memories."""

    def __init__(self, conn: Transaction, users: Sequence[str]) -> None:
        self._until, self._memories = dict[str, float](), dict[str, set[str]]()
        named = {marks.digest(user): user for user in users}
        for row in _ERASED.run(conn, list(named)) if named else ():
            user = named[row.user_digest]
            if row.memory:
                self._memories.setdefault(user, set()).add(row.memory)
            else:
                self._until[user] = max(row.until, self._until.get(user, row.until))

    def is_in(self, half: LoggedRequest) -> bool:
        """No prompt is given a memory after it was erased: the time is not compared."""
        user, gone = half.scope.user, self._memories.get(half.scope.user)
        if gone and not gone.isdisjoint(map(marks.digest, _named(half))):
            return True
        return half.at <= self._until.get(user, -math.inf)


def _both(digests: Iterable[Any]) -> Any:
    scopes, single = forgotten.c, forgotten_memories.c
    hidden = later(scopes.forgotten_at, scopes.hidden_at).label("until")
    of_scopes = select(scopes.user_digest, literal_column("''").label("memory"), hidden)
    of_single = select(single.user_digest, single.memory_digest, single.forgotten_at)
    return union_all(of_scopes.where(scopes.user_digest.in_(digests)), of_single.where(single.user_digest.in_(digests)))


def _half(dialect: str, columns: Sequence[str], own: Sequence[str]) -> Any:
    """The half's own columns; what the other one says stays."""
    statement = upsert_into(dialect, request_log)
    return statement.on_conflict_do_update(
        index_elements=[_LOG.key], set_={name: statement.excluded[name] for name in own}
    )


_ERASED = PreparedForMany(_both)
_REQUESTS = Prepared(lambda dialect: _half(dialect, _REQUEST_HALF, _REQUEST_HALF[1:]), _REQUEST_HALF)
_ANSWERS = Prepared(lambda dialect: _half(dialect, _ANSWER_HALF, ("answer",)), _ANSWER_HALF)


def _request_row(half: LoggedRequest) -> dict[str, Any]:
    told = {"key": half.key, "request_id": half.id, "at": half.at, "outcome": half.outcome}
    details = RequestDetails(**{name: getattr(half, name) for name in RequestDetails.__struct_fields__})
    return scope_row(half.scope) | told | {"body": msgspec.json.encode(details).decode()}


def _answer_row(half: LoggedAnswer) -> dict[str, Any]:
    """Until its request is here, it is as old as itself."""
    return {"key": half.key, "at": half.at, "answer": msgspec.json.encode(half).decode()}


def _names_one(body: str, memory_ids: frozenset[str]) -> bool:
    """What cannot be read must not stay for that."""
    try:
        details = _details.decode(body)
    except msgspec.MsgspecError:
        return True
    return not memory_ids.isdisjoint(_named(details))


def _named(details: RequestDetails) -> tuple[str, ...]:
    """The memories that were in its prompt, or might have been."""
    return (*details.shown, *(each[0] for each in details.left))


def _kept(row: Row[Any]) -> KeptRequest:
    with unreadable("a request"):
        details, answer = _details.decode(row.body), _answer.decode(row.answer) if row.answer else None
    told = {"key": row.key, "id": row.request_id, "scope": row_scope(row), "at": row.at, "outcome": row.outcome}
    return KeptRequest(LoggedRequest(**told, **structs.asdict(details)), answer)
