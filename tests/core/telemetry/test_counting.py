"""Every event is counted; removals by reason, and logged by ids, never with content."""

from __future__ import annotations

import ast
import logging
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import get_type_hints

import pytest
from prometheus_client import Counter, generate_latest

import semmem
from semmem.extraction.candidate import Removal
from semmem.extraction.result import BatchLearnt, BatchResult, TurnLearnt
from semmem.ports import events
from semmem.telemetry.metrics import Metrics, MetricsPage
from semmem.telemetry.words import WORDS
from tests.core.test_operations import words as page_words
from tests.support.counted import counting

SEMMEM = Path(semmem.__file__).parent


def test_each_removal_is_one_line_and_one_count(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    removals = (
        Removal("repeated", "mem_new", "mem_old"),
        Removal("contradicted", "mem_boston", "mem_seattle"),
        Removal("updated", "mem_budget", "mem_budget"),
        Removal("updated", "mem_age", "mem_age"),
    )
    with caplog.at_level(logging.INFO, "semmem"):
        result = BatchResult("stored", rejected={"over_limit": 3}, removals=removals)
        counting(metrics)(BatchLearnt("b-1", "end", 2, result, 0.2))
    registry = metrics.registry
    assert registry.get_sample_value("semmem_facts_dropped_total", {"reason": "repeated"}) == 1
    assert registry.get_sample_value("semmem_memories_removed_total", {"reason": "contradicted"}) == 1
    assert registry.get_sample_value("semmem_memories_removed_total", {"reason": "updated"}) == 2
    assert caplog.messages == [
        "batch b-1: repeated mem_new, in favour of mem_old",
        "batch b-1: contradicted mem_boston, in favour of mem_seattle",
        "batch b-1: updated mem_budget, in favour of mem_budget",
        "batch b-1: updated mem_age, in favour of mem_age",
        "batch b-1: 3 facts rejected (over_limit)",
        "batch b-1: stored, 0 facts stored",
    ]


def test_pairs_that_may_contradict_each_other_are_counted_by_what_became_of_them() -> None:
    metrics = Metrics()
    counting(metrics)(TurnLearnt(BatchResult("stored", pairs={"found": 2}), 0.2))
    counting(metrics)(BatchLearnt("b-1", "end", 2, BatchResult("stored", pairs={"found": 1, "kept": 1}), 0.2))
    sample = metrics.registry.get_sample_value
    assert sample("semmem_unsettled_pairs_total", {"result": "found"}) == 3
    assert sample("semmem_unsettled_pairs_total", {"result": "kept"}) == 1


def test_what_a_model_named_as_wrong_in_vain_is_counted_by_reason() -> None:
    metrics = Metrics()
    counting(metrics)(BatchLearnt("b-1", "end", 2, BatchResult("stored", ignored={"too_many": 3}), 0.2))
    assert metrics.registry.get_sample_value("semmem_model_drops_ignored_total", {"reason": "too_many"}) == 3


EVENTS = (
    events.StreamOpened("mutate"),
    events.StreamClosed("mutate"),
    events.StreamShed("observe"),
    events.StreamFailed("observe"),
    events.RequestEnded("injected", 0.01, 2, 40),
    events.Searched("hit", 2, 0.01),
    events.PromptPrefix("kept"),
    events.Rewritten("written"),
    events.Reranked("late"),
    events.LongRequest("compressed", 9000, 2500),
    events.StateMade("rules"),
    events.HistoryRead("recovered", 2),
    events.TurnEnded("answered"),
    events.PromptReported(1000, 800),
    events.JournalCommitted("ok", 0.01),
    events.JournalCounted({"open": 3}),
    events.TurnsUnread("b-1", "too_slow", 1),
    events.MemoriesRemoved("quota", 2),
    events.ErasureEnded("done", 1, 0, 2),
    events.ChangesTold("told", 3),
    events.NewsLost("Redis: ConnectionError"),
    events.NewsBack(),
    events.ApiAnswered("/v1/memory", 200),
    events.ApiScreened("reject", "secret"),
    events.ApiLimited("caller"),
    events.ApiAudited("written"),
    events.ConfigReloaded("applied"),
    events.FeedbackGiven("unhelpful", 2),
    BatchLearnt("b-1", "end", 2, BatchResult("stored", {"semantic": 1}, {"created": 1}), 0.2),
    TurnLearnt(BatchResult("stored", {"semantic": 1}, {"created": 1}), 0.2),
)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_every_event_changes_a_metric(event: events.Event) -> None:
    metrics = Metrics()
    before = generate_latest(metrics.registry)
    counting(metrics)(event)
    assert generate_latest(metrics.registry) != before


def test_there_is_no_other_event() -> None:
    assert {type(event).__name__ for event in EVENTS} == {kind.__name__ for kind in events.Event.__subclasses__()}


def test_an_event_holds_words_and_numbers_and_nothing_of_a_user() -> None:
    fields = {(name, kind) for event in EVENTS for name, kind in get_type_hints(type(event)).items()}
    assert {kind for _, kind in fields} == {str, int, float, Mapping[str, int], BatchResult}
    assert {name for name, _ in fields}.isdisjoint({"user", "user_id", "session", "content", "text", "memory_id"})


def test_an_erasure_is_counted_when_it_ends_and_when_it_has_to_wait(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    with caplog.at_level(logging.INFO, "semmem"):
        for result in ("pending", "finished"):
            counting(metrics)(events.ErasureEnded(result, turns=2, halves=1, memories=3, sentences=4))
    count = metrics.registry.get_sample_value
    assert count("llm_memory_erasures_total", {"result": "pending"}) == 1
    assert count("semmem_memories_removed_total", {"reason": "erased"}) == 3
    assert count("semmem_erased_halves_total", {"where": "queue"}) == 1
    assert count("semmem_erased_sentences_total") == 4
    assert caplog.messages == [
        "an erasure could not be completed; what it covers is hidden, and it is tried again",
        "memories removed: 3 (erased)",
        "an erasure is finished: 2 turns, 3 memories",
    ]


def test_a_page_shows_what_totals_have_come_to_and_gauges_as_they_are() -> None:
    metrics, dropped, waiting = Metrics(), [2], [5]
    page = MetricsPage(
        metrics,
        gauges={metrics.journal_queue: lambda: waiting[0]},
        totals={metrics.journal_dropped: lambda: dropped[0]},
    )
    assert b"semmem_journal_dropped_total 2.0\n" in page()[0]
    dropped[0], waiting[0] = 6, 1
    shown, media_type = page()
    assert b"semmem_journal_dropped_total 6.0\n" in shown
    assert b"semmem_journal_queue 1.0\n" in shown
    assert media_type.startswith("text/plain")


OPEN = {"semmem_facts_quarantined", "semmem_facts_rejected", "semmem_passages"}
"""Counters of the screen's reasons, which its rules have."""
OF_OTHERS = {
    f"semmem_{name}" for name in ("conversations_missed", "conversations_removed", "chained_requests", "request_log")
}
OF_OTHERS |= {"semmem_chained_requests", "semmem_warmed_users", "semmem_trace_spans"}
"""Whose words semmem.wiring.parts adds, and the export of traces."""


def counters(metrics: Metrics) -> dict[str, Counter]:
    found = (*vars(metrics).values(), *(counter for counter, _ in metrics.of_events.values()))
    return {each._name: each for each in found if isinstance(each, Counter)}


def test_every_counter_has_its_words_from_the_start_unless_nobody_knows_them() -> None:
    metrics = Metrics()
    known = {name for name, each in counters(metrics).items() if len(each._labelnames) == 1}
    assert known - WORDS.keys() == OPEN | OF_OTHERS
    for name, words in WORDS.items():
        family = counters(metrics).get(name, metrics.journal_commit_seconds)
        sample = f"{name}_total" if name in known else f"{name}_count"
        for word in words:
            assert metrics.registry.get_sample_value(sample, {family._labelnames[0]: word}) == 0, (name, word)
    assert len(generate_latest(metrics.registry).splitlines()) < 1000


def announced(kind: type[events.Event]) -> set[str]:
    """The words, given by themselves or by a constant's name, with which it is announced anywhere in semmem."""
    found: set[str] = set()
    for file in sorted(SEMMEM.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and node.args]
        given = [call.args[0] for call in calls if ast.unparse(call.func).rpartition(".")[2] == kind.__name__]
        for each in (
            part for arg in given for part in ((arg.body, arg.orelse) if isinstance(arg, ast.IfExp) else [arg])
        ):
            if isinstance(each, ast.Constant):
                found.add(str(each.value))
            elif isinstance(each, ast.Name) and each.id.isupper():
                module = ".".join(file.relative_to(SEMMEM.parent).with_suffix("").parts)
                found.add(getattr(import_module(module), each.id))
    return found


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((kind, each._name) for kind, (each, labels) in Metrics().of_events.items() if len(labels) == 1),
        (events.LongRequest, "semmem_long_requests"),
        (events.MemoriesRemoved, "semmem_memories_removed"),
        (events.JournalCommitted, "semmem_journal_commit_seconds"),
    ],
)
def test_no_word_that_is_announced_is_missing_at_the_start(kind: type[events.Event], name: str) -> None:
    assert announced(kind) <= set(WORDS[name])


def test_a_word_that_is_announced_is_seen() -> None:
    assert {"told_everything"} < set(WORDS["semmem_change_news"]) > announced(events.ChangesTold) > {"untold"}
    assert announced(events.MemoriesRemoved) >= {"merged", "quota", "undone", "erased"}
    assert announced(events.FeedbackGiven) == {"helpful", "unhelpful"}


@pytest.mark.parametrize("table", ["Requests", "Turns", "Batches", "Turns learnt from at once"])
def test_words_of_the_page_on_operations_are_there_from_the_start(table: str) -> None:
    named = {"Requests": "semmem_requests", "Turns": "llm_memory_turns", "Batches": "llm_memory_extraction"}
    assert page_words(table) <= set(WORDS[named.get(table, "semmem_at_once_turns")])


def callbacks(source: str) -> list[str]:
    """Parameters that are told of something by a name of their own."""
    given = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.arg) and node.annotation]
    return [arg.arg for arg in given if arg.arg.startswith("on_") and "Callable" in ast.unparse(arg.annotation or arg)]


def test_what_happens_is_announced_in_one_way() -> None:
    assert callbacks("def made(on_end: Callable[[str], None]) -> None: ...") == ["on_end"]
    files = sorted(Path(semmem.__file__).parent.rglob("*.py"))
    assert {file.name: found for file in files if (found := callbacks(file.read_text(encoding="utf-8")))} == {}
