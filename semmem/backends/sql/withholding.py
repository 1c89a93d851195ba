"""Answers that may say what is erased, and are put into no prompt any more; inside the caller's transaction.

An answer may repeat whatever its request was shown: the memories and conversations of its block, and what was said
before it in its own conversation. So where something of a conversation is erased, or an answer was shown something that
is, this answer and those behind it are withheld; then those that were shown this conversation, and so on. The record
keeps them, as they are what was said. Only what reads for prompts leaves them out (conversation_reads.py).

Nothing says that an answer does repeat it. One too many is withheld rather than one too few."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from sqlalchemy import ColumnElement, case, func, literal_column, or_, select

from semmem.backends.sql import locks, marks, tables
from semmem.backends.sql.rows import IDS_MAX, Transaction, later, lines_told, scope_row, slices
from semmem.backends.sql.tables import SAID, TALK, forgotten, forgotten_conversations, forgotten_memories, turns
from semmem.memory import Role, Scope
from semmem.ports.conversations import USER_NUMBER, KeptMessage, Step, place_of
from semmem.ports.talks import TALK_ID


class Reach(NamedTuple):
    """Of one conversation: its answers at this place or behind it, in turns begun at ``until`` or before."""

    place: str
    until: float


Reaches = dict[str, Reach]
"""By conversation."""
Shown = Mapping[str, Mapping[str, tuple[str, float]]]
"""By the id of what was shown, and by the conversation in which an answer was shown it: the place of the first such
answer, and when its turn began."""

BEGINNING = "0"
"""Before every place."""
_EMPTY: ColumnElement[str] = literal_column("''")


def widen(reaches: Reaches, talk: str, reach: Reach) -> None:
    """From the earlier place on, until the later time."""
    old = reaches.get(talk, reach)
    reaches[talk] = Reach(min(old.place, reach.place), max(old.until, reach.until))


def withhold(
    conn: Transaction,
    user: str,
    *,
    now: float,
    memories: Collection[str] = (),
    begun: Mapping[str, Reach] | None = None,
) -> None:
    """What may say what these memories said, or what was erased of the conversations in ``begun``. ``now``: by then no
    prompt was given them any more. Whoever calls is alone with the user."""
    if memories or begun:
        hold(conn, spread(shown_to(conn, user), memories, begun or {}, now))


def spread(shown: Shown, memories: Iterable[str], begun: Mapping[str, Reach], now: float) -> Reaches:
    """All conversations that are reached. What was shown a conversation is reached as far as that one was then."""
    reaches = dict(begun)
    waiting = [*memories, *begun]
    while waiting:
        name = waiting.pop()
        for talk, (place, at) in shown.get(name, {}).items():
            until = reaches[name].until if name in reaches else max(now, at)
            if at > until:
                continue
            if talk not in reaches or until > reaches[talk].until:
                waiting.append(talk)
            widen(reaches, talk, Reach(place, until))
    return reaches


def shown_to(conn: Transaction, user: str) -> Shown:
    """What the answers were shown that are recorded of a user. Read row by row: there may be many."""
    told = select(SAID.conversation_id, SAID.place, SAID.turn_at, SAID.shown).where(
        SAID.user_id == user, SAID.shown != _EMPTY
    )
    found: dict[str, dict[str, tuple[str, float]]] = {}
    for row in conn.execute(told.execution_options(yield_per=IDS_MAX)):
        here = (row.place, row.turn_at)
        for name in lines_told(row.shown):
            places = found.setdefault(name, {})
            places[row.conversation_id] = min(places.get(row.conversation_id, here), here)
    return found


def withheld_before(conn: Transaction, talks: Collection[str]) -> Reaches:
    """What is withheld of these conversations already."""
    rows = conn.among(TALK.id, sorted(talks), TALK.withheld_until > 0)
    return {row.id: Reach(row.withheld_from, row.withheld_until) for row in rows}


def hold(conn: Transaction, reaches: Mapping[str, Reach]) -> None:
    """Mark the answers that are here, and remember it for those that are still to come."""
    for talk, (place, until) in sorted(reaches.items()):
        begins = case((or_(TALK.withheld_from == _EMPTY, TALK.withheld_from > place), place), else_=TALK.withheld_from)
        ends = later(TALK.withheld_until, until)
        conn.change(tables.conversations, TALK.id == talk, withheld_from=begins, withheld_until=ends)
        behind = (SAID.conversation_id == talk, SAID.place >= place, SAID.turn_at <= until)
        answers = (SAID.role == Role.ASSISTANT.value, SAID.withheld == 0)
        conn.change(tables.conversation_messages, *behind, *answers, withheld=1)


def begin_of(turn_at: float, turn: str) -> str:
    """A place before all answers of this turn, and of those behind it."""
    return place_of(turn_at, turn, Step("", USER_NUMBER, 0.0))


def withhold_marked(conn: Transaction) -> None:
    """What a copy of earlier still shows of what is marked as erased. Of a scope that was erased elsewhere nobody here
    can say which memories it had: then every answer is withheld that was shown anything by then."""
    marked = _Marked(conn)
    for user in sorted(conn.execute(select(SAID.user_id).where(SAID.shown != _EMPTY).distinct()).scalars()):
        if marked.reaches(conn, user):
            locks.user(conn, user)
            hold(conn, marked.reaches(conn, user))  # once more: an answer may have come before the lock was had


class _Marked:
    def __init__(self, conn: Transaction) -> None:
        self._single = marks.memories_forgotten(conn)
        self._talks = {row.id: row.forgotten_at for row in conn.execute(select(forgotten_conversations))}
        # Until when scopes are erased whose memories this journal did not see go.
        self._elsewhere = _latest_by_user(
            conn, forgotten.c.forgotten_at, forgotten.c.hidden_at < forgotten.c.forgotten_at
        )

    def reaches(self, conn: Transaction, user: str) -> Reaches:
        shown, whose = shown_to(conn, user), marks.digest(user)
        single = {name: self._single.get((whose, marks.digest(name))) for name in shown}
        gone = {name: at for name, at in single.items() if at is not None}
        begun = withheld_before(conn, [name for name in shown if name.startswith(TALK_ID)])
        for name in shown.keys() & self._talks.keys():
            widen(begun, name, Reach(BEGINNING, self._talks[name]))
        until = self._elsewhere.get(whose, -1.0)
        for talk, (place, at) in (first for places in shown.values() for first in places.items()):
            if at <= until:
                widen(begun, talk, Reach(place, until))
        return spread(shown, gone, begun, max(gone.values(), default=0.0))


# --- answers that come into the record after something was erased, and were asked for before --------------------------


Told = Sequence[tuple[str, Scope, KeptMessage]]
"""Messages on their way into conversations."""


def flagged(message: KeptMessage, reach: Reach | None) -> KeptMessage:
    if reach is None or message.role is not Role.ASSISTANT:
        return message
    reached = message.place >= reach.place and message.turn_at <= reach.until
    return replace(message, withheld=True) if reached else message


def late(conn: Transaction, told: Told, *, copied: bool = False) -> Reaches:
    """What is reached by answers among these. ``copied``: from a journal with conversations that are not here yet."""
    answers = [each for each in told if each[2].role is Role.ASSISTANT]
    reaches: Reaches = {}
    if answers:
        for talk, reach in (*_behind_erased_turns(conn, answers), *_shown_what_is_erased(conn, answers, copied)):
            widen(reaches, talk, reach)
    return reaches


def _behind_erased_turns(conn: Transaction, answers: Told) -> Iterable[tuple[str, Reach]]:
    """By turns of the same conversations from which an erased memory was learnt. They may be in no record: then the
    journal knows where they stood."""
    f, earliest = forgotten_memories.c, min(message.turn_at for _, _, message in answers)
    erased = marks.turns_forgotten(conn, f.user_digest.in_(_users(answers)), f.forgotten_at >= earliest)
    for talk, scope in {talk: scope for talk, scope, _ in answers}.items() if erased else ():
        exactly = (turns.c[name] == value for name, value in scope_row(scope).items())
        for row in conn.execute(select(turns.c.id, turns.c.opened_at).where(*exactly, turns.c.opened_at.is_not(None))):
            at = erased.get(marks.digest(row.id))
            if at is not None and row.opened_at <= at:
                yield talk, Reach(begin_of(row.opened_at, row.id), at)


def _shown_what_is_erased(conn: Transaction, answers: Told, copied: bool) -> Iterable[tuple[str, Reach]]:
    showing = [each for each in answers if each[2].shown]
    if not showing:
        return
    erased = _Erased(conn, showing, copied)
    for talk, scope, message in showing:
        if untils := erased.until(scope.user, message):
            yield talk, Reach(message.place, max(*untils, message.turn_at))


class _Erased:
    """What is erased of what some answers were shown."""

    def __init__(self, conn: Transaction, showing: Told, copied: bool) -> None:
        names = sorted({name for _, _, message in showing for name in message.shown})
        talks = [name for name in names if name.startswith(TALK_ID)]
        users = _users(showing)
        self._copied = copied
        # Until when prompts may have been given memories of a scope that is erased, by the digest of its user.
        hidden = later(forgotten.c.forgotten_at, forgotten.c.hidden_at)
        self._scopes = _latest_by_user(conn, hidden, forgotten.c.user_digest.in_(users))
        # By digests of user and memory. No prompt is given a memory after it was erased: the time is not compared.
        f, self._memories = forgotten_memories.c, dict[tuple[str, str], float]()
        for some in slices([marks.digest(name) for name in names if not name.startswith(TALK_ID)]):
            self._memories |= marks.memories_forgotten(conn, f.memory_digest.in_(some), f.user_digest.in_(users))
        removed = conn.among(forgotten_conversations.c.id, talks)
        self._removed: dict[str, float] = {row.id: row.forgotten_at for row in removed}
        self._here = {row.id: row for row in conn.among(TALK.id, talks)}

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


def _latest_by_user(conn: Transaction, at: ColumnElement[float], which: ColumnElement[bool]) -> dict[str, float]:
    """The latest of these times, by digest of the user."""
    found = select(forgotten.c.user_digest, func.max(at).label("at")).where(which).group_by(forgotten.c.user_digest)
    return {row.user_digest: row.at for row in conn.execute(found)}


def _users(told: Told) -> list[str]:
    return sorted({marks.digest(scope.user) for _, scope, _ in told})
