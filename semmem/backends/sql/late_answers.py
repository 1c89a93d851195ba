"""Answers that come into the record after something was erased, and were asked for before; see withholding.py."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, case, func, select

from semmem.backends.sql import marks
from semmem.backends.sql.conversation_rows import among
from semmem.backends.sql.tables import conversations, forgotten, forgotten_conversations, forgotten_memories, turns
from semmem.backends.sql.withholding import Reach, Reaches, begin_of, widen
from semmem.memory import Role, Scope
from semmem.ports.conversations import KeptMessage
from semmem.ports.talks import TALK_ID

Told = Sequence[tuple[str, Scope, KeptMessage]]
"""Messages on their way into conversations."""


def flagged(message: KeptMessage, reach: Reach | None) -> KeptMessage:
    """The message, withheld if it is reached."""
    if reach is None or message.role is not Role.ASSISTANT:
        return message
    reached = message.place >= reach.place and message.turn_at <= reach.until
    return replace(message, withheld=True) if reached else message


def late(conn: Connection, told: Told, *, copied: bool = False) -> Reaches:
    """What is reached by answers among these. ``copied``: from a journal in which conversations stand that are not here
    yet."""
    answers = [each for each in told if each[2].role is Role.ASSISTANT]
    reaches: Reaches = {}
    if answers:
        for talk, reach in (*_behind_erased_turns(conn, answers), *_shown_what_is_erased(conn, answers, copied)):
            widen(reaches, talk, reach)
    return reaches


def _behind_erased_turns(conn: Connection, answers: Told) -> Iterable[tuple[str, Reach]]:
    """By turns of the same conversations from which an erased memory was learnt. They may be in no record: then the
    journal knows where they stood."""
    erased = _erased_turns(conn, answers)
    for talk, scope in {talk: scope for talk, scope, _ in answers}.items() if erased else ():
        for row in conn.execute(_turns_of(scope)):
            at = erased.get(marks.digest(row.id))
            if at is not None and row.opened_at <= at:
                yield talk, Reach(begin_of(row.opened_at, row.id), at)


def _erased_turns(conn: Connection, answers: Told) -> dict[str, float]:
    """Of these users, by digest, and until when: those that were erased after the first of these answers was asked."""
    f = forgotten_memories.c
    earliest = min(message.turn_at for _, _, message in answers)
    known = (f.user_digest.in_(_users(answers)), f.turn_digest != "", f.forgotten_at >= earliest)
    found = select(f.turn_digest, func.max(f.forgotten_at).label("at")).where(*known).group_by(f.turn_digest)
    return {row.turn_digest: row.at for row in conn.execute(found)}


def _turns_of(scope: Scope) -> Any:
    """Those of exactly this session of this project."""
    t = turns.c
    exactly = (t.project == (scope.project or ""), t.agent == (scope.agent or ""), t.opened_at.is_not(None))
    return select(t.id, t.opened_at).where(t.user_id == scope.user, t.session == (scope.session or ""), *exactly)


def _shown_what_is_erased(conn: Connection, answers: Told, copied: bool) -> Iterable[tuple[str, Reach]]:
    showing = [each for each in answers if each[2].shown]
    if not showing:
        return
    erased = _Erased(conn, showing, copied)
    for talk, scope, message in showing:
        if untils := erased.until(scope.user, message):
            yield talk, Reach(message.place, max(*untils, message.turn_at))


class _Erased:
    """What is erased of what some answers were shown."""

    def __init__(self, conn: Connection, showing: Told, copied: bool) -> None:
        names = sorted({name for _, _, message in showing for name in message.shown})
        talks = [name for name in names if name.startswith(TALK_ID)]
        users = _users(showing)
        self._copied = copied
        self._scopes = _hidden_until(conn, users)
        self._memories = _erased_memories(conn, users, [name for name in names if not name.startswith(TALK_ID)])
        removed = among(conn, forgotten_conversations.c.id, talks)
        self._removed: dict[str, float] = {row.id: row.forgotten_at for row in removed}
        self._here = {row.id: row for row in among(conn, conversations.c.id, talks)}

    def until(self, user: str, message: KeptMessage) -> list[float]:
        """The times of what may have been shown with it and is erased; none where nothing is."""
        whose, at = marks.digest(user), message.turn_at
        known = [self._memories.get((whose, marks.digest(name))) for name in message.shown]
        found = [until for until in known if until is not None]
        found += [until for until in (self._scopes.get(whose, -1.0),) if until >= at]
        return found + [until for name in message.shown if name.startswith(TALK_ID) for until in self._talk(name, at)]

    def _talk(self, name: str, at: float) -> list[float]:
        """One that is not here, or began later, is not the one that was shown: that one is gone."""
        row = self._here.get(name)
        untils = [self._removed.get(name, -1.0), -1.0 if row is None else row.withheld_until]
        if not self._copied and (row is None or row.created_at > at):
            untils.append(at)
        return [until for until in untils if until >= at]


def _hidden_until(conn: Connection, users: Sequence[str]) -> dict[str, float]:
    """Until when prompts may have been given memories of a scope that is erased, by the digest of its user."""
    f = forgotten.c
    at = func.max(case((f.hidden_at > f.forgotten_at, f.hidden_at), else_=f.forgotten_at)).label("at")
    found = select(f.user_digest, at).where(f.user_digest.in_(users)).group_by(f.user_digest)
    return {row.user_digest: row.at for row in conn.execute(found)}


def _erased_memories(conn: Connection, users: Sequence[str], names: Sequence[str]) -> dict[tuple[str, str], float]:
    """By digests of user and memory. No prompt is given a memory after it was erased: the time is not compared."""
    f = forgotten_memories.c
    rows = among(conn, f.memory_digest, [marks.digest(name) for name in names], f.user_digest.in_(users))
    return {(row.user_digest, row.memory_digest): row.forgotten_at for row in rows}


def _users(told: Told) -> list[str]:
    return sorted({marks.digest(scope.user) for _, scope, _ in told})
