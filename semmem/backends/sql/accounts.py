"""What is kept for the management API: its tokens, its calls under idempotency keys, and for whom reading and storing
are switched."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, func, insert, or_, select, update

from semmem.backends.sql import locks
from semmem.backends.sql.database import SWITCHED, JournalPart, one_read, one_write, quiet_write
from semmem.backends.sql.marks import digest
from semmem.backends.sql.rows import put, upsert_into
from semmem.backends.sql.tables import api_call_users, api_calls, api_tokens, memory_switches, replicas
from semmem.ports.accounts import CallAnswer, KnownCall, Switch, SwitchRow, TokenRow

REVOKED_KEPT_S = 90 * 86_400.0
"""So long an operator can look up which token it was."""
COUNT_EVERY = 100
"""After so many calls it is looked whether there are too many: to count them takes as long as they are many."""

_RUNNING = api_calls.c.status.is_(None)
UNSAID_KEPT_S = 86_400.0
"""So long a process that hears nothing finds that a switch is gone; it reads all of them more often than that."""
_SAID = or_(memory_switches.c.reading.is_not(None), memory_switches.c.storing.is_not(None))
_NUMBER = memory_switches.c.number


class SqlAccounts(JournalPart):
    """CallRecords, TokenRecords and SwitchRecords."""

    _begun = 0

    @quiet_write
    def begin_call(
        self, conn: Connection, key: str, request: str, *, now: float, lease_s: float, keep_s: float, calls_max: int
    ) -> KnownCall | None:
        _drop(conn, api_calls.c.expires_at < now)
        row = {"request": request, "owner": self.replica_id, "lease_until": now + lease_s, "expires_at": now + keep_s}
        new = upsert_into(conn.dialect.name, api_calls).values(key=key, keep=1, counts="", **row)
        if conn.execute(new.on_conflict_do_nothing().returning(api_calls.c.key)).one_or_none() is not None:
            self._begun += 1
            if self._begun % COUNT_EVERY == 0:
                _drop_oldest(conn, calls_max)
            return None
        others = and_(api_calls.c.owner != self.replica_id, api_calls.c.owner.not_in(select(replicas.c.id)))
        left = and_(_RUNNING, or_(others, api_calls.c.lease_until < now), api_calls.c.request == request)
        if conn.execute(update(api_calls).where(api_calls.c.key == key, left).values(row)).rowcount == 1:
            return None
        return _known(conn.execute(select(api_calls).where(api_calls.c.key == key)).one())

    @quiet_write
    def end_call(self, conn: Connection, key: str, answer: CallAnswer, users: Collection[str]) -> None:
        this = and_(api_calls.c.key == key, api_calls.c.owner == self.replica_id, _RUNNING)
        whole = {"status": answer.status, "counts": answer.counts, "answer": answer.body}
        if conn.execute(update(api_calls).where(this, api_calls.c.keep == 1).values(whole)).rowcount == 1:
            rows = [{"key": key, "user_digest": digest(user)} for user in sorted(users)]
            if rows and answer.body is not None:
                conn.execute(insert(api_call_users), rows)
        else:  # something was erased meanwhile: perhaps what the answer shows
            conn.execute(update(api_calls).where(this).values({**whole, "answer": None}))

    @quiet_write
    def drop_call(self, conn: Connection, key: str) -> None:
        _drop(conn, and_(api_calls.c.key == key, api_calls.c.owner == self.replica_id, _RUNNING))

    @quiet_write
    def forget_calls(self, conn: Connection) -> None:
        for table in (api_call_users, api_calls):
            conn.execute(delete(table))

    @one_write
    def add_token(self, conn: Connection, row: TokenRow) -> None:
        columns = {column.name: getattr(row, column.name) for column in api_tokens.c}
        conn.execute(insert(api_tokens).values(columns))

    @one_read
    def token(self, conn: Connection, token_id: str) -> TokenRow | None:
        row = conn.execute(select(api_tokens).where(api_tokens.c.id == token_id)).one_or_none()
        return None if row is None else TokenRow(**row._mapping)

    @one_read
    def tokens(self, conn: Connection) -> list[TokenRow]:
        rows = conn.execute(select(api_tokens).order_by(api_tokens.c.created_at.desc(), api_tokens.c.id))
        return [TokenRow(**row._mapping) for row in rows]

    @one_write
    def revoke_tokens(
        self, conn: Connection, *, now: float, token_id: str | None = None, user_digest: str | None = None
    ) -> int:
        conn.execute(delete(api_tokens).where(api_tokens.c.revoked_at < now - REVOKED_KEPT_S))
        good = update(api_tokens).where(api_tokens.c.revoked_at.is_(None)).values(revoked_at=now)
        if token_id is not None:
            good = good.where(api_tokens.c.id == token_id)
        if user_digest is not None:
            good = good.where(api_tokens.c.user_digest == user_digest)
        return conn.execute(good).rowcount

    @quiet_write
    def set_switch(
        self, conn: Connection, key: str, group: str, switch: Switch, *, now: float, entries_max: int
    ) -> bool:
        locks.alone_with(conn, locks.SWITCHES)
        others = select(func.count()).select_from(memory_switches).where(_SAID, memory_switches.c.key != key)
        if switch != Switch() and conn.execute(others).scalar_one() >= entries_max:
            return False
        number = (conn.execute(select(func.max(_NUMBER))).scalar() or 0) + 1
        row = {"key": key, "group_name": group, "number": number, "changed_at": now}
        row |= {"reading": _number(switch.reading), "storing": _number(switch.storing)}
        put(conn, memory_switches, row)
        old = and_(~_SAID, memory_switches.c.changed_at < now - UNSAID_KEPT_S, number > _NUMBER)
        conn.execute(delete(memory_switches).where(old))
        self._database.say(conn, SWITCHED)
        return True

    @one_read
    def switches_since(self, conn: Connection, number: int) -> list[SwitchRow]:
        found = conn.execute(select(memory_switches).where(number < _NUMBER).order_by(_NUMBER))
        return [_row(row) for row in found]


def _drop(conn: Connection, which: Any) -> None:
    keys = select(api_calls.c.key).where(which)
    conn.execute(delete(api_call_users).where(api_call_users.c.key.in_(keys)))
    conn.execute(delete(api_calls).where(which))


def _drop_oldest(conn: Connection, calls_max: int) -> None:
    there = conn.execute(select(func.count()).select_from(api_calls)).scalar_one()
    if there > calls_max:
        oldest = select(api_calls.c.key).order_by(api_calls.c.expires_at).limit(there - calls_max)
        _drop(conn, api_calls.c.key.in_(list(conn.execute(oldest).scalars())))


def _known(row: Row[Any]) -> KnownCall:
    if row.status is None:
        return KnownCall(row.request)
    return KnownCall(row.request, CallAnswer(row.status, row.answer, row.counts))


def forget_answers(conn: Connection, user: str) -> None:
    """Nothing that an answer showed of the user is kept, nor of a call that is under way. That it was done stays
    known, so that it is not done again."""
    conn.execute(update(api_calls).where(api_calls.c.status.is_(None)).values(keep=0))
    mine = select(api_call_users.c.key).where(api_call_users.c.user_digest == digest(user))
    conn.execute(update(api_calls).where(api_calls.c.key.in_(mine)).values(answer=None, keep=0))
    conn.execute(delete(api_call_users).where(api_call_users.c.user_digest == digest(user)))


def _row(row: Row[tuple[object, ...]]) -> SwitchRow:
    switch = Switch(_said(row.reading), _said(row.storing))
    return SwitchRow(row.key, row.group_name, switch, row.number, row.changed_at)


def _number(said: bool | None) -> int | None:
    return None if said is None else int(said)


def _said(number: int | None) -> bool | None:
    return None if number is None else bool(number)
