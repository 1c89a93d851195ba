"""SIGTERM under load: no client notices, and nothing that was accepted is lost."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from tests.support.harness import Reply, StandInModel, house

CLIENTS = 6


@pytest.mark.long(9)
def test_sigterm_under_load_costs_no_client_an_answer_and_loses_no_accepted_turn(
    model: StandInModel, tmp_path: Path, alice: str
) -> None:
    with house(tmp_path, model, {"memory": {"backend": "in_process"}}) as running:
        replies: list[tuple[str, Reply]] = []
        failures: list[Exception] = []
        enough = threading.Event()

        def keep_asking(client: int) -> None:
            number = 0
            while not enough.is_set():
                text = f"client {client} says number {number}"
                try:
                    replies.append((text, running.chat(alice, text, session=text, stream=number % 2 == 0)))
                except Exception as error:  # seen by the assertion below
                    failures.append(error)
                    return
                number += 1

        clients = [threading.Thread(target=keep_asking, args=(client,)) for client in range(CLIENTS)]
        for client in clients:
            client.start()
        time.sleep(1.5)
        running.semmem.child.terminate()
        code = running.semmem.child.process.wait(30)
        time.sleep(0.5)
        enough.set()
        for client in clients:
            client.join(30)

        assert failures == []
        assert code == 0
        assert {reply.status for _, reply in replies} == {200}
        assert [text for text, reply in replies if reply.received is None or reply.body != reply.received.answer] == []
        accepted = {text for text, reply in replies if reply.outcome is not None}
        passed_by = {text for text, reply in replies if reply.outcome is None}
        assert len(accepted) > CLIENTS
        assert len(passed_by) > CLIENTS
        assert accepted <= {text for text, _ in running.semmem.turns(alice)}
