"""What is told, learnt and asked for again: preferences, stories, updates, other systems' stories."""

from __future__ import annotations

import pytest

from quality.folder import Folder, Row
from quality.peers import can_be_judged, unexpected_in_prompt, unexpected_in_store
from quality.preferences import content_words
from quality.stories import drawn, is_served
from quality.stories import said as told_in
from quality.telling import tell
from quality.updates import holds, updated, updates
from quality.wiring import NOW, Semmem, notes_in


async def test_notes_are_the_lines_of_the_block_without_its_header(parts: Semmem) -> None:
    (note,) = await parts.notes("Is the cello in Ghent mine?", "ada")
    assert note == "User plays the cello in Ghent (said 15 January 2027)"
    assert await parts.notes("hello", "ada") == []
    assert notes_in("<tag>\nHeader - with a dash\n- [a] one\n- two\n</tag>") == ["[a] one", "two"]


@pytest.mark.parametrize(
    ("ask", "notes", "right"),
    [
        ({"expect": [["Ghent", "Gand"], ["cello"]]}, ["lives in gand", "plays the Cello"], True),
        ({"expect": [["Ghent"], ["cello"]]}, ["lives in Ghent"], False),
        ({"expect": [["Ghent"]], "must_not": ["Bruges"]}, ["Ghent", "from bruges"], False),
        ({"nothing": True}, [], True),
    ],
)
def test_an_ask_is_served_when_all_that_is_expected_is_in_the_notes(ask: Row, notes: list[str], right: bool) -> None:
    assert is_served(ask, notes, shown=len(notes)) is right


def test_an_ask_that_wants_nothing_is_not_served_by_other_people_s_notes() -> None:
    assert not is_served({"nothing": True}, [], shown=1)


def test_each_story_has_the_same_crowd_in_every_run() -> None:
    crowd = [str(number) for number in range(200)]
    assert drawn(crowd, "s1") == drawn(crowd, "s1") != drawn(crowd, "s2")
    assert len(set(drawn(crowd, "s1"))) == 60
    assert drawn(["a"], "s1") == ["a"]


async def test_what_is_told_is_learnt_at_its_own_time_in_its_own_session(parts: Semmem) -> None:
    story = [
        {"session": "a", "days_ago": 9, "text": "I live in Ghent."},
        {"session": "b", "days_ago": 2, "text": "I play the cello."},
    ]
    turns = await tell(parts, {"dora": told_in(story), "emil": told_in(story[:1])})
    memories = sorted(await parts.retrievable("dora"), key=lambda memory: memory.created_at)
    assert [memory.source.turn for memory in memories] == turns["dora"]
    assert [round((NOW - memory.created_at) / 86_400) for memory in memories] == [9, 2]
    assert [round((NOW - memory.said_at) / 86_400) for memory in memories] == [9, 2]
    assert len({memory.session for memory in memories}) == 2
    assert len(await parts.retrievable("emil")) == 1


def test_a_preference_is_known_again_by_its_content_words() -> None:
    assert content_words("I'd rather have Green tea than the other") == {"rather", "green", "other"}


async def test_the_new_value_is_found_where_it_was_told_and_the_old_one_apart(parts: Semmem) -> None:
    rows = updates("all")
    assert len(rows) >= 60
    assert {row["ask"] for row in updates("without")} | {row["ask"] for row in updates("only")} == {
        row["ask"] for row in rows
    }
    figures, details = await updated(Folder({}, ()), parts)
    assert len(details["missed"]) + details["new"]["count"] == len(rows)
    assert figures["update_new"] == 100 * details["new"]["count"] / len(rows)
    assert holds(["It is 52 GUESTS now"], ["52 guests"])
    assert not holds([], ["52 guests"])


def test_each_update_says_its_values_in_the_turns_and_not_in_the_question() -> None:
    for row in updates("all"):
        *before, last = (turn["text"] for turn in row["turns"])
        assert holds([last], row["new"])
        assert holds(before, row["old"])
        assert not holds([*before, row["ask"]], row["new"])
        assert not holds([row["ask"]], row["old"])


@pytest.mark.parametrize(
    ("step", "notes", "wrong"),
    [
        ({"expect_in_prompt": ["Ghent", "cello"]}, ["in ghent"], ["prompt lacks cello"]),
        ({"expect_in_prompt": ["Ghent", "cello"], "match": "any"}, ["in ghent"], []),
        ({"expect_in_prompt": ["Ghent"], "match": "any"}, [], ["prompt lacks Ghent"]),
        ({"must_not": ["Ghent"]}, ["in ghent"], ["prompt holds Ghent"]),
    ],
)
def test_a_prompt_is_held_against_what_its_step_expects(step: Row, notes: list[str], wrong: list[str]) -> None:
    assert unexpected_in_prompt(step, notes) == wrong


@pytest.mark.parametrize(
    ("step", "wrong"),
    [
        ({"expect_stored": ["TEA", "coffee"]}, ["not stored: coffee"]),
        (
            {"expect_stored": ["I like tea", "like tea", "tea likes"]},
            ["not stored: I like tea", "not stored: tea likes"],
        ),
        ({"stored_must_not": ["tea"]}, ["stored: tea"]),
        ({"stored_must_not": ["like tea"]}, []),
        ({"must_not_stored_as": ["likes tea"]}, ["stored: likes tea"]),
        ({"expect_count": {"tea": 2}}, ["not 2 times: tea"]),
        ({"expect_min_facts": 2}, ["too few facts"]),
        ({"expect_facts": 0}, ["facts where none are"]),
        ({"expect_max_length": 5}, ["a fact too long"]),
    ],
)
def test_a_store_is_held_against_what_its_step_expects(step: Row, wrong: list[str]) -> None:
    assert unexpected_in_store(step, ["User likes tea"]) == wrong


def test_only_what_needs_no_running_semmem_is_judged() -> None:
    assert can_be_judged({"message": "hello", "kind": "extract", "expect_facts": 0})
    assert not can_be_judged({"message": "hello", "kind": "inject"})
    assert not can_be_judged({"message": "hello", "config": {}})
    assert not can_be_judged({"kind": "extract"})
