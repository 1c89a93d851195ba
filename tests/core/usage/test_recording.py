"""Rows on their way: made from a request and its answer, kept waiting, written once, gone with their user."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.backends.sql.marks import digest
from semmem.background import Tasks
from semmem.background.writers import UsageRetention, UsageWriter
from semmem.dialects import BY_NAME
from semmem.memory import Answer, Conversation, Message, PromptCache, Role, Scope, TurnEnding
from semmem.ports.erasure import Mark
from semmem.ports.errors import JournalError
from semmem.ports.usage import DAY_S, Span, UsageRow, session_name, user_name
from semmem.usage.meter import OTHER, KnownNames, Meter
from semmem.usage.report import Prices
from tests.support.journal_samples import Place, erase, rows_of
from tests.support.usage import KEY, PRICES, rows, script

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
ALL = Span(0, 4_000_000_000 // DAY_S * DAY_S)
ADA = Scope("ada", "atlas", None, "s1")


@pytest.fixture
async def journal(place: Place) -> AsyncIterator[SqlJournal]:
    made = SqlJournal(place)
    await made.open()
    yield made
    await made.close()


def metered(
    answer: Answer | None, *, said: str = "What is tea?", asked: str = "auto", ending: TurnEnding = TurnEnding.ANSWERED
) -> UsageRow:
    made: list[UsageRow] = []
    meter = Meter(KEY, PRICES, KnownNames(100), made.append)
    conversation = Conversation((Message(Role.USER, said),), model=asked)
    begun = meter.asked(ADA, conversation, 1000.0, speaks=True, injected_tokens=7)
    meter.answered(begun, "chat", ending, answer, 1002.5)
    return made[0]


def read(dialect: str, content_type: str, body: bytes) -> Answer:
    reader = BY_NAME[dialect].reader(content_type=content_type, answer_bytes_max=1000, body_bytes_max=10_000)
    assert reader is not None
    reader.feed(body)
    return reader.end()


def events(*data: Any) -> bytes:
    return b"".join(b"data: " + msgspec.json.encode(each) + b"\n\n" for each in data)


CHAT_USAGE = {"prompt_tokens": 11, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 8}}
CHAT = {
    "model": "gpt-4o-mini",
    "usage": CHAT_USAGE,
    "choices": [
        {"finish_reason": "tool_calls", "message": {"content": None, "tool_calls": [{"id": "a"}, {"id": "b"}]}}
    ],
}
CHUNKS = [
    {"model": "gpt-4o-mini", "choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a"}]}}]},
    {"model": "gpt-4o-mini", "choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}}]},
    {"model": "gpt-4o-mini", "choices": [{"delta": {"tool_calls": [{"index": 1}]}, "finish_reason": "tool_calls"}]},
    {"model": "gpt-4o-mini", "choices": [], "usage": CHAT_USAGE},
]
MESSAGE_USAGE = {"input_tokens": 11, "output_tokens": 5, "cache_read_input_tokens": 8, "cache_creation_input_tokens": 2}
MESSAGE = {
    "model": "gpt-4o-mini",
    "stop_reason": "tool_use",
    "usage": MESSAGE_USAGE,
    "content": [{"type": "text", "text": "Let me look"}, {"type": "tool_use"}, {"type": "tool_use"}],
}
MESSAGE_EVENTS = [
    {"type": "message_start", "message": {"model": "gpt-4o-mini", "content": [], "usage": MESSAGE_USAGE}},
    {"type": "content_block_start", "content_block": {"type": "tool_use"}},
    {"type": "content_block_start", "content_block": {"type": "tool_use"}},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}},
    {"type": "message_stop"},
]
RESPONSE = {
    "model": "gpt-4o-mini",
    "status": "completed",
    "usage": {"input_tokens": 11, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 8}},
    "output": [{"type": "function_call"}, {"type": "function_call"}],
}


@pytest.mark.parametrize(
    ("dialect", "content_type", "body"),
    [
        ("chat", "application/json", msgspec.json.encode(CHAT)),
        ("chat", "text/event-stream", events(*CHUNKS)),
        ("messages", "application/json", msgspec.json.encode(MESSAGE)),
        ("messages", "text/event-stream", events(*MESSAGE_EVENTS)),
        ("responses", "application/json", msgspec.json.encode(RESPONSE)),
        ("responses", "text/event-stream", events({"type": "response.completed", "response": RESPONSE})),
    ],
)
def test_every_dialect_tells_model_tokens_and_calls(dialect: str, content_type: str, body: bytes) -> None:
    row = metered(read(dialect, content_type, body), ending=TurnEnding.CONTINUES)
    assert (row.model_asked, row.model, row.provider) == ("auto", "gpt-4o-mini", "openai")
    assert (row.tokens_in, row.tokens_out, row.estimated, row.tool_calls) == (11, 5, False, 2)
    assert (row.duration_ms, row.messages) == (2500, 1)
    assert row.prompt_cache == PromptCache(21 if dialect == "messages" else 11, 8)


@pytest.mark.parametrize("calls", [7, "x", {}, [], [None], [{"index": -1}], [{"index": 10**9}], [{"index": "0"}]])
def test_odd_calls_of_tools_cost_no_answer(calls: Any) -> None:
    chunk = {"choices": [{"delta": {"content": "Hi", "tool_calls": calls}, "finish_reason": "stop"}], "model": 3}
    answer = read("chat", "text/event-stream", events(chunk))
    assert (answer.text, answer.complete, answer.model) == ("Hi", True, "")
    assert answer.tool_calls <= 1


def test_what_the_provider_does_not_count_is_estimated_and_marked() -> None:
    row = metered(Answer("x" * 41, True), said="y" * 81)
    assert (row.tokens_in, row.tokens_out, row.estimated) == (21 + 7, 11, True)


@pytest.mark.parametrize("told", [-5, 10**30])
def test_what_a_provider_says_fits_the_tables(told: int) -> None:
    row = metered(Answer("", True, input_tokens=told, output_tokens=told))
    assert 0 <= row.tokens_in == row.tokens_out <= 10**9


def test_a_name_that_is_none_or_too_long_is_another() -> None:
    assert metered(Answer("", True, model="x" * 201)).model == OTHER
    assert metered(None, asked="bad\nname").model_asked == OTHER
    assert metered(None, asked="").model == ""


def test_names_that_clients_make_up_are_told_apart_up_to_a_number_a_day() -> None:
    names = KnownNames(3)
    assert [names.known("model", f"m{n}", 0.0) for n in range(5)] == ["m0", "m1", "m2", OTHER, OTHER]
    assert [names.known("project", "p", 0.0), names.known("model", "m1", 0.0)] == ["p", "m1"]
    assert names.known("model", "m4", DAY_S + 1.0) == "m4"


@pytest.mark.parametrize(("model", "provider"), [("gpt-4o", "openai"), ("groq/llama", "groq"), ("x", "unknown")])
def test_a_provider_is_the_prices_or_stands_in_the_name(model: str, provider: str) -> None:
    assert PRICES.provider(model) == provider
    assert Prices().of(model) is None


class Records:
    """UsageRecords that may be away, or take a commit and not say so."""

    def __init__(self) -> None:
        self.kept: dict[str, UsageRow] = {}
        self.commits: list[int] = []
        self.away = self.silent = False

    async def add_usage(self, added: Sequence[UsageRow]) -> int:
        await asyncio.sleep(0)
        if self.away:
            raise JournalError("away")
        self.commits.append(len(added))
        fresh = [row for row in added if row.id not in self.kept]
        self.kept |= {row.id: row for row in fresh}
        if self.silent:
            raise JournalError("silent")
        return len(fresh)

    async def prune_usage(self, **_: float) -> None: ...


def writer(records: Any, **rules: Any) -> UsageWriter:
    return UsageWriter(records, UsageRetention(), **rules)


async def test_rows_are_written_a_hundred_at_a_time() -> None:
    records = Records()
    one = writer(records)
    tasks = Tasks()
    tasks.spawn("usage", one.run())
    made = rows(script(250, seed=1, begins=NOON))
    for place, row in enumerate(made):
        one.add(row)
        if place % 100 == 99:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.01)
    assert (records.commits, len(one)) == ([100, 100], 50)
    await tasks.cancel()
    await one.flush()
    assert len(records.kept) == one.written == 250


async def test_rows_are_written_after_their_time_when_they_are_few() -> None:
    records = Records()
    one = writer(records, interval_s=0.02)
    tasks = Tasks()
    tasks.spawn("usage", one.run())
    one.add(rows(script(1, seed=1, begins=NOON))[0])
    await asyncio.sleep(0.1)
    await tasks.cancel()
    assert records.commits == [1]


async def test_rows_wait_for_a_journal_that_is_away_and_too_many_are_dropped_and_counted() -> None:
    records = Records()
    records.away = True
    one = writer(records, full=10, queue_max=40)
    made = rows(script(60, seed=1, begins=NOON))
    for row in made:
        one.add(row)
    assert not await one.flush()
    assert (len(one), one.dropped) == (40, 20)
    records.away, records.silent = False, True
    assert not await one.flush()
    records.silent = False
    assert await one.flush()
    assert list(records.kept) == [row.id for row in made[:40]]


async def test_rows_that_could_not_be_written_are_tried_again_soon_and_not_after_their_time() -> None:
    records = Records()
    records.away = True
    one = writer(records, full=2, interval_s=3600.0)
    one.retry_s = 0.01
    tasks = Tasks()
    tasks.spawn("usage", one.run())
    for row in rows(script(2, seed=1, begins=NOON)):
        one.add(row)
    await asyncio.sleep(0.05)
    assert len(one) == 2
    records.away = False
    assert await one.drained(2.0)
    await tasks.cancel()
    assert one.written == 2


async def test_a_row_that_is_written_twice_counts_once(journal: SqlJournal) -> None:
    made = rows(script(50, seed=2, begins=NOON))
    assert [await journal.add_usage(made[:30]), await journal.add_usage(made)] == [30, 20]
    assert [used.requests for used in await journal.usage_sums(ALL, ())] == [50]


async def test_writers_side_by_side_lose_nothing(journal: SqlJournal) -> None:
    made = rows(script(600, seed=3, begins=NOON))
    await asyncio.gather(*(journal.add_usage(made[place : place + 50]) for place in range(0, 600, 50)))
    assert [used.requests for used in await journal.usage_sums(ALL, ())] == [600]


async def test_the_key_is_made_once_for_all_replicas(journal: SqlJournal, place: Place) -> None:
    other = SqlJournal(place)
    await other.open()
    assert await journal.usage_key() == await other.usage_key()
    await other.close()


async def kept(journal: SqlJournal, users: Sequence[str] = ("ada", "bea")) -> bytes:
    """A request of each, under the journal's own key."""
    key = await journal.usage_key()
    made = [row_of(key, user) for user in users]
    assert await journal.add_usage(made) == len(users)
    return key


def row_of(key: bytes, user: str, at: float = NOON.timestamp()) -> UsageRow:
    row = rows(script(1, seed=1, begins=NOON))[0]
    named = {"user": user_name(key, user), "session": session_name(key, user, "s")}
    return msgspec.structs.replace(row, id=f"{user}{at}", at=at, **named)


async def names_in(journal: SqlJournal) -> Counter[str]:
    tables = ("usage_requests", "usage_hours", "usage_days", "usage_sessions")
    everything = await rows_of(journal)
    return Counter(repr(row) for table in tables for row in everything[table])


async def test_a_user_who_is_erased_is_in_no_table_any_more(journal: SqlJournal) -> None:
    key = await kept(journal)
    assert any(user_name(key, "ada") in row for row in await names_in(journal))
    await erase(journal, Scope("ada"), at=NOON.timestamp() + 1)
    left = await names_in(journal)
    assert not any(user_name(key, "ada") in row for row in left)
    assert len(left) == 4
    assert [used.key for used in await journal.usage_sums(ALL, ("user",))] == [(user_name(key, "bea"),)]
    assert await journal.usage_sessions(ALL) == 1


async def test_what_waited_while_its_user_was_erased_is_not_written_and_what_comes_later_is(
    journal: SqlJournal,
) -> None:
    key, now = await journal.usage_key(), NOON.timestamp()
    await erase(journal, Scope("ada"), at=now)
    assert await journal.add_usage([row_of(key, "ada", now - 5), row_of(key, "bea", now - 5)]) == 1
    assert await journal.add_usage([row_of(key, "ada", now + 5)]) == 1


async def test_a_request_whose_cached_tokens_are_not_known_has_none_and_not_nought(journal: SqlJournal) -> None:
    key = await journal.usage_key()
    row = row_of(key, "ada")
    for name, cache in (("unknown", None), ("nothing", PromptCache(90, 0)), ("most", PromptCache(90, 80))):
        await journal.add_usage([msgspec.structs.replace(row, id=name, prompt_cache=cache)])
    kept = {row[0]: row[-2:] for row in (await rows_of(journal))["usage_requests"]}
    assert kept == {"unknown": (None, None), "nothing": (90, 0), "most": (90, 80)}
    [used] = await journal.usage_sums(ALL, ())
    assert (used.requests, used.cache_reported, used.prompt_tokens, used.cached_tokens) == (3, 2, 180, 80)


async def test_an_erasure_of_a_project_leaves_the_figures(journal: SqlJournal) -> None:
    await kept(journal)
    await erase(journal, Scope("ada", "atlas"), at=NOON.timestamp() + 1)
    assert [used.requests for used in await journal.usage_sums(ALL, ())] == [2]


async def test_a_copy_of_earlier_that_learns_of_an_erasure_loses_the_figures(journal: SqlJournal) -> None:
    key = await kept(journal)
    await journal.add_marks([Mark((digest("ada"), "", "", ""), NOON.timestamp() + 1)])
    assert [used.key for used in await journal.usage_sums(ALL, ("user",))] == [(user_name(key, "bea"),)]


async def test_what_is_past_its_time_goes(journal: SqlJournal) -> None:
    key, now = await journal.usage_key(), NOON.timestamp()
    await journal.add_usage([row_of(key, "ada", now - days * DAY_S) for days in (0, 40, 100, 1200)])
    one = UsageWriter(journal, UsageRetention(), clock=lambda: now)
    await one.prune()
    tables = await rows_of(journal)
    assert {name: len(tables[f"usage_{name}"]) for name in ("requests", "hours", "days", "sessions")} == {
        "requests": 1,
        "hours": 2,
        "days": 3,
        "sessions": 3,
    }
