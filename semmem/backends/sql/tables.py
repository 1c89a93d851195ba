"""The journal's tables.

One row of ``turns`` takes both halves of a turn. They are two upserts that commute, so it does not matter which
process sends which half, in which order, or how often. Which columns are filled says where the row stands:

=============  ===========================================================================================
lonely         ``opened_at`` is null: an answer whose question did not arrive yet
waiting        opened, in no batch, not done
leased         in a batch that is not finished
done           ``done_at`` is set: its batch is finished, or it was refused before it was in one
erased         ``closing`` is ERASED: only the id is left, so that a half still under way finds the door shut
=============  ==========================================================================================="""

import re
from dataclasses import fields
from typing import Any

import sqlalchemy as sa
from sqlalchemy import BigInteger, Column, Dialect, Double, Index, Integer, LargeBinary, MetaData, Table, Text, and_
from sqlalchemy.dialects import postgresql
from sqlalchemy.types import TypeEngine

from semmem.ports.usage import UsageSum

SCHEMA_VERSION = 2
"""1: turns, batches, answers, ends of sessions, versions. 2: users, accesses, erasures; a file of 1 is extended."""

OPEN, ANSWER_LOST, ANSWERED, REFUSED, ERASED = range(5)
"""How a turn was closed."""

CLOSING_ORDER = (OPEN, ANSWER_LOST, REFUSED, ANSWERED, ERASED)
"""Of two closes the later one in this order wins; of two equal ones the earlier in time."""

NOTED, FORGOTTEN, WITHDRAWN, WHOLLY = range(4)
"""What became of a memory that a turn was made into: nothing yet; somebody had it erased, or took it back; its batch
removed it, and what it said is kept as a version until the turn is pruned. Of a turn that was read: nothing of it was
left to its batch."""

CLOSING = {"answer_lost": ANSWER_LOST, "answered": ANSWERED, "refused": REFUSED}

_UNSTORABLE = re.compile("[\\\\\x00\ud800-\udfff]")
_ESCAPED = re.compile(r"\\([0-9a-f]{4})")

_BYTEWISE = postgresql.TEXT(collation="C")


class AnyText(sa.TypeDecorator[str]):
    """Any Python string, also where the database takes less (NUL in PostgreSQL, lone surrogates anywhere). JSON may
    carry both, and one such name or text must neither fail a whole group commit nor meet another name. The escape is
    one to one: a backslash and four hex digits for each such character and for the backslash itself."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Names are compared by their bytes everywhere, whatever the language of a server is."""
        return _BYTEWISE if dialect.name == "postgresql" else dialect.type_descriptor(Text())

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        # Plain English is by far the most common and does not need the slower search.
        if not value or (value.isascii() and "\\" not in value and "\x00" not in value):
            return value
        return _UNSTORABLE.sub(lambda match: f"\\{ord(match[0]):04x}", value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        return value and as_told(value)


def as_told(stored: str) -> str:
    """A text as it was before it was made storable: where a statement's result comes as the driver gives it."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), stored)


metadata = MetaData()


def _table(name: str, *columns: Column[Any]) -> Table:
    return Table(name, metadata, *columns)


def _keys(*names: str, kind: TypeEngine[Any] | type[TypeEngine[Any]] = AnyText) -> list[Column[Any]]:
    return [Column(name, kind, primary_key=True, autoincrement=False) for name in names]


def _given(kind: type[TypeEngine[Any]], *names: str) -> list[Column[Any]]:
    """Columns that every row says."""
    return [Column(name, kind, nullable=False) for name in names]


def _names(*names: str) -> list[Column[str]]:
    return [Column(name, AnyText, nullable=False, server_default="") for name in names]


def _zero(kind: type[TypeEngine[Any]], *names: str) -> list[Column[Any]]:
    """Figures that begin at nothing."""
    return [Column(name, kind, nullable=False, server_default="0") for name in names]


def _maybe(kind: type[TypeEngine[Any]], *names: str) -> list[Column[Any]]:
    return [Column(name, kind) for name in names]


NARROWING = ("project", "agent", "session")
"""What a scope may name beside its user."""


def _scope_columns() -> list[Column[str]]:
    """An absent project, agent or session is the empty string: null is equal to nothing, and no index finds it."""
    return _names("user_id", *NARROWING)


def _index(name: str, *columns: Column[Any], where: sa.ColumnElement[bool], unique: bool = False) -> None:
    Index(name, *columns, unique=unique, sqlite_where=where, postgresql_where=where)


journal_schema = _table("journal_schema", Column("version", Integer, primary_key=True))

turns = _table(
    "turns",
    *_keys("id"),
    *_scope_columns(),
    Column("session_key", AnyText),
    *_zero(Integer, "ordinal"),
    *_maybe(Double, "opened_at", "seen_at"),
    *_names("request_id", "user_text"),
    Column("closing", Integer, nullable=False, server_default=str(OPEN)),
    Column("closed_at", Double),
    *_maybe(AnyText, "answer", "finish_reason"),
    Column("batch_id", Text),
    Column("done_at", Double),
    *_names("model", "trace"),
)

batches = _table(
    "batches",
    *_keys("id", kind=Text),
    *_scope_columns(),
    *_given(Text, "trigger_word"),
    *_given(Integer, "attempt"),
    *_given(Double, "claimable_at"),
    Column("facts", Text),
    *_zero(Integer, "applied"),
    Column("status", Text),
    Column("finished_at", Double),
)

answers = _table("answers", *_keys("id", "turn_id"), *_given(Double, "answered_at"))
"""The API's names of answers. Whose they are, their turn knows: the same name under two users is two answers."""

said_messages = _table("said_messages", *_keys("id"), *_keys("ordinal", kind=Integer), *_given(Double, "at"))
"""Which messages were journalled or declined (then ``ordinal`` is negative), as bare ids. A row outlives its turn when
the turn is erased, so that what was erased is known when a client resends it, and goes when it is as old as turns that
are pruned. It names nobody: the id is a digest."""

session_ends = _table("session_ends", *_keys("user_id", "session"), *_given(Double, "ended_at"))

session_drifts = _table("session_drifts", *_keys("user_id", "session"), *_given(Double, "drifted_at"))
"""Since when a session is about something else: its turns before that belong together."""

session_pasts = _table("session_pasts", *_keys("user_id", "session"), *_given(Double, "forgotten_at"))
"""When a memory of a session was last forgotten by hand: no summary tells of what was said in it before."""

versions = _table(
    "versions",
    *_keys("user_id", "memory_id"),
    *_keys("version", kind=Integer),
    *_names(*NARROWING),
    *_given(Text, "body"),
)

users = _table("users", *_keys("user_id"), *_zero(Double, "kept_at"))
"""Who may have memories, and when their memories were last gone through."""

accesses = _table("accesses", *_keys("user_id", "memory_id"), *_given(Integer, "used"), *_given(Double, "last_at"))

dropped = _table(
    "dropped",
    *_keys("user_id", "memory_id"),
    *_keys("reason", kind=Text),
    *_given(Integer, "times"),
    *_given(Double, "last_at"),
)
"""How often a new fact was not stored because a memory says it already. One row for each reason, and no content."""

erasures = _table("erasures", *_keys("batch_id", kind=Text), *_keys("memory_id"), *_given(AnyText, "user_id"))
"""What was forgotten while a batch of its user was under way: the batch must not bring it back."""

provisional = _table("provisional", *_keys("turn_id", "memory_id"), *_names("user_id"), *_zero(Integer, "state"))
"""Which memories a turn was made into at once, and what became of each: bare ids, until a batch has learnt from the
turn, or, of what it removed, until the turn is pruned. Without a memory's id: that it was learnt from at once."""

resting = _table("resting", *_keys("batch_id", kind=Text), *_given(Double, "until"), *_maybe(Double, "held_until"))
"""Batches that wait until then for another try, and that nobody works on; ``held_until``: while a hold has taken their
place."""

forgotten = _table(
    "forgotten",
    *_keys("user_digest", *(f"{name}_digest" for name in NARROWING), kind=Text),
    *_given(Double, "forgotten_at"),
    *_zero(Double, "hidden_at", "ahead_at"),
)
"""Until when what was said in a scope is erased. Digests, and the empty text for a name that the scope leaves open.
``hidden_at``: by then no prompt was given its memories any more. ``ahead_at``: what ``forgotten_at`` was by a clock
that was ahead; what was dated by that clock is erased until then."""

forgotten_memories = _table(
    "forgotten_memories",
    *_keys("user_digest", "memory_digest", "turn_digest", kind=Text),
    *_given(Double, "forgotten_at"),
)
"""Single memories that somebody had erased, and the turns they were learnt from, as digests of their ids: an older copy
of either, out of a backup, is known by them."""

pending_erasures = _table(
    "pending_erasures",
    *_keys("id", kind=Text),
    *_scope_columns(),
    *_given(Text, "narrowed", "types"),
    Column("memory_id", AnyText),
    *_given(Double, "forgotten_at"),
)
"""Erasures that were begun and not finished: in clear, since whoever finishes them has to know whose they are.
``narrowed`` names the scope's columns that are given."""

replicas = _table("replicas", *_keys("id", kind=Text), *_given(Double, "seen_at"))
"""Who shares the journal, and when each last showed life."""

obeyed = _table("obeyed", *_keys("erasure_id", "replica_id", kind=Text), *_given(Double, "forgotten_at"))
"""Which replicas hide what is being erased, until when it was said."""

reindexes = _table(
    "reindexes",
    *_keys("store", kind=Text),
    *_given(Text, "source", "target", "signature", "state", "position"),
    *_given(Integer, "users", "users_done", "memories_done", "embedded"),
    *_given(Double, "changed_at"),
    Column("claimed_by", Text),
    *_zero(Double, "claimed_until"),
)
"""How far memories are copied to a collection of another embedding model, and which process is at it. ``position`` is
the digest of a user."""

reindex_writers = _table("reindex_writers", *_keys("replica_id", kind=Text), *_given(Text, "target"))
"""Which replicas write to the new collection as well."""

api_tokens = _table(
    "api_tokens",
    *_keys("id", kind=Text),
    *_given(Text, "role", "label", "user_digest", "token_hash"),
    *_given(Double, "created_at"),
    *_maybe(Double, "expires_at", "revoked_at"),
)
"""Tokens of the management API, none of which can be made from what is here, nor a user read."""

memory_switches = _table(
    "memory_switches",
    *_keys("key", kind=Text),
    *_given(Text, "group_name"),
    *_maybe(Integer, "reading", "storing"),
    *_given(Integer, "number"),
    *_given(Double, "changed_at"),
)
"""For whom reading or storing is switched: 1 on, 0 off, null not said. ``key`` is a digest; users have no
``group_name``. ``number`` rises with each change, so that a process reads what is new to it alone."""

aliases = _table("aliases", *_keys("user_id"), *_given(AnyText, "alias"), *_given(Double, "changed_at"))
"""What people call a user in lists: a label, never an identity."""

votes = _table(
    "votes",
    *_keys("user_id", "memory_id"),
    *_given(Integer, "up", "down"),
    *_given(Double, "last_at"),
    *_given(BigInteger, "number"),
)
"""How often a memory was called helpful, and not. ``number`` rises with each vote, so that a process reads what is new
to it alone."""

api_calls = _table(
    "api_calls",
    *_keys("key", kind=Text),
    *_given(Text, "request", "owner"),
    *_given(Double, "lease_until", "expires_at"),
    *_given(Integer, "keep"),
    Column("status", Integer),
    Column("answer", LargeBinary),
    *_given(Text, "counts"),
)
"""Calls of the management API under idempotency keys. ``key`` and ``request`` are digests under the client's own key,
``owner`` a replica. ``status`` null: under way. ``keep`` 0: the answer must not be kept, since something was erased."""

api_call_users = _table("api_call_users", *_keys("key", "user_digest", kind=Text))
"""Whose content the answers of these calls hold."""

USAGE_GROUP = ("user_name", "project", "endpoint", "model_asked", "model", "provider", "streamed")
CACHE_SUMS = ("cache_reported", "prompt_tokens", "cached_tokens")
USAGE_SUMS = tuple(field.name for field in fields(UsageSum) if field.name != "key")

usage_key = _table("usage_key", *_keys("id", kind=Integer), *_given(Text, "key"))
"""The one key of the digests that stand for users and sessions in the statistics of use."""

usage_requests = _table(
    "usage_requests",
    *_keys("id", kind=Text),
    *_given(Double, "at"),
    *_given(AnyText, *USAGE_GROUP[:-1]),
    *_given(Integer, "streamed"),
    *_given(Text, "session"),
    *_given(BigInteger, "tokens_in", "tokens_out"),
    *_given(Integer, "estimated"),
    *_given(BigInteger, "duration_ms"),
    *_given(Text, "ending"),
    *_given(Integer, "tool_calls", "messages"),
    *_maybe(BigInteger, "prompt_tokens", "cached_tokens"),
)
"""One answered request, in figures. ``user_name`` and ``session`` are keyed digests. The last two are null where the
provider did not report both."""


def _usage_sums(name: str) -> Table:
    return _table(
        name,
        *_keys("began_at", kind=BigInteger),
        *_keys(*USAGE_GROUP[:-1]),
        *_keys("streamed", kind=Integer),
        *_given(BigInteger, *USAGE_SUMS[: -len(CACHE_SUMS)]),
        *_zero(BigInteger, *CACHE_SUMS),
    )


usage_hours, usage_days = _usage_sums("usage_hours"), _usage_sums("usage_days")
"""What requests that began in an hour, or a day of UTC, come to."""

usage_sessions = _table(
    "usage_sessions", *_keys("began_at", kind=BigInteger), *_keys("user_name", "session", kind=Text)
)
"""Which sessions were used on a day."""

conversations = _table(
    "conversations",
    *_keys("id", kind=Text),
    *_scope_columns(),
    *_names("title"),
    Column("titled_at", Double),
    *_names("tags"),
    *_zero(Integer, "messages"),
    *_zero(BigInteger, "tokens_in", "tokens_out"),
    *_given(Double, "created_at", "updated_at"),
    Column("progress", Text, nullable=False, server_default=""),
    *_names("last_answer", "withheld_from"),
    *_zero(Double, "withheld_until"),
)
"""What was said in one session, where that is kept. ``titled_at``: when somebody gave it a title or tags. ``tags``:
each between two line ends. ``progress``: of one that is kept for a model's API, how far it is, up to ``last_answer``
(semmem.ports.continuing). Answers at the place ``withheld_from`` or behind it, in turns begun at ``withheld_until`` or
before, are put into no prompt."""

conversation_messages = _table(
    "conversation_messages",
    *_keys("turn_id"),
    *_keys("step", kind=Text),
    *_keys("number", kind=Integer),
    *_given(Text, "conversation_id"),
    *_given(AnyText, "user_id", "place"),
    *_given(Double, "turn_at", "at"),
    *_given(Text, "role"),
    *_names("content"),
    *_zero(Integer, "cut"),
    *_names("answers", "calls", "model_asked", "model", "backend"),
    *_maybe(BigInteger, "tokens_in", "tokens_out"),
    *_names("answer_id", "finish_reason", "after"),
    *_zero(Integer, "whole"),
    Column("vector", LargeBinary),
    Column("vector_of", Text, nullable=False, server_default=""),
    *_names("shown"),
    *_zero(Integer, "withheld"),
)
"""Messages of conversations. ``place`` orders them. ``calls``: as JSON, empty where there are none. ``vector``: of the
user's words, as float16, by the model that ``vector_of`` names; empty until it is made. ``whole``: of an answer, a
word of Whole (semmem.ports.conversations). ``shown``: the ids of what its request was shown, each between two line
ends. ``withheld``: it is put into no prompt."""

forgotten_conversations = _table("forgotten_conversations", *_keys("id", kind=Text), *_given(Double, "forgotten_at"))
"""Conversations that somebody had removed: what was said in them until then is turned away, from older copies too."""

session_states = _table(
    "session_states",
    *_keys("user_id", "session"),
    *_keys("turns", kind=Integer),
    *_given(Integer, "replaced"),
    *_given(Text, "digest"),
    *_given(Double, "made_at", "expires_at"),
    *_given(Text, "made_by"),
    *_given(AnyText, "body"),
)
"""What stands for the older part of a long session. ``body`` is JSON. All of it can be made again of what the client
sends, so whatever is erased of a user takes all of the user's with it."""

shown_blocks = _table(
    "shown_blocks",
    *_keys("user_id"),
    *_keys("session", "anchor", kind=Text),
    *_given(Double, "shown_at", "expires_at"),
    *_given(AnyText, "body"),
)
"""What sessions were shown. ``session`` and ``anchor`` are digests, ``body`` is a ShownBlock as JSON; as with the
states, all of it goes with whatever is erased of a user."""

request_log = _table(
    "request_log",
    *_keys("key", kind=Text),
    *_scope_columns(),
    *_names("request_id"),
    *_given(Double, "at"),
    *_names("outcome", "answer", "body"),
)
"""How requests went: ``body`` and ``answer`` are the halves as JSON (semmem.ports.request_log), either may come first.
Without its request an answer has no user, and goes with its age."""

SAID, TALK = conversation_messages.c, conversations.c
"""Columns: of what was said in conversations, and of these themselves."""

STATISTICS = (accesses, dropped, votes)
"""What is counted of single memories, beside their earlier versions."""
SESSION_MARKS = (session_ends.c.ended_at, session_drifts.c.drifted_at, session_pasts.c.forgotten_at)
"""What is known of a session as a whole, by when it was."""
MARKS = (forgotten, forgotten_memories, forgotten_conversations)
"""What is known of erasures that are done."""

WAITING = and_(turns.c.opened_at.is_not(None), turns.c.batch_id.is_(None), turns.c.done_at.is_(None))
IN_BATCH = and_(turns.c.batch_id.is_not(None), turns.c.done_at.is_(None))
LONELY = and_(turns.c.opened_at.is_(None), turns.c.done_at.is_(None))
LIVE = batches.c.status.is_(None)
NOT_LIVE = erasures.c.batch_id.not_in(sa.select(batches.c.id).where(LIVE))
"""What was forgotten under batches and holds that have ended."""

# Done turns are most of the table and in none of the indexes that claiming reads.
_WAITING_BY = (turns.c.user_id, turns.c.session, turns.c.opened_at, turns.c.seen_at, turns.c.closed_at)
_index("turns_waiting", *_WAITING_BY, where=WAITING)
_index("turns_oldest", turns.c.opened_at, where=WAITING)
_index("turns_in_batch", turns.c.batch_id, where=IN_BATCH)
_index("turns_lonely", turns.c.closed_at, where=LONELY)
_index("turns_done", turns.c.done_at, turns.c.closing, where=turns.c.done_at.is_not(None))
_index("turns_seen", turns.c.user_id, turns.c.session_key, turns.c.seen_at, where=turns.c.session_key.is_not(None))
Index("turns_session", turns.c.user_id, turns.c.session, turns.c.opened_at)
# The promise that one user's batches never overlap is kept by the database itself.
_index("batches_live", batches.c.user_id, where=LIVE, unique=True)
_index("batches_claimable", batches.c.claimable_at, where=LIVE)
Index("answers_turn", answers.c.turn_id)
Index("provisional_memory", provisional.c.user_id, provisional.c.memory_id)
Index("users_kept", users.c.kept_at)
Index("api_calls_expiry", api_calls.c.expires_at)
Index("api_call_users_user", api_call_users.c.user_digest)
Index("usage_requests_at", usage_requests.c.at)
Index("usage_requests_user", usage_requests.c.user_name)
Index("usage_hours_user", usage_hours.c.user_name)
Index("usage_days_user", usage_days.c.user_name)
Index("usage_sessions_user", usage_sessions.c.user_name)
Index("memory_switches_number", memory_switches.c.number)
Index("votes_number", votes.c.number)
Index("conversations_user", TALK.user_id, TALK.updated_at, TALK.id)
Index("conversations_session", TALK.user_id, TALK.session)
_index("conversations_empty", TALK.updated_at, where=TALK.messages == 0)
Index("conversation_messages_place", SAID.conversation_id, SAID.place)
Index("conversation_messages_user", SAID.user_id, SAID.turn_at)
Index("conversation_messages_at", SAID.turn_at)
_index("conversation_messages_vector", SAID.vector_of, where=SAID.role == "user")
_index("conversation_messages_answer", SAID.user_id, SAID.answer_id, where=SAID.answer_id != "")
_index("conversation_messages_shown", SAID.user_id, where=SAID.shown != "")
Index("session_states_expiry", session_states.c.expires_at)
Index("shown_blocks_expiry", shown_blocks.c.expires_at)
Index("request_log_user", request_log.c.user_id, request_log.c.at)
Index("request_log_id", request_log.c.request_id, request_log.c.at)
Index("request_log_at", request_log.c.at)
_index("batches_finished", batches.c.finished_at, where=batches.c.status.is_not(None))
Index("said_messages_at", said_messages.c.at)
