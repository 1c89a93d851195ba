"""How messages and conversations become rows and come back, and what every change of them comes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, Text, and_, delete, func, or_, select, type_coerce, update

from semmem.backends.sql.rows import IDS_MAX, row_scope, scope_row, slices, within
from semmem.backends.sql.tables import AnyText, conversation_messages, conversations
from semmem.memory import Role, Scope, ToolCall
from semmem.ports.conversations import KeptConversation, KeptMessage, Match, message_id, title_of

_TEXTS = ("content", "answers", "model_asked", "model", "backend", "answer_id", "finish_reason", "after")
_ALIKE = (*_TEXTS, "step", "number", "place", "turn_at", "at", "tokens_in", "tokens_out")
"""Columns that are called as the fields of a message are, and hold the same."""
_HOW_FAR = ("progress", "last_answer", "withheld_from", "withheld_until")
_calls = msgspec.json.Decoder(tuple[ToolCall, ...])
_LIKE = str.maketrans({each: f"!{each}" for each in "!%_"})
_stored = AnyText()
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
    names = ("id", "title", "titled_at", "created_at", "updated_at", *_HOW_FAR)
    return scope_row(kept.scope) | {name: getattr(kept, name) for name in names} | {"tags": lines_text(kept.tags)}


def row_conversation(row: Row[Any]) -> KeptConversation:
    said = ("id", "title", "created_at", "updated_at", "messages", "tokens_in", "tokens_out", "titled_at")
    told = {name: getattr(row, name) for name in (*said, *_HOW_FAR)}
    return KeptConversation(scope=row_scope(row), tags=lines_told(row.tags), **told)


def lines_text(names: Sequence[str]) -> str:
    """Tags, or ids, which have no line ends in them."""
    return "".join(f"\n{name}" for name in names) + "\n" if names else ""


def lines_told(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split("\n") if name)


def says(column: ColumnElement[str], word: str) -> ColumnElement[bool]:
    """Whether a text of this column has the word. Databases fold the case of plain letters alone: others are looked
    for in the ways in which they are usually written."""
    ways = {word} if word.isascii() else {word, word.lower(), word.upper(), word.capitalize()}
    return or_(*(_has(column, way) for way in sorted(ways)))


def has_tag(tag: str) -> ColumnElement[bool]:
    return type_coerce(conversations.c.tags, Text).like(_pattern(f"\n{tag}\n"), escape="!")


def _has(column: ColumnElement[str], text: str) -> ColumnElement[bool]:
    """A backslash is looked for as itself: "c" stands in no text for having one, though it stands in its escape."""
    told = func.replace(type_coerce(column, Text), _BACKSLASH, "\\", type_=Text)
    return told.ilike(_pattern(text, _BACKSLASH), escape="!")


def _pattern(text: str, unescaped: str = "") -> str:
    """Against what is in the row, which is the text in a storable form, but for the escape named."""
    stored = _stored.process_bind_param(text, None) or ""  # type: ignore[arg-type]
    return f"%{(stored.replace(unescaped, chr(92)) if unescaped else stored).translate(_LIKE)}%"


def in_scope(scope: Scope, conversation_id: str) -> ColumnElement[bool]:
    return and_(within(conversations, scope), conversations.c.id == conversation_id)


# --- what every change comes to --------------------------------------------------------------------------------------


def remove_messages(conn: Connection, which: ColumnElement[bool], *, rows_max: int | None = None) -> Counter[str]:
    """These messages, and the conversations of which nothing is left; how many of each. Of the others figures and
    titles are told anew: neither says anything any more of what is gone."""
    keys = (conversation_messages.c.turn_id, conversation_messages.c.step, conversation_messages.c.number)
    found = conn.execute(select(*keys, conversation_messages.c.conversation_id).where(which).limit(rows_max)).all()
    touched = sorted({row.conversation_id for row in found})
    if rows_max is None:
        conn.execute(delete(conversation_messages).where(which))
    else:
        for row in found:
            this = and_(*(key == getattr(row, key.name) for key in keys))
            conn.execute(delete(conversation_messages).where(this))
    gone = told_anew(conn, touched, titles=True)
    return +Counter(messages=len(found), conversations=gone)


def crowd_out(conn: Connection, user: str, number_max: int) -> int:
    """Beyond so many of a user's conversations those last added to longest ago go; how many went."""
    newest = select(conversations.c.id).where(conversations.c.user_id == user)
    newest = newest.order_by(conversations.c.updated_at.desc(), conversations.c.id)
    old = conn.execute(newest.offset(number_max).limit(IDS_MAX)).scalars().all()
    if old:
        conn.execute(delete(conversation_messages).where(conversation_messages.c.conversation_id.in_(old)))
        conn.execute(delete(conversations).where(conversations.c.id.in_(old)))
    return len(old)


def remove_empty(conn: Connection, which: ColumnElement[bool]) -> int:
    """Of these conversations those in which nothing is said; how many."""
    mine = conversation_messages.c.conversation_id == conversations.c.id
    empty = ~select(conversation_messages.c.turn_id).where(mine).exists()
    return conn.execute(delete(conversations).where(which, empty)).rowcount


def told_anew(conn: Connection, ids: Sequence[str], *, titles: bool = False) -> int:
    """Figures and missing titles of these conversations (with ``titles`` also those that nobody gave them), after their
    messages have changed. Empty ones go; how many."""
    gone = 0
    for some in slices(ids):
        these = conversations.c.id.in_(some)
        gone += remove_empty(conn, these)
        mine = conversation_messages.c.conversation_id == conversations.c.id
        figures = {
            "messages": func.count(),
            "tokens_in": func.coalesce(func.sum(conversation_messages.c.tokens_in), 0),
            "tokens_out": func.coalesce(func.sum(conversation_messages.c.tokens_out), 0),
        }
        told = {name: select(value).where(mine).scalar_subquery() for name, value in figures.items()}
        conn.execute(update(conversations).where(these).values(told))
        _retitle(conn, these, titles)
    return gone


def _retitle(conn: Connection, these: ColumnElement[bool], titles: bool) -> None:
    wants = conversations.c.titled_at.is_(None) if titles else conversations.c.title == ""
    for row in conn.execute(select(conversations.c.id, conversations.c.title).where(these, wants)).all():
        mine = and_(conversation_messages.c.conversation_id == row.id, conversation_messages.c.role == Role.USER.value)
        first = select(conversation_messages.c.content).where(mine).order_by(conversation_messages.c.place).limit(1)
        title = title_of(conn.execute(first).scalar() or "")
        if title != row.title:
            conn.execute(update(conversations).where(conversations.c.id == row.id).values(title=title))
