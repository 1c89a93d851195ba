"""Two semmem processes on one store: what is told on one is found on the other, by either way of telling."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness import SemmemProcess, eventually, semmem_process
from tests.support.ports import free_port
from tests.support.postgres import TestServer, worker_name
from tests.support.servers import ValkeyServer, shared_milvus_lite, valkey_server

STALENESS_S = 16.0
AHEAD_S = STALENESS_S / 2
"""From this age on memories are read anew even if nobody tells anything."""
TRIES = 3
TOLD, OUTAGES = "semmem_change_news_total", "semmem_change_news_outages_total"
FENCE_KEY = "tests-of-change-news-0123456789"


@dataclass
class Pair:
    one: SemmemProcess
    other: SemmemProcess
    valkey: ValkeyServer | None
    postgres: TestServer
    database: str

    def deaf(self) -> None:
        """Cut whoever listens to PostgreSQL."""
        self.postgres.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            f" WHERE datname = '{self.database}' AND query LIKE 'LISTEN%'"
        )

    def seen_after(self, user: str, content: str) -> float:
        """Tell ``one``, and ask ``other``, which has just looked, until it finds it: after how many seconds."""
        recall(self.other, user)
        self.one.api("POST", "/v1/memory", json={"user_id": user, "content": content})
        told_at = time.monotonic()
        eventually(lambda: content in recall(self.other, user), within_s=5 * STALENESS_S, what="it is found")
        return time.monotonic() - told_at


def recall(process: SemmemProcess, user: str) -> set[str]:
    """What hot memories show, which is what a request is given."""
    asked = {"user_id": user, "query": "anything", "strategy": "recent", "limit": 50}
    return {memory["content"] for memory in process.api("POST", "/v1/memory/search", json=asked)["memories"]}


def is_told(process: SemmemProcess) -> bool:
    return process.metric("semmem_component_up", component="news") == 1


@pytest.fixture(scope="module")
def milvus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with shared_milvus_lite(tmp_path_factory.mktemp("milvus")) as address:
        yield address


@pytest.fixture(scope="module", params=["postgresql", "redis"])
def pair(
    request: pytest.FixtureRequest, postgres: TestServer, milvus: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    folder: Path = tmp_path_factory.mktemp(request.param)
    name = f"news-{worker_name()}-{request.param}"
    with ExitStack() as stack:
        hot: dict[str, Any] = {"staleness_s": STALENESS_S}
        valkey = None
        if request.param == "redis":
            valkey = stack.enter_context(valkey_server(folder / "valkey"))
            hot["redis"] = {"url": valkey.url}
        settings = {
            "journal": {"url": postgres.create(name)},
            "memory": {
                "milvus": {"address": milvus, "collection": request.param},
                "hot_cache": hot,
                "injection": {"fence_key": FENCE_KEY},
            },
            "deployment": {"replicas": 2},
        }
        one, other = (stack.enter_context(semmem_process(folder / each, settings)) for each in "ab")
        yield Pair(one, other, valkey, postgres, name)


@pytest.mark.long(25)
def test_what_is_told_on_one_replica_is_found_on_the_other_before_it_would_look(pair: Pair) -> None:
    waits = [pair.seen_after("ada", f"Ada has {number} cats.") for number in range(TRIES)]
    assert min(waits) < AHEAD_S  # nobody looks again by himself before that
    assert pair.one.metric(TOLD, result="told") >= TRIES
    assert pair.other.metric(TOLD, result="heard") >= TRIES
    assert is_told(pair.other)


@pytest.mark.long(25)
def test_what_is_removed_on_one_replica_is_gone_from_the_other(pair: Pair) -> None:
    pair.seen_after("bea", "Bea has a dog.")
    (memory,) = pair.one.memories("bea")
    pair.one.api("DELETE", f"/v1/memory/{memory['id']}", params={"user_id": "bea"})
    eventually(lambda: recall(pair.other, "bea") == set(), within_s=5 * STALENESS_S, what="it is gone")


@pytest.mark.long(25)
def test_without_news_changes_show_by_staleness_and_news_come_back(pair: Pair) -> None:
    before = pair.other.metric(OUTAGES, result="begun")
    if pair.valkey is None:
        pair.deaf()
    else:
        pair.valkey.kill()
    eventually(
        lambda: pair.other.metric(OUTAGES, result="begun") == before + 1, within_s=60, what="the loss is counted"
    )
    pair.seen_after("cleo", "Cleo has a horse.")
    if pair.valkey is not None:
        assert pair.one.metric(TOLD, result="untold") >= 1
        pair.valkey.start()
    for process in (pair.one, pair.other):
        eventually(partial(is_told, process), within_s=60, what="news are heard again")
    assert min(pair.seen_after("cleo", f"Cleo has {number} goats.") for number in range(TRIES)) < AHEAD_S
    assert pair.other.metric(OUTAGES, result="begun") == before + 1
    log = pair.other.child.printed()
    assert log.count("other replicas are not told") == log.count("are told of changes, and heard, again") == before + 1
    assert "cleo" not in log


@pytest.mark.long(5)
def test_a_redis_that_is_not_there_keeps_nobody_from_serving(tmp_path: Path) -> None:
    nowhere = {"url": f"redis://127.0.0.1:{free_port()}"}
    settings = {"memory": {"backend": "in_process", "hot_cache": {"redis": nowhere}}}
    with semmem_process(tmp_path, settings) as process:
        process.remember("dora", "Dora has a canary.")
        assert recall(process, "dora") == {"Dora has a canary."}
        eventually(lambda: process.metric(TOLD, result="untold") >= 3, within_s=60, what="it is tried again")
        assert process.metric(OUTAGES, result="begun") == 1
        assert not is_told(process)
        assert process.child.printed().count("other replicas are not told") == 1
