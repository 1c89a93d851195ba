"""Alert rules, dashboard and metrics, read by a real Prometheus and its own tools."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_degradation import store_process
from tests.support.harness import House, eventually, house, stand_in_model
from tests.support.ports import free_port
from tests.system.prometheus import DEPLOY, RULES, SCRAPE_S, Prometheus, prometheus, queries

RULE_TESTS = DEPLOY / "prometheus" / "rules.test.yaml"
FACTS = ("My budget for the Hawaii trip is $10,000", "I play the cello in a quartet", "My sister Mia lives in Oslo")

ANSWERED = {"role": "assistant", "content": "Nice."}


def promtool(*argv: str | Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["promtool", *argv], input=stdin, capture_output=True, text=True, timeout=60, check=False, cwd=RULES.parent
    )


def test_every_alert_fires_when_it_should_and_is_quiet_when_it_should() -> None:
    done = promtool("test", "rules", RULE_TESTS)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('state="ready"}) > 1000', 'state="ready"}) > 2000'),
        ("semmem_erasures_pending", "semmem_erasures_waiting"),
        ("for: 10m", "for: 10h"),
    ],
)
def test_a_broken_rule_is_found(right: str, wrong: str, tmp_path: Path) -> None:
    text = RULES.read_text()
    assert right in text
    (tmp_path / "rules.yaml").write_text(text.replace(right, wrong))
    copy = tmp_path / "rules.test.yaml"
    copy.write_text(RULE_TESTS.read_text())
    assert promtool("test", "rules", copy).returncode != 0


def test_prometheus_understands_its_configuration() -> None:
    done = promtool("check", "config", "--syntax-only", "prometheus.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


# --- a run with faults in front of a Prometheus ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Watched:
    home: House
    server: Prometheus


def override() -> dict[str, Any]:
    """A model for rewriting that is never there; each question needs the store, so that its faults are felt."""
    nobody = {"url": f"http://127.0.0.1:{free_port()}/v1"}
    return {
        "deadlines": {"max_message_timeout_ms": 2000},
        "memory": {"hot_cache": {"staleness_s": 0}, "query": {"mode": "rewrite"}},
        "external_models": [{"model_role": "memory_rewrite", "llm_endpoint": nobody, "llm_model_name": "nobody"}],
    }


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("watched")
    with stand_in_model() as model, house(folder, model, override(), as_shipped=True) as home:
        health = home.semmem.health_url.removeprefix("http://")
        with prometheus(folder, semmem=health, envoy=home.envoy.admin) as server:
            play(home)
            yield Watched(home, server)


def play(home: House) -> None:
    """Everything that the dashboard has a panel for, so often that counters are seen to grow."""
    for round_ in range(3):
        user = f"user-{round_}"
        home.converse(
            user, "session", *FACTS, "My password is hunter2-Zx81!kk and my key is sk-abcdefghijklmnop1234567890"
        )
        home.learnt(user)
        home.semmem.end_session(user, "session")
        for _ in range(3):
            home.chat(user, "What's my budget for the trip?", stream=True)
        home.chat(None, "What's my budget for the trip?")
        asked = b'{"model": "stand-in", "input": "How much?"}'  # its answer tells of the prompt cache
        assert home.send(asked, user=user, path="/v1/responses").status == 200
        home.chat(user, "How much?", messages=[{"role": "user", "content": FACTS[0]}, ANSWERED])
        with_the_store_stopped(home, user)
        home.semmem.api("DELETE", "/v1/memory", params={"user_id": user})
        time.sleep(2 * SCRAPE_S)


def with_the_store_stopped(home: House, user: str) -> None:
    store = store_process(home.semmem.child.pid)
    os.kill(store, signal.SIGSTOP)
    try:
        for _ in range(3):
            home.chat(user, "What's my budget for the trip?")
    finally:
        os.kill(store, signal.SIGCONT)
    eventually(
        lambda: home.chat(user, "What's my budget?").outcome not in ("store_timeout", "timeout"),
        within_s=30,
        what="it is back",
    )


def test_every_query_of_the_dashboard_has_a_series(watched: Watched) -> None:
    asked = queries("1m")
    assert len(asked) > 30
    assert [name for name, text in asked.items() if not watched.server.series(text)] == []


def test_a_query_that_has_none_is_noticed(watched: Watched) -> None:
    assert watched.server.series('sum(rate(semmem_requests_total{outcome="rewarded"}[1m]))') == []


def test_prometheus_evaluates_every_rule(watched: Watched) -> None:
    def rules() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = watched.server.get("rules")["groups"][0]["rules"]
        return found

    eventually(lambda: {each["health"] for each in rules()} == {"ok"}, within_s=20, what="all are evaluated")
    assert len(rules()) == RULES.read_text().count("- alert:")


def test_prometheus_knows_that_semmem_fails_for_memory(watched: Watched) -> None:
    """The run stopped the store: the expression of that alert holds, and those of what did not happen do not."""
    alerts = {each["name"]: each["query"] for each in watched.server.get("rules")["groups"][0]["rules"]}
    assert watched.server.series(alerts["SemmemWithoutMemory"])
    for quiet in ("SemmemGone", "SemmemFailsOpen", "SemmemLosesTurns", "SemmemUnexpectedFailures"):
        assert watched.server.series(alerts[quiet]) == [], quiet


def test_promtool_finds_nothing_wrong_with_the_page(watched: Watched) -> None:
    done = promtool("check", "metrics", stdin=watched.home.semmem.metrics_text())
    assert done.returncode == 0, done.stdout + done.stderr
