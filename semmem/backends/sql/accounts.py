"""What is kept for the management API: its tokens, its calls under idempotency keys, for whom reading and storing are
switched, and what users are called."""

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Row, and_, func, insert, or_, select

from semmem.backends.sql import locks
from semmem.backends.sql.database import SWITCHED, JournalPart, one_read, one_write, quiet_write
from semmem.backends.sql.marks import digest
from semmem.backends.sql.rows import Transaction
from semmem.backends.sql.tables import aliases, api_call_users, api_calls, api_tokens, memory_switches, replicas
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
    """CallRecords, TokenRecords, SwitchRecords and AliasRecords."""

    _begun = 0

    @quiet_write
    def begin_call(
        self, conn: Transaction, key: str, request: str, *, now: float, lease_s: float, keep_s: float, calls_max: int
    ) -> KnownCall | None:
        _drop(conn, api_calls.c.expires_at < now)
        row = {"request": request, "owner": self.replica_id, "lease_until": now + lease_s, "expires_at": now + keep_s}
        new = conn.upsert_into(api_calls).values(key=key, keep=1, counts="", **row)
        if conn.execute(new.on_conflict_do_nothing().returning(api_calls.c.key)).one_or_none() is not None:
            self._begun += 1
            if self._begun % COUNT_EVERY == 0 and (surplus := conn.count(api_calls) - calls_max) > 0:
                oldest = select(api_calls.c.key).order_by(api_calls.c.expires_at).limit(surplus)
                _drop(conn, api_calls.c.key.in_(list(conn.execute(oldest).scalars())))
            return None
        others = and_(api_calls.c.owner != self.replica_id, api_calls.c.owner.not_in(select(replicas.c.id)))
        left = and_(_RUNNING, or_(others, api_calls.c.lease_until < now), api_calls.c.request == request)
        if conn.change(api_calls, api_calls.c.key == key, left, **row) == 1:
            return None
        known = conn.execute(select(api_calls).where(api_calls.c.key == key)).one()
        answer = None if known.status is None else CallAnswer(known.status, known.answer, known.counts)
        return KnownCall(known.request, answer)

    @quiet_write
    def end_call(self, conn: Transaction, key: str, answer: CallAnswer, users: Collection[str]) -> None:
        this = and_(api_calls.c.key == key, api_calls.c.owner == self.replica_id, _RUNNING)
        whole = {"status": answer.status, "counts": answer.counts, "answer": answer.body}
        if conn.change(api_calls, this, api_calls.c.keep == 1, **whole) == 1:
            rows = [{"key": key, "user_digest": digest(user)} for user in sorted(users)]
            if rows and answer.body is not None:
                conn.execute(insert(api_call_users), rows)
        else:  # something was erased meanwhile: perhaps what the answer shows
            conn.change(api_calls, this, **{**whole, "answer": None})

    @quiet_write
    def drop_call(self, conn: Transaction, key: str) -> None:
        _drop(conn, and_(api_calls.c.key == key, api_calls.c.owner == self.replica_id, _RUNNING))

    @quiet_write
    def forget_calls(self, conn: Transaction) -> None:
        conn.remove(api_call_users)
        conn.remove(api_calls)

    @one_write
    def add_token(self, conn: Transaction, row: TokenRow) -> None:
        conn.execute(insert(api_tokens).values(asdict(row)))

    @one_read
    def token(self, conn: Transaction, token_id: str) -> TokenRow | None:
        row = conn.row_of(api_tokens, api_tokens.c.id == token_id)
        return None if row is None else TokenRow(**row._mapping)

    @one_read
    def tokens(self, conn: Transaction) -> list[TokenRow]:
        rows = conn.execute(select(api_tokens).order_by(api_tokens.c.created_at.desc(), api_tokens.c.id))
        return [TokenRow(**row._mapping) for row in rows]

    @one_write
    def revoke_tokens(
        self, conn: Transaction, *, now: float, token_id: str | None = None, user_digest: str | None = None
    ) -> int:
        conn.remove(api_tokens, api_tokens.c.revoked_at < now - REVOKED_KEPT_S)
        named = ((api_tokens.c.id, token_id), (api_tokens.c.user_digest, user_digest))
        wanted = [column == name for column, name in named if name is not None]
        return conn.change(api_tokens, api_tokens.c.revoked_at.is_(None), *wanted, revoked_at=now)

    @quiet_write
    def set_switch(
        self, conn: Transaction, key: str, group: str, switch: Switch, *, now: float, entries_max: int
    ) -> bool:
        locks.alone_with(conn, locks.SWITCHES)
        if switch != Switch() and conn.count(memory_switches, _SAID, memory_switches.c.key != key) >= entries_max:
            return False
        number = (conn.execute(select(func.max(_NUMBER))).scalar() or 0) + 1
        said = {name: None if value is None else int(value) for name, value in asdict(switch).items()}
        conn.put(memory_switches, key=key, group_name=group, number=number, changed_at=now, **said)
        conn.remove(memory_switches, ~_SAID, memory_switches.c.changed_at < now - UNSAID_KEPT_S, number > _NUMBER)
        self._database.say(conn, SWITCHED)
        return True

    @one_read
    def switches_since(self, conn: Transaction, number: int) -> list[SwitchRow]:
        rows = conn.rows_of(memory_switches, number < _NUMBER, by=_NUMBER)
        return [SwitchRow(row.key, row.group_name, _switch(row), row.number, row.changed_at) for row in rows]

    @quiet_write
    def set_alias(self, conn: Transaction, user: str, alias: str) -> None:
        """The time is taken behind the lock: an erasure that came before does not reach what is set after it."""
        locks.user(conn, user)
        if alias:
            conn.put(aliases, user_id=user, alias=alias, changed_at=self._clock.now())
        else:
            conn.remove(aliases, aliases.c.user_id == user)

    @one_read
    def aliases(self, conn: Transaction, users: Sequence[str]) -> dict[str, str]:
        return {row.user_id: row.alias for row in conn.among(aliases.c.user_id, users)}


def _drop(conn: Transaction, which: Any) -> None:
    keys = select(api_calls.c.key).where(which)
    conn.remove(api_call_users, api_call_users.c.key.in_(keys))
    conn.remove(api_calls, which)


def forget_answers(conn: Transaction, user: str) -> None:
    """Nothing that an answer showed of the user is kept, nor of a call that is under way. That it was done stays
    known, so that it is not done again."""
    conn.change(api_calls, _RUNNING, keep=0)
    mine = api_call_users.c.user_digest == digest(user)
    conn.change(api_calls, api_calls.c.key.in_(select(api_call_users.c.key).where(mine)), answer=None, keep=0)
    conn.remove(api_call_users, mine)


def _switch(row: Row[Any]) -> Switch:
    return Switch(*(None if said is None else bool(said) for said in (row.reading, row.storing)))
