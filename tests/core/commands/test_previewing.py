"""``semmem preview`` against an API over real HTTP."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.backends.sql.journal import SqlJournal
from semmem.background import Tasks
from semmem.background.in_process import RecordWatch
from semmem.cli import main
from semmem.commands.memories import table
from semmem.lifecycle.quota import Quota
from semmem.management.access import AccessRules, Tokens
from semmem.management.accounts_api import SwitchDesk, alias_routes, switch_routes, token_routes
from semmem.management.api import create_api
from semmem.management.curation import curation_routes
from semmem.management.engine_api import engine_routes
from semmem.management.memories import Memories, NewMemory
from semmem.management.server import HttpListener
from semmem.memory import Scope
from semmem.request.switches import Switches
from semmem.retrieval.decide.decision import Decision
from semmem.retrieval.decide.trained import SHIPPED, Trained
from semmem.retrieval.recall import Recall, RecallRules
from semmem.telemetry.metrics import Metrics
from semmem.telemetry.samples import Samples
from tests.core.management.test_api import life
from tests.core.management.test_roles import an_engine
from tests.support.empty_journal import empty_journal
from tests.support.erasing import Erasing
from tests.support.fakes import HashEmbedder, hot

TOKEN = "a-token-of-16-characters-or-more"


async def _serve(
    folder: Path, decision: Decision, store: InProcessStore, ready: Future[str], stop: asyncio.Event
) -> None:
    journal = SqlJournal(empty_journal(folder / "journal.db"))
    await store.open()
    await journal.open()
    quota = Quota(store, journal, memories_max=5)
    erasing = Erasing(store, journal, clock=lambda: 1e9)
    recall = Recall(hot(store), HashEmbedder(), RecallRules(), decision=decision)
    memories = Memories(
        erasing.store,
        HashEmbedder(),
        journal,
        quota,
        recall,
        clock=lambda: 1e9,
        erasure=erasing.erasure,
        holds=erasing.holds,
    )
    await memories.create(Scope("alice"), NewMemory(content="User likes green tea"))
    tokens = Tokens(journal, clock=lambda: 1e9)
    watch = RecordWatch(journal.switches_since, known := Switches(), what="switches", refresh_s=60.0)
    desk = SwitchDesk(journal, known, watch.refresh, entries_max=10, clock=lambda: 1e9)
    routes = [
        curation_routes(life(store, journal)),
        token_routes(tokens),
        engine_routes(an_engine(), Samples(Metrics())),
        switch_routes(desk),
        alias_routes(journal),
    ]
    app = create_api(memories, AccessRules(admin_token=TOKEN, tokens=tokens), more=routes)
    listener = HttpListener(app, "127.0.0.1:0")
    ready.set_result(listener.bind())
    serving = Tasks().spawn("api", listener.serve())
    await stop.wait()
    listener.stop()
    await serving
    listener.close()
    await journal.close()


@contextmanager
def running(folder: Path, trained: Trained | None = None, store: InProcessStore | None = None) -> Iterator[str]:
    """The URL of an API over real HTTP, on whose store alice has one memory."""
    loop = asyncio.new_event_loop()
    ready: Future[str] = Future()
    stop = asyncio.Event()
    kept = InProcessStore() if store is None else store
    serving = _serve(folder, Decision(trained), kept, ready, stop)
    thread = Thread(target=lambda: loop.run_until_complete(serving))
    thread.start()
    try:
        yield f"http://{ready.result(timeout=60)}"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
        loop.close()


@pytest.mark.parametrize(("word", "shown"), [(None, "keyword, path"), ("embedder_down", "keyword (embedder_down), ")])
def test_it_says_why_there_was_no_vector(word: str | None, shown: str) -> None:
    found = {"query": "tea", "gate": "search", "strategy": "keyword", "path": "hot", "unembedded": word}
    assert shown in "\n".join(table(found | {"request": None, "memories": [], "tokens": 0}))


def test_it_shows_scores_verdicts_and_what_it_would_cost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_LISTENERS__API__ADMIN_TOKEN", TOKEN)
    with running(tmp_path) as url:
        assert main(["preview", "Which green tea do I like?", "--user", "alice", "--api", url]) == 0
    out = capsys.readouterr().out
    assert "gate: search, strategy: hybrid, path: hot" in out
    [line] = [line for line in out.splitlines() if "User likes green tea" in line]
    assert line.startswith("kept ")
    assert "injected: 0 tokens" not in out
    assert "request: not decided, nearness alone counts" in out


def test_it_tells_what_was_decided_of_the_request_and_of_each_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers mean nothing for these vectors, so it is only seen that each is told."""
    monkeypatch.setenv("SEMMEM_LISTENERS__API__ADMIN_TOKEN", TOKEN)
    with running(tmp_path, Trained.load(SHIPPED)) as url:
        assert main(["preview", "Which green tea do I like?", "--user", "alice", "--api", url]) == 0
    [request, heading, memory] = capsys.readouterr().out.splitlines()[2:5]
    assert re.fullmatch(r"request: [a-z]+, log-odds -?\d+\.\d{3}, wants (memories|none)(, lists the profile)?", request)
    place = heading.split().index("log-odds")
    assert re.fullmatch(r"-?\d+\.\d{3}", memory.split()[place])
    assert memory.endswith("  User likes green tea")


def test_a_refusal_is_shown_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_LISTENERS__API__ADMIN_TOKEN", "another-token-of-16-characters")
    with running(tmp_path) as url:
        assert main(["preview", "tea?", "--user", "alice", "--api", url]) == 4
    assert "401" in capsys.readouterr().err


def test_a_semmem_that_is_not_there_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_LISTENERS__API__ADMIN_TOKEN", TOKEN)
    assert main(["preview", "tea?", "--user", "alice", "--api", "http://127.0.0.1:9"]) == 3
    assert "http://127.0.0.1:9/v1/memory/preview: nothing listens there" in capsys.readouterr().err
