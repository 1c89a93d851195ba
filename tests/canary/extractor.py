"""The language model that semmem itself asks: scripted, and judging what it is shown.

It finds the facts that the rules would find, and makes summaries of them, so that whatever semmem does with a model's
words is done with canaries in them.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from semmem.extraction.rules import facts_in
from semmem.memory import Fact
from tests.canary.ledger import ONE_MEMORY, Ledger
from tests.faults.loops import loop_thread
from tests.support.scripted_llm import Body, ScriptedLLM

Json = dict[str, Any]

SENT_S = 0.5
"""A prompt that comes so soon after an erasure's answer may have been on its way before."""
SUMMARY_CHARS_MAX = 480
WHERE = "a prompt to the extraction model"


class Extractor:
    """Answers prompts for facts, for the summary of a session, and for the summary of memories; ``asked`` counts."""

    def __init__(self, ledger: Ledger) -> None:
        self.asked: Counter[str] = Counter()
        self._ledger = ledger
        self._llm = ScriptedLLM(self.answer)

    @contextmanager
    def running(self) -> Iterator[str]:
        """Its URL."""
        with loop_thread() as loop:
            loop.run(self._llm.__aenter__())
            try:
                yield self._llm.base_url
            finally:
                loop.run(self._llm.__aexit__(None, None, None))

    def answer(self, body: Body) -> str:
        for kept in (self._llm.requests, self._llm.headers, self._llm.paths):
            kept.clear()  # a long run asks thousands of times
        rules, shown = (message["content"] for message in body["messages"])
        lines = [json.loads(line) for line in shown.splitlines() if line.startswith(("{", '"'))]
        self._judge([line if isinstance(line, str) else line.get("user") or line["noted"] for line in lines], shown)
        lines = [line for line in lines if isinstance(line, str) or "user" in line]  # the others are notes
        if '"facts"' in rules:
            self.asked["facts"] += 1
            return json.dumps({"facts": [_item(line, f) for line in _new(lines) for f in facts_in(line["user"])]})
        if '"summary"' in rules:
            self.asked["session summaries"] += 1
            return json.dumps(
                {"summary": self._summed_up([f.content for line in lines for f in facts_in(line["user"])])}
            )
        self.asked["summaries of memories"] += 1
        return json.dumps({"content": self._summed_up(lines)})

    def _summed_up(self, contents: list[str]) -> str:
        text = _joined(contents)
        self._ledger.sum_up(text)
        return text

    def _judge(self, said: list[str], shown: str) -> None:
        """One prompt is about one user; what its turns and notes say was not erased before."""
        began = time.monotonic() - SENT_S
        for viewer in {user for user, _ in self._ledger.words.found(shown)}:
            self._ledger.saw(viewer, shown, began=began, where=WHERE, own="")
            for user, number in self._ledger.words.found("\n".join(said)):
                fact = self._ledger.fact(user, number)
                if fact is not None and began > fact.erased_at and fact.gone != ONE_MEMORY:
                    self._ledger.returned(fact, WHERE)


def _new(lines: list[Json]) -> list[Json]:
    return [line for line in lines if "turn" in line]


def _item(line: Json, finding: Fact) -> Json:
    return {"turn": line["turn"], "type": finding.type, "content": finding.content, "when": ""}


def _joined(contents: list[str]) -> str:
    """As many as fit, each a sentence."""
    text = ""
    for content in contents:
        longer = f"{text} {content.rstrip('.')}.".strip()
        if len(longer) <= SUMMARY_CHARS_MAX:
            text = longer
    return text
