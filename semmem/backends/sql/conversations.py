"""Conversations as they are recorded: halves come in any order, and belong to turns that the journal has.

The user's own words are read from the journal's turn, and whose they are. So a half whose turn is erased finds that
out here, wherever it waited; one whose turn is not here yet waits on, and one of a turn that never comes is dropped by
whoever brings it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, case, literal_column, or_, select

from semmem.backends.sql import conversation_rows, locks
from semmem.backends.sql.conversation_rows import Doors, conversation_row, crowd_out, message_row, remove_messages
from semmem.backends.sql.database import JournalPart, one_read, quiet_write
from semmem.backends.sql.rows import Prepared, Transaction, later, row_scope, upsert_into
from semmem.backends.sql.tables import ERASED, SAID, TALK, conversation_messages, conversations, turns
from semmem.backends.sql.withholding import Reach, Reaches, flagged, hold, late, widen, withheld_before
from semmem.memory import Role, Scope
from semmem.ports.continuing import BROKEN, DONE, FAILED, OPEN, Continued
from semmem.ports.conversations import (
    USER_NUMBER,
    ConversationLimits,
    KeptConversation,
    KeptMessage,
    Recorded,
    Said,
    SaidHalf,
    Step,
    conversation_id,
    place_of,
)
from semmem.ports.talks import TALK_ID

FULL, CROWDED = "messages_max", "per_user_max"
"""Reasons for which something had to make room."""
_EMPTY: ColumnElement[str] = literal_column("''")
_BEGIN = Step("", USER_NUMBER, 0.0)
"""Of the user's own words, in every turn."""


class SqlConversations(JournalPart):
    """ConversationRecording and what chains read."""

    @quiet_write
    def record_said(self, conn: Transaction, halves: Sequence[SaidHalf], limits: ConversationLimits) -> Recorded:
        ids = sorted({turn for half in halves for turn in (half.turn_id, *half.earlier)})
        locks.users_shared(conn, {row.user_id for row in _turns(conn, ids).values() if row.user_id})
        known = _turns(conn, ids)  # once more: an erasure may have come between
        waiting = tuple(half for half in halves if not _is_here(known.get(half.turn_id)))
        scopes = {turn: row_scope(row) for turn, row in known.items() if row.closing != ERASED and row.user_id}
        doors = Doors(conn, scopes.values(), scopes, (conversation_id(scope) for scope in scopes.values()))
        open_halves = [half for half in halves if half not in waiting and _is_open(half, scopes, doors)]
        messages = list(_told(open_halves, known, scopes, doors, limits.message_chars_max))
        kept = _write(conn, messages)
        touched = sorted({conversation_id(scope) for scope, _ in messages})
        conversation_rows.told_anew(conn, touched)
        settle_claims(conn, [(scopes[half.turn_id], half) for half in open_halves if half.step.claim])
        removed = _make_room(conn, touched, {scope.user for scope, _ in messages}, limits)
        away = len(halves) - len(waiting) - len(open_halves)
        return Recorded(kept, waiting, away, removed)

    @quiet_write
    def put_conversation(
        self, conn: Transaction, kept: KeptConversation, messages: Sequence[KeptMessage], limits: ConversationLimits
    ) -> KeptConversation | None:
        locks.users_shared(conn, [kept.scope.user])
        doors = Doors(conn, [kept.scope], [message.turn for message in messages], [kept.id])
        mine: list[tuple[str, Scope, KeptMessage]] = []
        erased: Reaches = {}
        for message in messages:
            if doors.shut(kept.scope, message.turn, kept.id, message.turn_at):
                until = doors.until(kept.scope, message.turn, message.turn_at)
                widen(erased, kept.id, Reach(message.place, until))
            else:
                mine.append((kept.id, kept.scope, message))
        if not mine and (messages or doors.shut(kept.scope, "", kept.id, kept.created_at)):
            return None
        _CONVERSATIONS.run(conn, [conversation_row(kept)])
        if mine:
            _write_messages(conn, mine, erased, copied=True)
            conversation_rows.told_anew(conn, [kept.id])
        _make_room(conn, [kept.id] if mine else [], [kept.scope.user], limits)
        row = conn.row_of(conversations, conversation_rows.in_scope(Scope(kept.scope.user), kept.id))
        return None if row is None else conversation_rows.row_conversation(row)

    @quiet_write
    def prune_conversations(self, conn: Transaction, *, said_before: float) -> Counter[str]:
        """As in the port, at most ``prune_rows_max`` messages at a time; whoever calls goes on until there are none."""
        old = SAID.turn_at < said_before
        gone = remove_messages(conn, old, rows_max=self._limits.prune_rows_max)
        if not gone:
            is_empty = TALK.messages == literal_column("0")  # as the index says it
            conversation_rows.remove_empty(conn, and_(is_empty, TALK.updated_at < said_before))
        return gone

    @one_read
    def continued(self, conn: Transaction, scope: Scope) -> Continued | None:
        name = conversation_id(scope)
        row = conn.row_of(conversations, TALK.id == name, TALK.user_id == scope.user)
        if row is not None:
            return Continued(name, row.progress, row.last_answer, row.messages)
        return _elsewhere(conn, scope)

    @quiet_write
    def claim_conversation(
        self, conn: Transaction, scope: Scope, seen: Continued | None, claim: str, *, now: float, per_user_max: int
    ) -> bool:
        locks.users_shared(conn, [scope.user])
        name = conversation_id(scope)
        if Doors(conn, [scope], [], [name]).shut(scope, "", name, now):
            return False
        if seen is None:
            return _begun(conn, scope, claim, now, per_user_max)
        # Only where nothing has changed since: another request, its answer, or an erasure may have come between.
        same = (TALK.progress == seen.progress, TALK.last_answer == seen.last_answer, TALK.messages == seen.messages)
        return conn.change(conversations, TALK.id == seen.id, *same, progress=f"{OPEN} {claim}") == 1


def _turns(conn: Transaction, ids: Sequence[str]) -> dict[str, Row[Any]]:
    return {row.id: row for row in conn.among(turns.c.id, ids)}


def _is_here(turn: Row[Any] | None) -> bool:
    """Opened, or erased: then nothing else is known of it. An answer alone is not enough."""
    return turn is not None and (turn.opened_at is not None or turn.closing == ERASED)


def _is_open(half: SaidHalf, scopes: Mapping[str, Scope], doors: Doors) -> bool:
    scope = scopes.get(half.turn_id)
    at = half.step.asked_at
    return scope is not None and not doors.shut(scope, half.turn_id, conversation_id(scope), at)


def _told(
    halves: Iterable[SaidHalf], known: Mapping[str, Row[Any]], scopes: Mapping[str, Scope], doors: Doors, chars_max: int
) -> Iterable[tuple[Scope, KeptMessage]]:
    """The user's words of each turn, and what the halves bring."""
    for half in halves:
        for turn in (*half.earlier, half.turn_id):
            scope, row = scopes.get(turn), known.get(turn)
            if scope is None or row is None or row.opened_at is None:
                continue
            if not doors.shut(scope, turn, conversation_id(scope), row.opened_at):
                begins = turn == half.turn_id and not half.step.name
                said = Said(USER_NUMBER, Role.USER, row.user_text, row.opened_at)
                yield scope, _kept(said, _BEGIN, row, half.after if begins else "", chars_max)
        row, scope = known[half.turn_id], scopes[half.turn_id]
        for said in half.messages:
            yield scope, _kept(said, half.step, row, half.after, chars_max)


def _kept(said: Said, step: Step, turn: Row[Any], after: str, chars_max: int) -> KeptMessage:
    told = {each.name: getattr(said, each.name) for each in fields(said)}
    told |= {"content": said.content[:chars_max], "cut": said.cut or len(said.content) > chars_max}
    return KeptMessage(
        **told,
        place=place_of(turn.opened_at, turn.id, Step(step.name, said.number, step.asked_at)),
        turn=turn.id,
        step=step.name,
        model_asked="" if said.role is Role.TOOL else turn.model,
        after=after,
        turn_at=turn.opened_at,
        shown=step.shown,
    )


def _write(conn: Transaction, messages: Sequence[tuple[Scope, KeptMessage]]) -> int:
    """How many are new. Conversations first and in one order: whoever has their rows is alone with their figures."""
    begun: dict[str, KeptConversation] = {}
    for scope, message in messages:
        name = conversation_id(scope)
        old = begun.get(name)
        began, ended = (old.created_at, old.updated_at) if old else (message.at, message.at)
        begun[name] = KeptConversation(name, scope, "", min(began, message.at), max(ended, message.at))
    if not begun:
        return 0
    _CONVERSATIONS.run(conn, [conversation_row(begun[name]) for name in sorted(begun)])
    before = _number(conn, sorted(begun))
    _write_messages(conn, [(conversation_id(scope), scope, message) for scope, message in messages])
    return _number(conn, sorted(begun)) - before


def _write_messages(
    conn: Transaction, told: Sequence[tuple[str, Scope, KeptMessage]], erased: Reaches | None = None, **origin: bool
) -> None:
    """Into conversations whose rows the caller has: so nobody else withholds anything of them meanwhile. ``erased``:
    what is left out of them."""
    reaches = withheld_before(conn, {talk for talk, _, _ in told})
    news = late(conn, told, **origin)
    for talk, reach in (erased or {}).items():
        widen(news, talk, reach)
    rows = [message_row(flagged(message, reaches.get(talk)), talk, scope.user) for talk, scope, message in told]
    rows.sort(key=lambda row: (row["turn_id"], row["step"], row["number"], row["at"]))
    _MESSAGES.run(conn, rows)
    hold(conn, news)


def _number(conn: Transaction, ids: Sequence[str]) -> int:
    return conn.count(conversation_messages, SAID.conversation_id.in_(ids))


def _conversations_upsert(dialect: str) -> Any:
    """Of two times the earlier beginning stays and the later end. How far it is only says who knows it."""
    statement = upsert_into(dialect, conversations)
    old, new = TALK, statement.excluded
    earlier = or_(old.withheld_from == _EMPTY, old.withheld_from > new.withheld_from)
    from_earlier = and_(new.withheld_from != _EMPTY, earlier)
    return statement.on_conflict_do_update(
        index_elements=["id"],
        set_={
            "created_at": case((new.created_at < old.created_at, new.created_at), else_=old.created_at),
            "updated_at": later(old.updated_at, new.updated_at),
            "progress": case((new.progress != "", new.progress), else_=old.progress),
            "withheld_from": case((from_earlier, new.withheld_from), else_=old.withheld_from),
            "withheld_until": later(old.withheld_until, new.withheld_until),
        },
    )


_OF_AN_ANSWER = ("calls", "model", "tokens_in", "tokens_out", "answer_id", "finish_reason", "whole")
_REPLACED = (*_OF_AN_ANSWER, "at", "content", "cut", "backend", "withheld")


def _messages_upsert(dialect: str) -> Any:
    """A later answer at the same place replaces an earlier one; what users and tools said stays as it was first. What
    they go on from only the request's half says, and of what was shown nothing is unlearnt."""
    statement = upsert_into(dialect, conversation_messages)
    old, new = SAID, statement.excluded
    is_later = and_(new.role == Role.ASSISTANT.value, old.at <= new.at)
    says_after = and_(old.after == _EMPTY, new.after != _EMPTY)
    return statement.on_conflict_do_update(
        index_elements=["turn_id", "step", "number"],
        set_={
            **{name: case((is_later, new[name]), else_=old[name]) for name in _REPLACED},
            "after": case((says_after, new.after), else_=old.after),
            "shown": case((and_(is_later, new.shown != _EMPTY), new.shown), else_=old.shown),
        },
        where=and_(old.conversation_id == new.conversation_id, or_(is_later, says_after)),
    )


_ANY = KeptConversation("", Scope("-"), "", 0.0, 0.0)
_ANY_MESSAGE = KeptMessage(0, Role.USER, "", 0.0, place="", turn="", step="")
_CONVERSATIONS = Prepared(_conversations_upsert, conversation_row(_ANY))
_MESSAGES = Prepared(_messages_upsert, message_row(_ANY_MESSAGE, "", ""))


def _make_room(
    conn: Transaction, touched: Sequence[str], users: Iterable[str], limits: ConversationLimits
) -> Counter[str]:
    """Of too many messages or conversations the oldest go."""
    removed: Counter[str] = Counter()
    full = and_(TALK.id.in_(touched), TALK.messages > limits.messages_max)
    for name in conn.execute(select(TALK.id).where(full)).scalars().all():
        mine = SAID.conversation_id == name
        newest = select(SAID.place).where(mine).order_by(SAID.place.desc())
        last = newest.limit(1).offset(limits.messages_max).scalar_subquery()
        removed[FULL] += remove_messages(conn, and_(mine, SAID.place <= last))["messages"]
    for user in sorted(users):
        removed[CROWDED] += crowd_out(conn, user, limits.per_user_max)
    return +removed


def _elsewhere(conn: Transaction, scope: Scope) -> Continued | None:
    """What else of the user's has this name: a conversation of another project or agent, which is none of this
    request's, or a recorded or imported one by its id, whose history nobody vouches for."""
    session = scope.session or ""
    named = TALK.session == session
    if session.startswith(TALK_ID) and session.isascii() and session.isprintable():
        named = or_(named, TALK.id == session)
    found = conn.execute(select(TALK.id).where(TALK.user_id == scope.user, named)).scalars().all()
    if not found:
        return None
    return Continued(found[0], BROKEN if session in found else "")


def _begun(conn: Transaction, scope: Scope, claim: str, now: float, per_user_max: int) -> bool:
    kept = KeptConversation(conversation_id(scope), scope, "", now, now, progress=f"{OPEN} {claim}")
    row = conn.upsert_into(conversations).values(conversation_row(kept))
    begins = conn.execute(row.on_conflict_do_nothing().returning(TALK.id)).one_or_none() is not None
    if begins:
        crowd_out(conn, scope.user, per_user_max)
    return begins


def settle_claims(conn: Transaction, halves: Iterable[tuple[Scope, SaidHalf]]) -> None:
    """What became of requests that named a conversation. The conversations' rows are the caller's by now."""
    for scope, half in halves:
        claim, this = half.step.claim, TALK.id == conversation_id(scope)
        if half.failed:
            conn.change(conversations, this, TALK.progress == f"{OPEN} {claim}", progress=f"{FAILED} {claim}")
        elif answer := next((said for said in half.messages if said.role is Role.ASSISTANT), None):
            if answer.whole and answer.answer_id:
                waits = TALK.progress.in_([f"{OPEN} {claim}", f"{FAILED} {claim}"])
                conn.change(conversations, this, waits, progress=f"{DONE} {claim}", last_answer=answer.answer_id)
            else:  # no history can have it, as when its request was given none from here: that ends it for good
                conn.change(conversations, this, TALK.progress != "", progress=BROKEN)
