"""Statistics of use: single requests, and what they come to by hour and by day, in one transaction."""

import secrets
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from msgspec import structs
from sqlalchemy import ColumnElement, Table, and_, func, insert, select

from semmem.backends.sql import locks, tables
from semmem.backends.sql.database import JournalPart, one_read, quiet_write
from semmem.backends.sql.rows import Transaction
from semmem.backends.sql.tables import USAGE_SUMS, forgotten, usage_days, usage_hours, usage_requests, usage_sessions
from semmem.ports.usage import DAY_S, HOUR_S, SUCCEEDED, Span, UsageRow, UsageSum, name_of_digest

KEY_BYTES = 32
TIMES = ("hour", "day")
BEGINNINGS = (usage_requests.c.at, usage_hours.c.began_at, usage_days.c.began_at, usage_sessions.c.began_at)
"""When what a row of each table counts began."""


class SqlUsage(JournalPart):
    """UsageRecords."""

    @quiet_write
    def usage_key(self, conn: Transaction) -> bytes:
        conn.insert_new(tables.usage_key, [{"id": 1, "key": secrets.token_hex(KEY_BYTES)}])
        key = _key(conn)
        assert key is not None
        return key

    @quiet_write
    def add_usage(self, conn: Transaction, rows: Sequence[UsageRow]) -> int:
        locks.alone_with(conn, locks.USAGE)
        told = usage_requests.c.id
        there = set(conn.execute(select(told).where(told.in_([row.id for row in rows]))).scalars())
        gone = _erased_since(conn, min((row.at for row in rows), default=0.0))
        fresh = [row for row in rows if row.id not in there and row.at > gone.get(row.user, -1.0)]
        if not fresh:
            return 0
        conn.execute(insert(usage_requests), [_request(row) for row in fresh])
        _add(conn, usage_hours, fresh, HOUR_S)
        _add(conn, usage_days, fresh, DAY_S)
        seen = {(_begin(row.at, DAY_S), row.user, row.session) for row in fresh if row.session}
        names = ("began_at", "user_name", "session")
        conn.insert_new(usage_sessions, [dict(zip(names, each, strict=True)) for each in sorted(seen)])
        return len(fresh)

    @quiet_write
    def prune_usage(
        self, conn: Transaction, *, requests_before: float, hours_before: float, days_before: float
    ) -> None:
        befores = (requests_before, hours_before, days_before, days_before)
        for began_at, before in zip(BEGINNINGS, befores, strict=True):
            conn.remove(began_at.table, began_at < before)

    @one_read
    def usage_sums(
        self,
        conn: Transaction,
        span: Span,
        by: Sequence[str],
        *,
        limit: int | None = None,
        within: Sequence[str | int] | None = None,
    ) -> list[UsageSum]:
        table = usage_hours if "hour" in by else usage_days
        columns = [_column(table, name) for name in by]
        sums = [func.sum(table.c[name]).label(name) for name in USAGE_SUMS]
        wanted = [_in(table, span), *([columns[0].in_(within)] if within is not None else [])]
        order = columns[0].desc() if by and by[0] in TIMES else sums[0].desc()
        found = select(*columns, *sums).where(*wanted).group_by(*columns).order_by(order, *columns).limit(limit)
        rows = [row for row in conn.execute(found) if row.requests is not None]
        return [UsageSum(tuple(row[: len(by)]), *(int(figure) for figure in row[len(by) :])) for row in rows]

    @one_read
    def usage_sessions(self, conn: Transaction, span: Span) -> int:
        each = select(usage_sessions.c.user_name, usage_sessions.c.session).where(_in(usage_sessions, span)).distinct()
        return int(conn.execute(select(func.count()).select_from(each.subquery())).scalar_one())


def forget_usage(conn: Transaction, user_digest: str, at: float) -> int:
    """All that is kept of this user until the end of that day, since a day's sum cannot be parted; how many rows."""
    key = _key(conn)
    if key is None:
        return 0
    locks.alone_with(conn, locks.USAGE)
    user, until = name_of_digest(key, user_digest), _begin(at, DAY_S) + DAY_S
    return sum(conn.remove(at.table, at.table.c.user_name == user, at < until) for at in BEGINNINGS)


def _key(conn: Transaction) -> bytes | None:
    found: str | None = conn.execute(select(tables.usage_key.c.key)).scalar()
    return None if found is None else bytes.fromhex(found)


def _erased_since(conn: Transaction, since: float) -> dict[str, float]:
    """By their names here: users who were erased as a whole then or later, and until when."""
    key = _key(conn)
    whole = and_(*(forgotten.c[f"{name}_digest"] == "" for name in tables.NARROWING))
    rows = conn.execute(select(forgotten).where(whole, forgotten.c.forgotten_at >= since)).all() if key else []
    return {name_of_digest(key or b"", row.user_digest): row.forgotten_at for row in rows}


def _begin(at: float, period_s: int) -> int:
    return int(at // period_s) * period_s


def _request(row: UsageRow) -> dict[str, Any]:
    cache = row.prompt_cache
    told = {name: value for name, value in structs.asdict(row).items() if name in usage_requests.c}
    cached = {"prompt_tokens": cache and cache.prompt_tokens, "cached_tokens": cache and cache.cached_tokens}
    return told | _group(row) | cached | {"estimated": int(row.estimated)}


def _group(row: UsageRow) -> dict[str, Any]:
    """In the order of USAGE_GROUP."""
    named = {name: getattr(row, name) for name in tables.USAGE_GROUP[1:-1]}
    return {"user_name": row.user, **named, "streamed": int(row.streamed)}


def _figures(row: UsageRow) -> tuple[int, ...]:
    """In the order of USAGE_SUMS."""
    cache = row.prompt_cache
    cached = (1, cache.prompt_tokens, cache.cached_tokens) if cache else (0, 0, 0)
    tokens = (row.tokens_in, row.tokens_out)
    failed = row.ending not in SUCCEEDED
    return (1, failed, row.messages, row.tool_calls, *tokens, row.estimated, row.duration_ms, *cached)


def _add(conn: Transaction, table: Table, rows: Sequence[UsageRow], period_s: int) -> None:
    """Onto what the groups have come to already; in one order, so that nobody waits in a circle."""
    groups: defaultdict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0] * len(USAGE_SUMS))
    for row in rows:
        sums = groups[_begin(row.at, period_s), *_group(row).values()]
        for place, figure in enumerate(_figures(row)):
            sums[place] += figure
    names = ("began_at", *tables.USAGE_GROUP, *USAGE_SUMS)
    told = [dict(zip(names, (*key, *sums), strict=True)) for key, sums in sorted(groups.items())]
    conn.upsert(table, told, lambda new: {name: table.c[name] + new[name] for name in USAGE_SUMS})


def _column(table: Table, name: str) -> ColumnElement[Any]:
    return table.c[{"hour": "began_at", "day": "began_at", "user": "user_name"}.get(name, name)]


def _in(table: Table, span: Span) -> ColumnElement[bool]:
    within = and_(table.c.began_at >= span.since, table.c.began_at < span.until)
    return within if span.user is None else and_(within, table.c.user_name == span.user)
