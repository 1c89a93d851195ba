"""Answers of the management API that show something of a user who is being erased, inside the caller's transaction."""

from __future__ import annotations

from sqlalchemy import Connection, delete, select, update

from semmem.backends.sql.marks import digest
from semmem.backends.sql.tables import api_call_users, api_calls


def forget_answers(conn: Connection, user: str) -> None:
    """Nothing that an answer showed of the user is kept, nor of a call that is under way. That it was done stays
    known, so that it is not done again."""
    conn.execute(update(api_calls).where(api_calls.c.status.is_(None)).values(keep=0))
    mine = select(api_call_users.c.key).where(api_call_users.c.user_digest == digest(user))
    conn.execute(update(api_calls).where(api_calls.c.key.in_(mine)).values(answer=None, keep=0))
    conn.execute(delete(api_call_users).where(api_call_users.c.user_digest == digest(user)))
