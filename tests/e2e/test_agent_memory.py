"""The runner of the public benchmarks on a tiny set of our own in both of their shapes, as its page has it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.support import forked
from tests.support.harness import ENVOY
from tests.support.scripted_llm import Body, ScriptedLLM

SETS = Path(__file__).parent / "agent_memory"


def scripted(body: Body) -> str:
    """As the one model it answers with the notes that it was given; as the judge it looks for the expected words."""
    last = str(body["messages"][-1]["content"])
    if not last.startswith("Question:"):
        return " ".join(str(message["content"]) for message in body["messages"][1:-1]) or "I do not know."
    expected, given = last.split("Expected: ")[1].split("\nGiven: ")
    return "Yes." if expected.split()[-1] in given else "no"


@pytest.mark.long(15)
async def test_both_shapes_are_told_asked_and_reported_and_judged_where_models_are_named(tmp_path: Path) -> None:
    rows = [row for file in sorted(SETS.glob("*.json")) for row in json.loads(file.read_text())]
    both, out = tmp_path / "both.json", tmp_path / "out.json"
    both.write_text(json.dumps(rows))
    async with ScriptedLLM(scripted) as llm:
        named = [part for name in ("--answers", "--judge") for part in (name, llm.base_url, "any")]
        words = ["quality.agent_memory", both, "--out", out, "--envoy", ENVOY, *named]
        done = await asyncio.to_thread(forked.finished, forked.STARTS_FORKS, words, timeout_s=110)
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed

    figures = json.loads(out.read_text())
    assert (figures["conversations"], figures["users"], figures["turns"]) == (3, 4, 15)
    assert figures["recall"]["category 4"] == {
        "questions": 5, "evidence": 100.0, "any": 100.0, "every": 100.0, "sessions": 100.0, "learnt": 100.0
    }  # fmt: skip
    assert figures["recall"]["single-session-user"]["evidence"] == 100.0
    assert figures["recall"]["all"]["questions"] == 7
    assert figures["without_evidence"]["questions"] == 2
    assert figures["lines_untraced"] == 0
    assert figures["outcomes"]["injected"] >= 7
    assert figures["tokens"]["mean"] > 20
    assert 0 < figures["latency_ms"]["p50"] < 5000
    assert figures["accuracy"]["judged"] == 9
    assert figures["accuracy"]["right"] >= 6
    assert "evidence in the prompt, %" in printed
