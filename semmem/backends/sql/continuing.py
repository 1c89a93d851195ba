"""Conversations that are kept in the place of a model's API: who goes on with them, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, or_, select, update

from semmem.backends.sql import locks
from semmem.backends.sql.conversation_erasure import Doors
from semmem.backends.sql.conversation_rows import conversation_row, crowd_out
from semmem.backends.sql.part import JournalPart, one_read, quiet_write
from semmem.backends.sql.rows import upsert_into
from semmem.backends.sql.tables import conversations
from semmem.memory import Role, Scope
from semmem.ports.continuing import BROKEN, Continued, done, failed, opened
from semmem.ports.conversations import KeptConversation, SaidHalf, conversation_id
from semmem.ports.talks import TALK_ID


class SqlContinuing(JournalPart):
    """ContinuedConversations."""

    @one_read
    def continued(self, conn: Connection, scope: Scope) -> Continued | None:
        c = conversations.c
        name = conversation_id(scope)
        row = conn.execute(select(conversations).where(c.id == name, c.user_id == scope.user)).one_or_none()
        if row is not None:
            return Continued(name, row.progress, row.last_answer, row.messages)
        return _elsewhere(conn, scope)

    @quiet_write
    def claim_conversation(
        self, conn: Connection, scope: Scope, seen: Continued | None, claim: str, *, now: float, per_user_max: int
    ) -> bool:
        locks.users_shared(conn, [scope.user])
        name = conversation_id(scope)
        if Doors(conn, [scope], [], [name]).shut(scope, "", name, now):
            return False
        return _begun(conn, scope, claim, now, per_user_max) if seen is None else _taken(conn, seen, claim)


def _elsewhere(conn: Connection, scope: Scope) -> Continued | None:
    """What else of the user's has this name: a conversation of another project or agent, which is none of this
    request's, or a recorded or imported one by its id, whose history nobody vouches for."""
    c = conversations.c
    session = scope.session or ""
    named = c.session == session
    if session.startswith(TALK_ID) and session.isascii() and session.isprintable():
        named = or_(named, c.id == session)
    found = conn.execute(select(c.id).where(c.user_id == scope.user, named)).scalars().all()
    if not found:
        return None
    return Continued(found[0], BROKEN if session in found else "")


def _begun(conn: Connection, scope: Scope, claim: str, now: float, per_user_max: int) -> bool:
    kept = KeptConversation(conversation_id(scope), scope, "", now, now, progress=opened(claim))
    row = upsert_into(conn.dialect.name, conversations).values(conversation_row(kept))
    begins = conn.execute(row.on_conflict_do_nothing().returning(conversations.c.id)).one_or_none() is not None
    if begins:
        crowd_out(conn, scope.user, per_user_max)
    return begins


def _taken(conn: Connection, seen: Continued, claim: str) -> bool:
    """Only where nothing has changed since: another request, its answer, or an erasure may have come between."""
    c = conversations.c
    same = (c.progress == seen.progress, c.last_answer == seen.last_answer, c.messages == seen.messages)
    taken = update(conversations).where(c.id == seen.id, *same).values(progress=opened(claim))
    return conn.execute(taken).rowcount == 1


def settle_claims(conn: Connection, halves: Iterable[tuple[Scope, SaidHalf]]) -> None:
    """What became of requests that named a conversation. The conversations' rows are the caller's by now."""
    for scope, half in halves:
        if half.failed:
            _settle(conn, scope, [opened(half.step.claim)], progress=failed(half.step.claim))
        elif answer := next((said for said in half.messages if said.role is Role.ASSISTANT), None):
            _settle_answered(conn, scope, half.step.claim, answer.answer_id if answer.whole else "")


def _settle_answered(conn: Connection, scope: Scope, claim: str, answer_id: str) -> None:
    """An answer that no history can have, as when its request was given none from here, ends it for good."""
    if not answer_id:
        _settle(conn, scope, None, progress=BROKEN)
    else:
        _settle(conn, scope, [opened(claim), failed(claim)], progress=done(claim), last_answer=answer_id)


def _settle(conn: Connection, scope: Scope, before: Sequence[str] | None, **told: str) -> None:
    c = conversations.c
    known = c.progress != "" if before is None else c.progress.in_(before)
    conn.execute(update(conversations).where(c.id == conversation_id(scope), known).values(told))
