"""How messages and conversations become rows and come back, what every change of them comes to, and what erasing takes
out of them or turns away. Whoever erases is alone with the user."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Row, Text, and_, func, or_, select, type_coerce

from semmem.backends.sql import marks, tables
from semmem.backends.sql.rows import IDS_MAX, Transaction, lines_text, lines_told, row_scope, scope_row, slices, within
from semmem.backends.sql.tables import SAID, TALK, conversation_messages, conversations, forgotten_conversations, turns
from semmem.backends.sql.withholding import Reach, Reaches, begin_of, widen, withhold
from semmem.memory import Role, Scope, ToolCall
from semmem.ports.conversations import KeptConversation, KeptMessage, Match, conversation_id, message_id, title_of

_TEXTS = ("content", "answers", "model_asked", "model", "backend", "answer_id", "finish_reason", "after")
_ALIKE = (*_TEXTS, "step", "number", "place", "turn_at", "at", "tokens_in", "tokens_out")
"""Columns that are called as the fields of a message are, and hold the same."""
_ALIKE_TALK = (
    *("id", "title", "titled_at", "created_at", "updated_at"),
    *("progress", "last_answer", "withheld_from", "withheld_until"),
)
"""The same of a conversation, but for its figures, which are only read."""
_calls = msgspec.json.Decoder(tuple[ToolCall, ...])
_LIKE = str.maketrans({each: f"!{each}" for each in "!%_"})
_stored = tables.AnyText()
_BACKSLASH = r"\005c"
"""What AnyText stores for one."""


def message_row(message: KeptMessage, conversation_id: str, user: str) -> dict[str, Any]:
    return {
        **{name: getattr(message, name) for name in _ALIKE},
        "turn_id": message.turn,
        "conversation_id": conversation_id,
        "user_id": user,
        "role": message.role.value,
        "cut": int(message.cut),
        "whole": int(message.whole),
        "withheld": int(message.withheld),
        "shown": lines_text(message.shown),
        "calls": msgspec.json.encode(message.calls).decode() if message.calls else "",
    }


def row_message(row: Row[Any]) -> KeptMessage:
    return KeptMessage(
        **{name: getattr(row, name) for name in _ALIKE},
        turn=row.turn_id,
        role=Role(row.role),
        cut=bool(row.cut),
        whole=row.whole,
        shown=lines_told(row.shown),
        withheld=bool(row.withheld),
        calls=_read_calls(row.calls),
    )


def row_match(row: Row[Any]) -> Match:
    return Match(message_id(row.turn_id, row.step, row.number), row.place, Role(row.role), row.at)


def _read_calls(told: str) -> tuple[ToolCall, ...]:
    try:
        return _calls.decode(told) if told else ()
    except msgspec.MsgspecError:
        return ()


def conversation_row(kept: KeptConversation) -> dict[str, Any]:
    alike = {name: getattr(kept, name) for name in _ALIKE_TALK}
    return scope_row(kept.scope) | alike | {"tags": lines_text(kept.tags)}


def row_conversation(row: Row[Any]) -> KeptConversation:
    told = {name: getattr(row, name) for name in (*_ALIKE_TALK, "messages", "tokens_in", "tokens_out")}
    return KeptConversation(scope=row_scope(row), tags=lines_told(row.tags), **told)


def says(column: ColumnElement[str], word: str) -> ColumnElement[bool]:
    """Whether a text of this column has the word. Databases fold the case of plain letters alone: others are looked
    for in the ways in which they are usually written."""
    ways = {word} if word.isascii() else {word, word.lower(), word.upper(), word.capitalize()}
    return or_(*(_has(column, way) for way in sorted(ways)))


def has_tag(tag: str) -> ColumnElement[bool]:
    return type_coerce(TALK.tags, Text).like(_pattern(f"\n{tag}\n"), escape="!")


def _has(column: ColumnElement[str], text: str) -> ColumnElement[bool]:
    """A backslash is looked for as itself: "c" stands in no text for having one, though it stands in its escape."""
    told = func.replace(type_coerce(column, Text), _BACKSLASH, "\\", type_=Text)
    return told.ilike(_pattern(text, _BACKSLASH), escape="!")


def _pattern(text: str, unescaped: str = "") -> str:
    """Against what is in the row, which is the text in a storable form, but for the escape named."""
    stored = _stored.process_bind_param(text, None) or ""  # type: ignore[arg-type]
    return f"%{(stored.replace(unescaped, chr(92)) if unescaped else stored).translate(_LIKE)}%"


def in_scope(scope: Scope, conversation_id: str) -> ColumnElement[bool]:
    return and_(within(conversations, scope), TALK.id == conversation_id)


def remove_messages(conn: Transaction, which: ColumnElement[bool], *, rows_max: int | None = None) -> Counter[str]:
    """These messages, and the conversations of which nothing is left; how many of each. Of the others figures and
    titles are told anew: neither says anything any more of what is gone."""
    keys = (SAID.turn_id, SAID.step, SAID.number)
    found = conn.execute(select(*keys, SAID.conversation_id).where(which).limit(rows_max)).all()
    touched = sorted({row.conversation_id for row in found})
    if rows_max is None:
        conn.remove(conversation_messages, which)
    else:
        for row in found:
            this = and_(*(key == getattr(row, key.name) for key in keys))
            conn.remove(conversation_messages, this)
    gone = told_anew(conn, touched, titles=True)
    return +Counter(messages=len(found), conversations=gone)


def crowd_out(conn: Transaction, user: str, number_max: int) -> int:
    """Beyond so many of a user's conversations those last added to longest ago go; how many went."""
    newest = select(TALK.id).where(TALK.user_id == user).order_by(TALK.updated_at.desc(), TALK.id)
    old = conn.execute(newest.offset(number_max).limit(IDS_MAX)).scalars().all()
    if old:
        conn.remove(conversation_messages, SAID.conversation_id.in_(old))
        conn.remove(conversations, TALK.id.in_(old))
    return len(old)


def remove_empty(conn: Transaction, which: ColumnElement[bool]) -> int:
    """Of these conversations those in which nothing is said; how many."""
    said = select(SAID.turn_id).where(SAID.conversation_id == TALK.id)
    return conn.remove(conversations, which, ~said.exists())


def told_anew(conn: Transaction, ids: Sequence[str], *, titles: bool = False) -> int:
    """Figures and missing titles of these conversations (with ``titles`` also those that nobody gave them), after their
    messages have changed. Empty ones go; how many."""
    gone = 0
    for some in slices(ids):
        these = TALK.id.in_(some)
        gone += remove_empty(conn, these)
        figures: dict[str, ColumnElement[Any]] = {"messages": func.count()}
        figures |= {each.name: func.coalesce(func.sum(each), 0) for each in (SAID.tokens_in, SAID.tokens_out)}
        mine = SAID.conversation_id == TALK.id
        told = {name: select(value).where(mine).scalar_subquery() for name, value in figures.items()}
        conn.change(conversations, these, **told)
        _retitle(conn, these, titles)
    return gone


def _retitle(conn: Transaction, these: ColumnElement[bool], titles: bool) -> None:
    wants = TALK.titled_at.is_(None) if titles else TALK.title == ""
    for row in conn.execute(select(TALK.id, TALK.title).where(these, wants)).all():
        mine = and_(SAID.conversation_id == row.id, SAID.role == Role.USER.value)
        first = select(SAID.content).where(mine).order_by(SAID.place).limit(1)
        title = title_of(conn.execute(first).scalar() or "")
        if title != row.title:
            conn.change(conversations, TALK.id == row.id, title=title)


def forget_said(conn: Transaction, scope: Scope, at: float, *, now: float) -> Counter[str]:
    """All of the scope that was said then or before; how many messages and conversations. A title that somebody gave,
    and tags, go with it, unless they were given later. Answers that may repeat it are withheld."""
    mine = within(conversations, scope)
    theirs = select(TALK.id).where(mine)
    conn.change(conversations, mine, TALK.titled_at <= at, title="", tags="", titled_at=None)
    said = and_(SAID.user_id == scope.user, SAID.conversation_id.in_(theirs), SAID.turn_at <= at)
    begun = _begun(conn, said, now)
    gone = remove_messages(conn, said)
    gone["conversations"] += remove_empty(conn, and_(mine, TALK.created_at <= at))
    withhold(conn, scope.user, now=now, begun=begun.get(scope.user))
    return +gone


def forget_turns_said(conn: Transaction, told: Mapping[str, float], user: str, *, now: float) -> tuple[int, Reaches]:
    """Turns of the user that a memory was learnt from which somebody had erased: what was said in them until then; how
    many messages, and where in their conversations."""
    number, begun = 0, _where_said(conn, told, user, now)
    for turn, at in sorted(told.items()):
        this = and_(SAID.turn_id == turn, SAID.turn_at <= at)
        number += remove_messages(conn, and_(this, SAID.user_id == user))["messages"]
    return number, begun


def _where_said(conn: Transaction, told: Mapping[str, float], user: str, now: float) -> Reaches:
    """Also of turns that are not recorded, or not yet, in conversations that are."""
    begun: Reaches = {}
    for row in conn.among(turns.c.id, sorted(told)):
        if row.user_id == user and row.opened_at is not None and row.opened_at <= told[row.id]:
            widen(begun, conversation_id(row_scope(row)), Reach(begin_of(row.opened_at, row.id), now))
    for row in conn.among(SAID.turn_id, sorted(told)):
        if row.user_id == user and row.turn_at <= told[row.turn_id]:
            widen(begun, row.conversation_id, Reach(row.place, now))
    return begun


def forget_marked_turns_said(conn: Transaction, told: Mapping[str, float]) -> int:
    """What an older copy still has of turns that a memory was learnt from which somebody had erased, by the digests of
    their ids; how many messages."""
    number = 0
    for turn in conn.execute(select(SAID.turn_id).distinct()).scalars().all():
        if (at := told.get(marks.digest(turn))) is None:
            continue
        said = and_(SAID.turn_id == turn, SAID.turn_at <= at)
        begun = _begun(conn, said, at)
        number += remove_messages(conn, said)["messages"]
        for user, reaches in begun.items():
            withhold(conn, user, now=at, begun=reaches)
    return number


def _begun(conn: Transaction, said: ColumnElement[bool], until: float) -> dict[str, Reaches]:
    """Where these messages begin in their conversations, by user."""
    first = select(SAID.user_id, SAID.conversation_id, func.min(SAID.place).label("place")).where(said)
    begun: dict[str, Reaches] = {}
    for row in conn.execute(first.group_by(SAID.user_id, SAID.conversation_id)):
        begun.setdefault(row.user_id, {})[row.conversation_id] = Reach(row.place, until)
    return begun


def mark_conversations(conn: Transaction, marked: Iterable[tuple[str, float]]) -> None:
    """What was said in them then or before is turned away from now on. A mark moves on to a later time, never back."""
    rows = [{"id": each, "forgotten_at": at} for each, at in sorted(marked)]
    conn.raise_times(forgotten_conversations.c.forgotten_at, rows)


def forget_marked_conversations(conn: Transaction) -> Counter[str]:
    """What an older copy still has of conversations that were removed."""
    counts: Counter[str] = Counter()
    for row in conn.execute(select(forgotten_conversations)).all():
        said = and_(SAID.conversation_id == row.id, SAID.turn_at <= row.forgotten_at)
        counts += remove_messages(conn, said)
        older = and_(TALK.id == row.id, TALK.created_at <= row.forgotten_at)
        counts["conversations"] += remove_empty(conn, older)
    return +counts


class Doors:
    """What is erased, of some turns and conversations: whether what was said then may still come in."""

    def __init__(self, conn: Transaction, scopes: Iterable[Scope], turn_ids: Iterable[str], ids: Iterable[str]) -> None:
        self._marks = marks.of_users(conn, {scope.user for scope in scopes})
        digests = {marks.digest(turn): turn for turn in turn_ids}
        self._turns: dict[str, float] = {}
        for row in conn.among(tables.forgotten_memories.c.turn_digest, sorted(digests)):
            turn = digests[row.turn_digest]
            self._turns[turn] = max(row.forgotten_at, self._turns.get(turn, row.forgotten_at))
        found = conn.among(forgotten_conversations.c.id, sorted(set(ids)))
        self._conversations = {row.id: row.forgotten_at for row in found}

    def shut(self, scope: Scope, turn: str, talk: str, at: float) -> bool:
        return (
            at <= self._turns.get(turn, -1.0)
            or at <= self._conversations.get(talk, -1.0)
            or marks.covered(self._marks, scope, at)
        )

    def until(self, scope: Scope, turn: str, at: float) -> float:
        """Until when answers behind it may repeat what was said there then, which is erased."""
        return max(self._turns.get(turn, at), marks.covered_until(self._marks, scope, at))
