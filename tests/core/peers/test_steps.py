"""Reading scenarios, and what a run is worth beside the list of known differences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.peers import __main__ as command
from tests.peers.known import NOT_PLAYED, judge, listed
from tests.peers.play import cannot_be_judged, kind
from tests.peers.steps import Json, NoSteps, Step, read, several, spelt_out, stories


def written(folder: Path, *rows: Json) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "own_scenarios.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder


def step(**row: object) -> Step:
    return Step("own:1", "own", "own", row)


# --- steps -----------------------------------------------------------------------------------------------------------


def test_steps_of_a_story_share_users_and_rows_of_a_list_do_not(tmp_path: Path) -> None:
    steps = read(
        written(
            tmp_path,
            {"scenario": "story", "step": 1, "user": "a"},
            {"scenario": "story", "step": 2, "user": "b"},
            {"scenario": "list", "step": 1, "user": "a"},
            {"scenario": "list", "step": 1, "user": "a"},
        )
    )
    assert [one.id for one in steps] == ["story:1", "story:2", "list:1", "list:2"]
    assert [one.user for one in steps] == ["story.a", "story.b", "list.1.a", "list.2.a"]
    assert [len(story) for story in stories(steps)] == [2, 1, 1]


def test_what_is_given_and_said_may_be_described() -> None:
    assert spelt_out("'begin ' + 'x'*3 + ' end'") == "begin xxx end"
    assert several("2 x 'Note i: ' + 'b'*2") == ["Note 0: bb", "Note 1: bb"]
    assert step(given_recipe="2 x 'i'").given == [{"content": "0"}, {"content": "1"}]
    assert step(message_recipe="'a'*2").message == "aa"
    assert step(given=["tea", {"content": "jam", "key": "k"}]).given == [
        {"content": "tea"},
        {"content": "jam", "key": "k"},
    ]


@pytest.mark.parametrize("recipe", ["open('x')", "'a' - 'b'", "3", "'a' * 'b'"])
def test_a_recipe_is_text_alone(recipe: str) -> None:
    with pytest.raises(ValueError, match="understood"):
        spelt_out(recipe)


@pytest.mark.parametrize("text", ["", "no JSON\n", '{"step": 1}\n', "[1]\n"])
def test_without_scenarios_nothing_is_played_and_the_reason_is_said(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "missing"
    if text:
        written(folder)
        (folder / "own_scenarios.jsonl").write_text(text)
    with pytest.raises(NoSteps):
        read(folder)
    assert command.main([str(folder)]) == 2
    assert str(folder) in capsys.readouterr().err


def test_an_expectation_that_nobody_looks_at_is_no_met_one() -> None:
    assert cannot_be_judged(step(message="Hello", expect_in_prompt=["tea"])) == ""
    assert "expect_moon" in cannot_be_judged(step(message="Hello", expect_moon=True))
    assert "dance" in cannot_be_judged(step(kind="dance"))
    assert "in words" in cannot_be_judged(step(kind="search", query="tea", expect="what it should be"))
    assert kind(step(message="Hello", expect_search=False)) == "gate"


# --- verdicts --------------------------------------------------------------------------------------------------------


def test_a_run_passes_when_just_the_listed_steps_differ() -> None:
    verdict = judge({"a:1": [], "a:2": ["status 500"]}, {"a:2": "because"})
    assert (verdict.exit_code, verdict.last_line) == (0, "peers: 2 steps, 1 differ")


def test_a_step_that_is_not_listed_fails_the_run() -> None:
    verdict = judge({"a:1": ["status 500"], "a:2": ["status 500"]}, {"a:2": "because"})
    assert (verdict.exit_code, verdict.new) == (1, ["a:1"])
    assert command.summary(verdict) == "NOT LISTED: a:1\npeers: 2 steps, 2 differ"


@pytest.mark.parametrize("found", [{"a:1": [], "a:2": []}, {"a:1": []}])
def test_a_listed_step_that_does_not_differ_any_more_fails_the_run(found: dict[str, list[str]]) -> None:
    verdict = judge(found, {"a:2": "because"})
    assert (verdict.exit_code, verdict.mended) == (1, ["a:2"])
    assert "LISTED, BUT DOES NOT DIFFER: a:2" in command.summary(verdict)


def test_no_reason_covers_a_step_that_was_not_played() -> None:
    verdict = judge({"a:1": [f"{NOT_PLAYED}: semmem is gone"]}, {"a:1": "because"})
    assert (verdict.exit_code, verdict.new) == (1, ["a:1"])


def test_a_part_of_the_steps_says_nothing_of_the_others() -> None:
    assert judge({"a:1": []}, {"a:2": "because"}, only=True).exit_code == 0
    assert judge({"a:1": []}, {"a:1": "because"}, only=True).exit_code == 1


def test_a_run_of_no_step_is_no_pass() -> None:
    assert judge({}, {}).exit_code == 1


def test_the_list_is_a_table_with_a_reason_for_each_step(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "| step | why |\n|---|---|\n| `a:1` `b_-1:2` | that | because `c:3` |\n| `GET /` | no step |\n`d:4`\n"
    )
    assert listed(page) == {"a:1": "because `c:3`", "b_-1:2": "because `c:3`"}
    page.write_text("| `a:1` | |\n")
    with pytest.raises(ValueError, match="no reason"):
        listed(page)
    page.write_text("| `a:1` | one |\n| `a:1` | two |\n")
    with pytest.raises(ValueError, match="twice"):
        listed(page)


def test_the_shipped_list_is_readable() -> None:
    assert listed()
