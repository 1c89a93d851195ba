"""A client that says, edits, retries, pauses and is missed, declined and erased, in any order: each message that may
be learnt from is learnt from exactly once, and no other ever."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.core.turns.talk import ReticentJournal, Talk
from tests.support.empty_journal import empty_journal
from tests.support.examples import examples

T = TypeVar("T")

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
LOOP: list[dict[str, Any]] = [
    {"role": "assistant", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "20 degrees"},
]

HOW = ["kept", "kept", "missed", "declined"]


@dataclass
class Word:
    """One message of the client's, and what became of it: ``missed``, ``kept``, ``declined``, ``erased`` or
    ``passed`` (it stood in a history and nothing vouched for it)."""

    text: str
    state: str = "missed"


class Client(RuleBasedStateMachine):
    """Two replicas before one journal; one conversation, which goes on from any of its points."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.journal = ReticentJournal(empty_journal(Path(self.folder.name) / "journal.db"))
        self.run(self.journal.open())
        self.replicas = [Talk(self.journal), Talk(self.journal)]
        self.talk = self.replicas[0]
        self.groups: list[list[Word]] = []  # what was said without an answer between, and each was answered
        self.number = 0
        self.retries = False  # whether the last request may be sent again as it was
        self.pending: set[str] = set()
        self.learnt: set[str] = set()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def teardown(self) -> None:
        self.learns()
        self.everything_is_learnt_once_and_nothing_else()
        self.run(self.journal.close())
        self.runner.close()
        self.folder.cleanup()

    @initialize(session=st.sampled_from([None, "s"]))
    def begins(self, session: str | None) -> None:
        self.session = session

    # --- what a client does ------------------------------------------------------------------------------------------

    @rule(doings=st.lists(st.tuples(st.integers(1, 3), st.sampled_from(HOW)), min_size=2, max_size=6))
    def talks(self, doings: list[tuple[int, str]]) -> None:
        for number, how in doings:
            self.groups.append([Word(self._new_text()) for _ in range(number)])
            self.retries = True
            if how != "missed":
                self._send(kept=how == "kept")

    @precondition(lambda self: self.retries)
    @rule()
    def tries_again(self) -> None:
        self._send(kept=True)

    @precondition(lambda self: self.retries and self.groups[-1][-1].state == "kept")
    @rule(times=st.integers(1, 2))
    def goes_on_with_a_tool(self, times: int) -> None:
        for _ in range(times):
            self._send(kept=True, more=LOOP * times)

    @precondition(lambda self: len(self.groups) > 1)
    @rule(data=st.data())
    def edits(self, data: st.DataObject) -> None:
        """Back to an earlier point: what is said next is another branch."""
        del self.groups[data.draw(st.integers(1, len(self.groups) - 1)) :]
        self.retries = False

    @rule(pause_s=st.sampled_from([600.0, 3600.0]))
    def pauses(self, pause_s: float) -> None:
        for talk in self.replicas:
            talk.now += pause_s
        self.retries = False

    @rule()
    def is_balanced_elsewhere(self) -> None:
        now = self.talk.now
        self.replicas.reverse()
        self.talk = self.replicas[0]
        self.talk.now = max(now, self.talk.now)

    @rule()
    def semmem_restarts(self) -> None:
        self.talk.restart()

    @rule()
    def erases(self) -> None:
        at = max(talk.now for talk in self.replicas)
        self.run(self.journal.erase("alice", at))
        for talk in self.replicas:  # each is told, before an erasure is over
            talk.now = at + 1.0
            talk.sessions.forget("alice")
        self.pending.clear()
        self.retries = False
        for word in (word for group in self.groups for word in group):
            word.state = "erased" if word.state == "kept" else word.state

    @rule()
    def learns(self) -> None:
        for talk in self.replicas:
            self.run(talk.learn())
        self.learnt |= self.pending
        self.pending.clear()

    @invariant()
    def everything_is_learnt_once_and_nothing_else(self) -> None:
        found = self.replicas[0].learnt + self.replicas[1].learnt
        assert found == dict.fromkeys(self.learnt, 1)

    # --- what should come of it --------------------------------------------------------------------------------------

    def _new_text(self) -> str:
        self.number += 1
        return f"I own {self.number} cats"

    def _send(self, *, kept: bool, more: list[dict[str, Any]] | None = None) -> None:
        said: list[Any] = []
        for group in self.groups:
            said += [*(word.text for word in group), ">Noted."]
        headers = {} if kept else {"x-semmem-memory": "off"}
        self.run(self.talk.ask(*said[:-1], *(more or []), session=self.session, headers=headers))
        if kept:
            self._recovers()
            self._keeps([word for word in self.groups[-1][:-1] if word.state == "missed"] + self.groups[-1][-1:])
        else:
            for word in self.groups[-1]:
                word.state = "declined"

    def _recovers(self) -> None:
        proven = False
        for word in (word for group in self.groups[:-1] for word in group):
            if word.state == "missed" and proven:
                self._keeps([word])
            elif word.state == "missed":
                word.state = "passed"
            elif word.state != "passed":
                proven = word.state == "kept"

    def _keeps(self, words: list[Word]) -> None:
        for word in words:
            if word.state != "kept":
                self.pending.add(word.text)
            word.state = "kept"


Client.TestCase.settings = settings(
    max_examples=examples(60), stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)
test_any_client = Client.TestCase


def test_what_is_said_elsewhere_after_an_erasure_is_learnt_once() -> None:
    client = Client()
    try:
        client.begins(None)
        client.talks([(1, "kept"), (1, "kept")])
        client.erases()
        client.is_balanced_elsewhere()
        client.talks([(1, "kept"), (1, "kept")])
        client.is_balanced_elsewhere()
        client.tries_again()
    finally:
        client.teardown()
