"""Who waits for whom, inside the caller's transaction.

On SQLite nobody needs to ask: a transaction that writes has the whole file to itself from its beginning. On a server
transactions run side by side, and these locks put those of one user one after another, from here to their end. Names
share a bounded number of locks: two that meet in one wait for each other in vain, which is harmless, while a lock for
each of the users of a commit could be more than a server has room for.

Without them go single statements that say in themselves what they may change, and to which every order of them and
others is one that a file would see as well: marks that only move on to a later time (``_raise``, ``end_session``,
``forget_past``), numbers that only rise (``mark_applied``), rows that are inserted if they are not there
(``register_user``, ``record_said``: whoever is removing the row just then is waited for), what one batch or hold writes
of itself (``settle``, ``settle_provisional``, ``note_withdrawn``, ``mark_maintained``), and pruning, whose conditions
are looked at again in each row that somebody else was changing. Where they touch several rows they do so in one order,
so that nobody waits in a circle; whom that happens to all the same is undone by the server and tried again.
``mark_adopted`` has a journal to itself that nobody serves."""

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

from sqlalchemy import ColumnElement, Integer, Table, column, func, select, values

from semmem.backends.sql.rows import Transaction

LOCKS = 1024
_SPACE = 0x5E33E3
"""Sets these locks apart from others in the same database."""
SCHEMA, SWITCHES, USAGE, VOTES, REQUEST_LOG = -1, -2, -3, -4, -5
"""The tables themselves; the switches, and the votes, so that whoever read one number has read all below it; the
statistics of use, so that nothing is added of a user who is just being erased; the request log, in which two that write
each other's halves would wait in a circle."""


def user(conn: Transaction, name: str) -> None:
    """Alone with the user's turns, batches and memories."""
    alone_with(conn, _number(name))


def users(conn: Transaction, names: Iterable[str]) -> None:
    """``user``, for all of them."""
    if needed(conn):
        _take(conn, func.pg_advisory_xact_lock, names)


def users_shared(conn: Transaction, names: Iterable[str]) -> None:
    """With others who only add to what these users have; not with whoever is alone with one of them."""
    if needed(conn):
        _take(conn, func.pg_advisory_xact_lock_shared, names)


def _take(conn: Transaction, lock: Callable[..., ColumnElement[Any]], names: Iterable[str]) -> None:
    numbers = sorted({_number(name) for name in names})  # in one order, so that nobody waits in a circle
    if numbers:
        rows = values(column("number", Integer), name="wanted").data([(number,) for number in numbers])
        conn.execute(select(lock(_SPACE, rows.c.number)))


def try_user(conn: Transaction, name: str) -> bool:
    """``user``, if that can be had at once."""
    if not needed(conn):
        return True
    return bool(conn.execute(select(func.pg_try_advisory_xact_lock(_SPACE, _number(name)))).scalar())


def user_of(conn: Transaction, table: Table, row_id: str) -> None:
    """``user``, for whose this batch, hold or turn is, if it is anybody's."""
    whose = select(table.c.user_id).where(table.c.id == row_id)
    if needed(conn) and (name := conn.execute(whose).scalar()) is not None:
        user(conn, name)


def alone_with(conn: Transaction, what: int) -> None:
    """Alone with one of those named above, which are no user's."""
    if needed(conn):
        conn.execute(select(func.pg_advisory_xact_lock(_SPACE, what)))


def needed(conn: Transaction) -> bool:
    """Whether others may be at work beside this transaction."""
    return conn.dialect.name != "sqlite"


def _number(name: str) -> int:
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest) % LOCKS
