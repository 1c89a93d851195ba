"""What was recorded of conversations, for whoever may see it, and what they change of it; and for questions about what
was said."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, case, distinct, func, literal_column, or_, select, tuple_

from semmem.backends.sql import conversation_rows, locks
from semmem.backends.sql.accounts import forget_answers
from semmem.backends.sql.conversation_rows import has_tag, in_scope, remove_empty, row_conversation, row_message, says
from semmem.backends.sql.database import JournalPart, one_read, quiet_write
from semmem.backends.sql.rows import Transaction, lines_text, lines_told, within
from semmem.backends.sql.states import forget_states
from semmem.backends.sql.tables import SAID, TALK, AnyText, conversation_messages, conversations
from semmem.backends.sql.withholding import BEGINNING, Reach, withhold
from semmem.memory import Role, Scope
from semmem.ports.conversations import (
    ConversationCounts,
    ConversationFacets,
    ConversationLimits,
    KeptConversation,
    KeptMessage,
    Matches,
    Wanted,
)
from semmem.ports.talks import Placed, Talk, Unplaced, Utterance

STEPS_MAX = 1000
"""Answers that one chain goes back along."""
_SPOKEN = (Role.USER.value, Role.ASSISTANT.value)
_MAY_BE_SHOWN = SAID.withheld == 0


class SqlConversationReads(JournalPart):
    """ConversationRecords, TalkRecords and TalkPlacing."""

    @one_read
    def conversations(
        self, conn: Transaction, scope: Scope, wanted: Wanted, limits: ConversationLimits
    ) -> list[KeptConversation]:
        asked = [within(conversations, scope), *_narrowed(wanted)]
        if wanted.words:
            newest = select(SAID.conversation_id, SAID.content).where(SAID.user_id == scope.user)
            read = newest.order_by(SAID.turn_at.desc()).limit(limits.search_messages_max).subquery().c
            found = select(read.conversation_id).where(*(says(read.content, word) for word in wanted.words))
            title = and_(*(says(TALK.title, word) for word in wanted.words))
            asked.append(or_(title, TALK.id.in_(found)))
        page = select(conversations).where(*asked).order_by(TALK.updated_at.desc(), TALK.id.desc()).limit(wanted.limit)
        return [row_conversation(row) for row in conn.execute(page)]

    @one_read
    def conversation(self, conn: Transaction, scope: Scope, conversation_id: str) -> KeptConversation | None:
        return _one(conn, in_scope(scope, conversation_id))

    @one_read
    def messages(
        self,
        conn: Transaction,
        scope: Scope,
        conversation_id: str,
        *,
        after: str = "",
        before: str | None = None,
        limit: int = 100,
    ) -> list[KeptMessage]:
        place = SAID.place
        page = select(conversation_messages).where(_in_one(scope, conversation_id)).limit(limit)
        if before is None:
            return [row_message(row) for row in conn.execute(page.where(place > after).order_by(place))]
        last = conn.execute(page.where(place < before).order_by(place.desc()))
        return [row_message(row) for row in last][::-1]

    @one_read
    def chain(self, conn: Transaction, scope: Scope, answer_id: str, *, messages_max: int) -> list[KeptMessage]:
        found: list[KeptMessage] = []
        seen: set[str] = set()
        while answer_id and answer_id not in seen and len(found) < messages_max and len(seen) < STEPS_MAX:
            seen.add(answer_id)
            step = _step_of(conn, scope, answer_id)
            found += reversed(step)
            answer_id = next((message.after for message in step if message.after), "")
        return found[:messages_max][::-1]

    @one_read
    def matches(
        self,
        conn: Transaction,
        scope: Scope,
        conversation_id: str,
        words: Sequence[str],
        limits: ConversationLimits,
        *,
        limit: int,
    ) -> Matches:
        newest = select(SAID.turn_id, SAID.step, SAID.number, SAID.place, SAID.role, SAID.at, SAID.content)
        newest = newest.where(_in_one(scope, conversation_id)).order_by(SAID.place.desc())
        read = newest.limit(limits.search_messages_max).subquery().c
        names = (read.turn_id, read.step, read.number, read.place, read.role, read.at)
        found = select(*names, func.count().over().label("total")).where(*(says(read.content, word) for word in words))
        rows = conn.execute(found.order_by(read.place.desc()).limit(limit)).all()
        return Matches(rows[0].total if rows else 0, [conversation_rows.row_match(row) for row in rows])

    @one_read
    def conversation_facets(self, conn: Transaction, scope: Scope, *, read_max: int, limit: int) -> ConversationFacets:
        newest = select(TALK.project, TALK.tags).where(within(conversations, scope)).order_by(TALK.updated_at.desc())
        projects: Counter[str] = Counter()
        tags: Counter[str] = Counter()
        for row in conn.execute(newest.limit(read_max)):
            projects.update([row.project] if row.project else [])
            tags.update(lines_told(row.tags))
        return ConversationFacets(_most(projects, limit), _most(tags, limit))

    @quiet_write
    def change_conversation(
        self,
        conn: Transaction,
        scope: Scope,
        conversation_id: str,
        *,
        title: str | None,
        tags: Sequence[str] | None,
        now: float,
    ) -> KeptConversation | None:
        locks.user(conn, scope.user)
        told: dict[str, Any] = {"titled_at": now}
        told |= {} if title is None else {"title": title}
        told |= {} if tags is None else {"tags": lines_text(tags)}
        conn.change(conversations, in_scope(scope, conversation_id), **told)
        return _one(conn, in_scope(scope, conversation_id))

    @quiet_write
    def forget_conversation(self, conn: Transaction, scope: Scope, conversation_id: str, *, now: float) -> int | None:
        locks.user(conn, scope.user)
        kept = _one(conn, in_scope(scope, conversation_id))
        if kept is None:
            return None
        conversation_rows.mark_conversations(conn, [(conversation_id, max(now, kept.updated_at))])
        forget_answers(conn, scope.user)
        forget_states(conn, scope.user)
        gone = conversation_rows.remove_messages(conn, SAID.conversation_id == conversation_id)["messages"]
        remove_empty(conn, TALK.id == conversation_id)
        withhold(conn, scope.user, now=now, begun={conversation_id: Reach(BEGINNING, now)})
        return gone

    @one_read
    def conversation_counts(self, conn: Transaction, user: str | None) -> ConversationCounts:
        sums = (TALK.messages, TALK.tokens_in, TALK.tokens_out)
        told = select(func.count(), func.count(distinct(TALK.user_id)), *(func.coalesce(func.sum(s), 0) for s in sums))
        number, users, messages, tokens_in, tokens_out = conn.execute(
            told if user is None else told.where(TALK.user_id == user)
        ).one()
        return ConversationCounts(number, int(messages), users, int(tokens_in), int(tokens_out))

    @one_read
    def kept_conversations(
        self, conn: Transaction, *, after: str, limit: int
    ) -> list[tuple[KeptConversation, list[KeptMessage]]]:
        """The next by id, with all their messages: for another journal, which takes them over."""
        page = select(conversations).where(TALK.id > after).order_by(TALK.id).limit(limit)
        found = []
        for row in conn.execute(page).all():
            mine = SAID.conversation_id == row.id
            said = select(conversation_messages).where(mine).order_by(SAID.place)
            found.append((row_conversation(row), [row_message(each) for each in conn.execute(said)]))
        return found

    @one_read
    def talks_of_time(
        self, conn: Transaction, scope: Scope, *, since: float | None, until: float | None, limit: int
    ) -> list[str]:
        asked: list[ColumnElement[bool]] = [within(conversations, scope)]
        if since is not None:
            asked.append(TALK.updated_at >= since)
        if until is not None:
            asked.append(TALK.created_at < until)
        newest = select(TALK.id).where(*asked).order_by(TALK.updated_at.desc(), TALK.id).limit(limit)
        return list(conn.execute(newest).scalars())

    @one_read
    def talks_holding(
        self, conn: Transaction, scope: Scope, words: Sequence[str], *, messages_max: int, chars_max: int, limit: int
    ) -> list[str]:
        mine = select(TALK.id).where(within(conversations, scope))
        content = func.substr(SAID.content, 1, chars_max, type_=AnyText()).label("content")
        said = (SAID.user_id == scope.user, SAID.role.in_(_SPOKEN), _MAY_BE_SHOWN)
        newest = select(SAID.conversation_id, content).where(*said)
        read = newest.order_by(SAID.turn_at.desc()).limit(messages_max).subquery()
        held = [says(read.c.content, word) for word in words]
        each = [func.max(case((one, 1), else_=0)) for one in held]
        found = select(read.c.conversation_id, *each).where(or_(*held), read.c.conversation_id.in_(mine))
        counted = Counter({row[0]: sum(row[1:]) for row in conn.execute(found.group_by(read.c.conversation_id))})
        return [talk for talk, _ in counted.most_common(limit)]

    @one_read
    def talk_vectors(self, conn: Transaction, scope: Scope, model: str, *, limit: int) -> list[Placed]:
        mine = select(TALK.id).where(within(conversations, scope))
        of_user = (SAID.user_id == scope.user, SAID.role == Role.USER.value, SAID.vector_of == model)
        found = select(SAID.conversation_id, SAID.turn_id, SAID.turn_at, SAID.vector)
        found = found.where(*of_user, SAID.conversation_id.in_(mine))
        rows = conn.execute(found.order_by(SAID.turn_at.desc()).limit(limit))
        return [Placed(row.conversation_id, row.turn_id, row.turn_at, row.vector) for row in rows if row.vector]

    @one_read
    def read_talks(
        self, conn: Transaction, scope: Scope, wanted: Mapping[str, str], *, messages_max: int, chars_max: int
    ) -> list[Talk]:
        these = TALK.id.in_(list(wanted))
        talks: list[Talk] = []
        for row in conn.execute(select(conversations).where(within(conversations, scope), these)):
            said = _utterances(conn, row.id, wanted[row.id], messages_max, chars_max)
            talks.append(Talk(row.id, row.session, row.title, row.updated_at, said))
        return talks

    @one_read
    def unplaced(self, conn: Transaction, model: str, *, limit: int) -> list[Unplaced]:
        without = or_(SAID.vector_of < model, SAID.vector_of > model)  # as ranges of the index
        found = select(SAID.turn_id, SAID.step, SAID.number, SAID.content)
        found = found.where(SAID.role == Role.USER.value, without).limit(limit)
        return [Unplaced((row.turn_id, row.step, row.number), row.content) for row in conn.execute(found)]

    @quiet_write
    def place(self, conn: Transaction, model: str, vectors: Mapping[tuple[str, str, int], bytes]) -> None:
        for (turn, step, number), vector in sorted(vectors.items()):
            this = (SAID.turn_id == turn, SAID.step == step, SAID.number == number)
            conn.change(conversation_messages, *this, vector=vector, vector_of=model)


def _narrowed(wanted: Wanted) -> list[ColumnElement[bool]]:
    asked = [] if wanted.tag is None else [has_tag(wanted.tag)]
    if wanted.since is not None:
        asked.append(TALK.updated_at >= wanted.since)
    if wanted.until is not None:
        asked.append(TALK.created_at <= wanted.until)
    if wanted.before is not None:
        asked.append(tuple_(TALK.updated_at, TALK.id) < wanted.before)
    return asked


def _one(conn: Transaction, which: ColumnElement[bool]) -> KeptConversation | None:
    row = conn.row_of(conversations, which)
    return None if row is None else row_conversation(row)


def _in_one(scope: Scope, conversation_id: str) -> ColumnElement[bool]:
    mine = select(TALK.id).where(in_scope(scope, conversation_id))
    return SAID.conversation_id.in_(mine)


def _most(counted: Counter[str], limit: int) -> list[tuple[str, int]]:
    """The most frequent first, those that are as frequent by name."""
    return sorted(counted.items(), key=lambda each: (-each[1], each[0]))[:limit]


def _step_of(conn: Transaction, scope: Scope, answer_id: str) -> list[KeptMessage]:
    """What a step brought, up to the answer of this name: words, results of tools, the answer. Nothing where the user
    has several answers of this name: it would be a guess which one is meant."""
    named = and_(SAID.answer_id == answer_id, SAID.answer_id != literal_column("''"))  # as the index says it
    this = and_(SAID.user_id == scope.user, named, SAID.role == Role.ASSISTANT.value)
    found = conn.execute(select(conversation_messages).where(this).limit(2)).all()
    if len(found) != 1 or not conn.is_there(conversations, in_scope(scope, found[0].conversation_id)):
        return []
    here = (column == getattr(found[0], column.name) for column in (SAID.conversation_id, SAID.turn_id, SAID.step))
    said = select(conversation_messages).where(*here, SAID.place <= found[0].place).order_by(SAID.place)
    return [row_message(row) for row in conn.execute(said)]


def _utterances(conn: Transaction, talk: str, turn: str, messages_max: int, chars_max: int) -> tuple[Utterance, ...]:
    mine = (SAID.conversation_id == talk, SAID.role.in_(_SPOKEN), _MAY_BE_SHOWN)
    text = func.substr(SAID.content, 1, chars_max, type_=AnyText())
    said = select(SAID.turn_id, SAID.place, SAID.role, text.label("text")).where(*mine)
    rows = list(conn.execute(said.order_by(SAID.place).limit(messages_max)))
    if turn and all(row.turn_id != turn for row in rows):
        begin = select(func.min(SAID.place)).where(*mine, SAID.turn_id == turn).scalar_subquery()
        rows = [*conn.execute(said.where(SAID.place >= begin).order_by(SAID.place).limit(messages_max)), *rows]
    else:
        at = next((at for at, row in enumerate(rows) if row.turn_id == turn), 0)
        rows = rows[at:] + rows[:at]
    return tuple(Utterance(Role(row.role), row.text) for row in rows[:messages_max])
