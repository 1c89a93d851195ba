"""Of several replicas one is gone, and Envoy has not noticed yet: another one is asked."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

from tests.support.endpoints import another_endpoint
from tests.support.harness import House, SemmemProcess, StandInModel, eventually, house, semmem_process, stand_in_model
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
        eventually(lambda: observed(pair) == REQUESTS, within_s=60, what="every answer is observed")


def test_an_answer_that_a_dying_replica_listened_to_is_told_to_another_one(tmp_path: Path) -> None:
    in_process = {"memory": {"backend": "in_process"}}
    with semmem_process(tmp_path / "other", in_process) as other, stand_in_model() as model:
        model.token_delay_s = 0.1
        with house(tmp_path, model, in_process, lambda config: beside(config, other.grpc_port)) as pair:
            replies: list[int] = []
            asking = threading.Thread(target=lambda: replies.append(pair.chat("alice", SAID, stream=True).status))
            asking.start()
            listening, opened = eventually(lambda: roles(pair.semmem, other), within_s=60, what="one listens")
            os.kill(listening.child.pid, signal.SIGKILL)
            asking.join(30)
            assert replies == [200]
            eventually(lambda: answered(opened), within_s=60, what="the other one has the whole answer")
            assert pair.envoy.stat(r"cluster\.semmem\.upstream_rq_retry") == 1


SAID = "Tell me one word after another, and take your time for each of them, will you?"


def beside(config: Json, port: int) -> None:
    another_endpoint(config, port)["health_check_config"] = {"disable_active_health_check": True}


def roles(*replicas: SemmemProcess) -> tuple[SemmemProcess, SemmemProcess] | None:
    """Who listens to the answer, and who had the request; None as long as nobody listens."""
    listening = [replica for replica in replicas if replica.metric("semmem_extproc_streams", role="observe")]
    opened = [replica for replica in replicas if replica not in listening]
    return (listening[0], opened[0]) if listening and opened else None


def answered(replica: SemmemProcess) -> bool:
    return any(answer for _, answer in replica.turns("alice"))
