"""Which file is which set, and which rows are put aside."""

from __future__ import annotations

from pathlib import Path

import pytest

from quality.__main__ import main
from quality.folder import FolderError, is_aside, read_folder
from quality.gate import personal_questions
from quality.learning import WRAPPERS
from quality.recall import unrelated
from semmem.extraction.rules import facts_in
from tests.integration.quality.folders import FILES, folder_of


def test_files_are_known_by_their_names_wherever_they_lie(tmp_path: Path) -> None:
    row = {"text": "hello", "intent": "greeting"}
    folder = read_folder(
        folder_of(tmp_path, {"clinc_test.jsonl": [row], "deep/er/clinc150.jsonl": [row, row], "x/clinc.csv": []})
    )
    assert {name: len(rows) for name, rows in folder.files("clinc").items()} == {"clinc_test": 1, "clinc150": 2}
    assert folder.ignored == ("x/clinc.csv",)


def test_a_row_without_its_field_is_named(tmp_path: Path) -> None:
    folder_of(tmp_path, {"pairs.jsonl": [{"old": "a", "new": "b", "label": "same"}, {"old": "a"}]})
    with pytest.raises(FolderError, match=r"pairs\.jsonl:2: no field new, label"):
        read_folder(tmp_path)


def test_a_line_that_is_not_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "pairs.jsonl").write_text("{}]\n", encoding="utf-8")
    with pytest.raises(FolderError, match=r"pairs\.jsonl:1: not JSON"):
        read_folder(tmp_path)


@pytest.mark.parametrize("name", [".", "missing"])
def test_nothing_to_measure_is_an_error(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / name)]) == 2
    assert str(tmp_path) in capsys.readouterr().err


def test_unrelated_messages_are_no_questions_about_the_user(tmp_path: Path) -> None:
    folder = read_folder(folder_of(tmp_path, FILES))
    assert set(unrelated(folder)) == {"general_facts_maps", "greeting", "thank_you", "timer"}
    assert set(personal_questions(folder)) == {"personal_own", "first_person_questions", "bfcl_questions"}


def test_no_wrapper_says_anything_about_the_user() -> None:
    assert {name: facts_in(wrapper.replace("{text}", "")) for name, wrapper in WRAPPERS.items()} == {
        name: [] for name in WRAPPERS
    }


# --- the fifth that is put aside -------------------------------------------------------------------------------------


def test_a_fifth_of_the_groups_is_put_aside_whole_and_always_the_same(tmp_path: Path) -> None:
    rows = [{"user": f"u{number % 100}", "preference": "p", "question": str(number)} for number in range(300)]
    folder = read_folder(folder_of(tmp_path, {"preferences_x.jsonl": rows}))
    without, only = (folder.part(word).rows("preferences") for word in ("without", "only"))
    assert len(without) + len(only) == len(folder.part("all").rows("preferences")) == 300
    assert not {row["user"] for row in without} & {row["user"] for row in only}
    assert 10 <= len({row["user"] for row in only}) <= 30
    assert [is_aside(group) for group in ("u0", "u1", "u2", "u3", "u4", "u5", "u6")] == [
        False,
        False,
        False,
        True,
        False,
        True,
        False,
    ]
    with pytest.raises(ValueError, match="fifth"):
        folder.part("half")


def test_what_a_question_is_asked_of_stays_with_it(tmp_path: Path) -> None:
    folder = read_folder(folder_of(tmp_path, FILES)).part("only")
    users = {row["user"] for row in folder.rows("first_person_questions")}
    assert users == {row["user"] for row in folder.rows("first_person_facts")}
    assert len(folder.rows("bfcl_turns")) == 2  # of too few scenarios to put one aside
