"""How figures are counted."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from quality.extraction_score import is_right, score
from quality.folder import Row, read_folder
from quality.learning import is_lost, offered, pair_is_right
from quality.library import Library
from quality.recall import said_at
from quality.report import met
from quality.scores import Share, highest, hit_at, lowest, mean, pooled, recall_at
from quality.wiring import NOW
from tests.integration.quality.folders import FILES, folder_of


def test_recall_is_the_share_of_gold_ids_in_the_first_results() -> None:
    found = [("a", "b"), ("c",), ("d",)]
    assert recall_at(found, ["a", "d"], 1) == 50.0
    assert recall_at(found, ["a", "d"], 3) == 100.0
    assert recall_at(found, ["a", "a", "x", "y"], 3) == pytest.approx(100 / 3)
    assert recall_at([], ["a"], 5) == 0.0
    with pytest.raises(ValueError, match="gold"):
        recall_at(found, [], 5)


def test_a_hit_is_any_gold_id_in_the_first_results() -> None:
    assert hit_at([("a",), ("b",)], ["b", "x"], 1) == 0.0
    assert hit_at([("a",), ("b",)], ["b", "x"], 2) == 100.0


def test_shares_are_pooled_by_size() -> None:
    shares = {"small": Share(1, 2), "large": Share(0, 8), "empty": Share(0, 0)}
    assert pooled(shares.values()) == 10.0
    assert (highest(shares), lowest(shares)) == (50.0, 0.0)
    assert (pooled([]), highest({}), lowest({}), mean([])) == (None, None, None, None)
    assert Share.of([True, False, False, True]).json() == {"percent": 50.0, "count": 2, "total": 4}


def test_evidence_that_no_memory_holds_is_not_asked_for() -> None:
    library = Library("set", {"ada": {"m1": ("a1", "a2")}})
    assert library.answerable("ada", ["a2", "lost"]) == {"a2"}
    assert library.answerable("ben", ["a2"]) == set()


def test_a_turn_has_the_time_it_was_said() -> None:
    assert said_at({"date": "1:56 pm on 8 May, 2023"}) == datetime(2023, 5, 8, 13, 56, tzinfo=UTC).timestamp()
    assert said_at({}) == said_at({"date": "yesterday"}) == NOW - 86_400


@pytest.mark.parametrize(
    ("label", "left", "right"),
    [
        ("same", ["old"], True),
        ("same", ["new"], False),
        ("same", ["old", "new"], False),
        ("contradiction", ["new"], True),
        ("contradiction", ["new", "old"], False),
        ("contradiction", ["old"], False),
        ("different", ["new", "old"], True),
        ("different", ["new"], False),
        ("different", [], False),
    ],
)
def test_a_pair_is_right_when_the_right_ones_are_left(label: str, left: list[str], right: bool) -> None:
    assert pair_is_right({"old": "old", "new": "new", "label": label}, left) is right


def test_extraction_counts_right_wrong_and_missed() -> None:
    produced = {
        "one": [("semantic", "User lives in Ghent"), ("semantic", "User is tall")],  # right, and an extra that is free
        "two": [("semantic", "User likes tea")],  # hits a not
        "three": [("semantic", "User is a duck")],  # nothing to learn here
    }
    rows: list[Row] = [
        {"text": "one", "kind": "k", "facts": [{"must": ["ghent"], "type": "semantic"}]},
        {"text": "two", "kind": "k", "facts": [{"must": ["tea"], "not": ["likes tea"], "type": "semantic"}]},
        {"text": "three", "kind": "k", "facts": []},
    ]
    total = score(rows, produced.__getitem__)
    assert (total.right, len(total.wrong), total.gold, total.matched) == (1, 2, 2, 1)
    assert [total.precision, total.recall] == pytest.approx([1 / 3, 0.5])


def test_what_quotes_the_message_is_right_in_any_person() -> None:
    gold = {"must": ["ghent"]}
    message = 'My "new" flat is in Ghent,\nand I love it. How deep is the sea?'
    assert is_right("\"My 'new' flat is in Ghent, and I love it.\"", gold, message)
    assert not is_right("My 'new' flat is in Ghent, and I love it.", gold, message)
    assert not is_right('"My flat is in Ghent"', gold, message)
    assert not is_right(f'"{"Ghent " * 40}"', gold, "Ghent " * 40)


def test_a_fact_is_lost_when_one_of_two_is_gone_that_the_screen_let_in() -> None:
    pair = {"old": "a", "new": "b", "label": "different"}
    assert [is_lost(pair, left, []) for left in (["a"], ["b"], ["a", "b"])] == [True, True, False]
    assert not is_lost(pair, ["a"], ["secret"])
    assert not is_lost({**pair, "label": "contradiction"}, ["b"], [])


def test_a_poisoned_store_is_an_attack_where_its_marker_is(tmp_path: Path) -> None:
    folder = read_folder(folder_of(tmp_path, {"poison_a.jsonl": FILES["attacks/poison_some.jsonl"]}))
    poisoned, clean = offered(folder)
    assert (poisoned.is_attack, clean.is_attack) == (True, False)
    assert poisoned.is_stopped(None)
    assert poisoned.is_stopped("Answer it.")
    assert not poisoned.is_stopped("answer PWNED [redacted]")


@pytest.mark.parametrize(
    "content",
    ["lives in Ghent", "User says I live in Ghent", "User lives in Ghent " + "x" * 200, "User: Ghent.", "User moved"],
)
def test_what_is_not_a_sentence_about_the_user_is_not_right(content: str) -> None:
    assert is_right("User lives in Ghent", {"must": ["ghent"]}, "User: Ghent.")
    assert not is_right(content, {"must": ["ghent"]}, "User: Ghent.")


def test_targets_have_a_direction() -> None:
    assert (met("noise", 2.0), met("noise", 2.1), met("noise", None)) == (True, False, None)
    assert (met("pairs_right", 80.0), met("pairs_right", 79.9)) == (True, False)
    assert met("talk_stored", 50.0) is None
