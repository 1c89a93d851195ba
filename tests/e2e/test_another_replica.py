"""Of several replicas one is gone, and Envoy has not noticed yet: another one is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.endpoints import another_endpoint
from tests.support.harness import House, StandInModel, eventually, house
from tests.support.ports import free_port

Json = dict[str, Any]

REQUESTS = 20


def beside_a_dead_replica(config: Json) -> None:
    """One more endpoint, at which nobody listens, and after whose health nobody asks."""
    dead = another_endpoint(config, free_port())
    dead["health_check_config"] = {"disable_active_health_check": True}


def observed(pair: House) -> int:
    return sum(answer is not None for _, answer in pair.semmem.turns("alice"))


def test_a_request_that_meets_a_dead_replica_is_given_to_another_one(model: StandInModel, tmp_path: Path) -> None:
    with house(tmp_path, model, {"memory": {"backend": "in_process"}}, beside_a_dead_replica) as pair:
        pair.semmem.remember("alice", "My budget for the Hawaii trip is $10,000")
        replies = [pair.chat("alice", f"What's my budget for the trip? ({n})") for n in range(REQUESTS)]
        assert [reply.outcome for reply in replies] == ["injected"] * REQUESTS
        assert pair.envoy.stat(r"http\..*ext_proc\.semmem_mutate\.failure_mode_allowed") == 0
        assert pair.envoy.stat(r"cluster\.semmem\.upstream_rq_retry") >= REQUESTS // 2
        eventually(lambda: observed(pair) == REQUESTS, within_s=10, what="every answer is observed")
