"""Files in the shape of the two public benchmarks: what is read of them, and what is said of one that is neither."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quality.agent_memory.__main__ import main
from quality.agent_memory.datasets import DatasetError, Story, read

HERE = Path(__file__).parents[3] / "e2e" / "agent_memory"


def read_rows(folder: Path, rows: Any) -> list[Story]:
    file = folder / "set.json"
    file.write_text(rows if isinstance(rows, str) else json.dumps(rows))
    return read(file)


def test_two_people_are_two_users_and_evidence_is_read_however_it_is_written() -> None:
    (story,) = read(HERE / "locomo_shaped.json")

    assert story.users == ("Marit", "Tomas")
    assert [session.id for session in story.sessions] == ["D1", "D2"]
    assert story.sessions[0].said[0].text == "Hi Tomas! My brother Henk lives in Bergen."
    evidence = {question.text[:9]: question.evidence for question in story.questions}
    assert evidence["What does"] == {"D2:1"}  # of two questions the later
    assert evidence["Which ani"] == {"D1:5", "D2:3"}
    assert story.questions[2].evidence == {"D1:4"}, "a number may begin with a nought"
    assert story.questions[6].evidence == frozenset(), "nothing answers category 5, whatever it names"
    assert story.session_of()["D2:3"] == "D2"


def test_a_row_with_roles_is_one_user_and_its_evidence_are_marked_turns_else_whole_sessions(tmp_path: Path) -> None:
    rows = json.loads((HERE / "longmemeval_shaped.json").read_text())
    marked, abstained = read_rows(tmp_path, rows)
    (turn,) = (turn for session in rows[0]["haystack_sessions"] for turn in session if turn.pop("has_answer", False))
    (whole, _) = read_rows(tmp_path, rows)

    assert marked.users == ("user",)
    assert {said.text for s in marked.sessions for said in s.said if said.id in marked.questions[0].evidence} == {
        turn["content"]
    }
    assert {whole.session_of()[one] for one in whole.questions[0].evidence} == {"1-s-2"}
    assert len(whole.questions[0].evidence) == 4
    assert abstained.questions[0].evidence == frozenset()


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("no JSON", "set.json: is no JSON file"),
        ({}, "set.json: is no list"),
        ([], "set.json: is no list"),
        ([{"other": 1}], r"set.json\[0\]: has neither"),
        ([3], r"set.json\[0\]: TypeError"),
        ([{"conversation": {"speaker_a": "a"}, "qa": []}], r"set.json\[0\]: KeyError at 'sample_id'|speaker_b"),
        ([{"haystack_sessions": [[]], "haystack_session_ids": []}], r"set.json\[0\]: ValueError"),
    ],
)
def test_a_file_of_another_shape_is_refused_by_place(tmp_path: Path, rows: Any, says: str) -> None:
    with pytest.raises(DatasetError, match=says):
        read_rows(tmp_path, rows)
    with pytest.raises(DatasetError, match=r"nowhere\.json"):
        read(tmp_path / "nowhere.json")


def test_what_cannot_be_read_is_said_before_anything_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("just words")
    known = str(HERE / "locomo_shaped.json")
    for argv, says in (
        (["nowhere.json"], "nowhere.json: is no JSON file"),
        ([known, "--config", str(config)], "is no mapping"),
        ([known, "--judge", "http://127.0.0.1:1/v1", "any"], "need each other"),
    ):
        assert main(argv) == 2
        assert says in capsys.readouterr().err


_any = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["conversation", "qa", "session_1", "speaker_a", "haystack_sessions", "evidence", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(_any, max_size=3))
def test_no_file_brings_the_reader_down(tmp_path_factory: pytest.TempPathFactory, rows: Any) -> None:
    with suppress(DatasetError):
        read_rows(tmp_path_factory.getbasetemp(), rows)
