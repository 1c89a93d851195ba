"""A turn as passages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.memory import MemoryType, Scope, Turn
from semmem.passages.pieces import (
    GIST_CHARS_MAX,
    PIECE_CHARS_MAX,
    PIECES_MAX,
    QUESTION_CHARS_MAX,
    gist_of,
    ids_of,
    is_passage,
    passages_of,
    pieces,
)

SCOPE = Scope("ada", project="boat", agent="cli", session="s1")


def turn(text: str, answer: str | None = None) -> Turn:
    return Turn("t1", SCOPE, 1, text, 900.0, request_id="r1", answer=answer)


def test_a_short_message_is_one_piece_as_it_was_said() -> None:
    [passage] = passages_of(turn('We met "Old Tom" in Ghent.  He sells  boats!'), now=1000.0, expires_at=2000.0)
    assert passage.content == "\"We met 'Old Tom' in Ghent. He sells boats!\""
    assert (passage.type, passage.user, passage.project, passage.agent, passage.session) == (
        MemoryType.PASSAGE, "ada", "boat", "cli", "s1",
    )  # fmt: skip
    assert (passage.source.role, passage.source.turn, passage.source.time) == ("user", "t1", 900.0)
    assert (passage.said_at, passage.created_at, passage.expires_at) == (900.0, 1000.0, 2000.0)


@pytest.mark.parametrize("text", ["", "yes", "ok thanks", "!!!", "好的"])
def test_what_says_nothing_alone_is_no_passage(text: str) -> None:
    assert pieces(text) == []


def test_a_language_without_spaces_says_something() -> None:
    assert pieces("我上个月搬到了里昂。") == ["我上个月搬到了里昂。"]


def test_a_long_message_is_cut_between_sentences_and_no_word_is_lost() -> None:
    sentences = [f"On day {number} we sailed from one small harbour to the next." for number in range(40)]
    found = pieces(" ".join(sentences))
    assert max(map(len, found)) <= PIECE_CHARS_MAX
    assert " ".join(found) == " ".join(sentences)


def test_of_a_very_long_message_the_beginning_is_kept() -> None:
    found = pieces("word " * 10_000)
    assert len(found) == PIECES_MAX
    assert max(map(len, found)) <= PIECE_CHARS_MAX


def test_an_answer_leaves_its_gist_marked_as_the_assistants() -> None:
    said, gist = passages_of(
        turn("Which knot holds a fender?", "## Knots\n\nUse a **round turn** with two hitches.\n```\ncode\n```"),
        now=1.0,
        expires_at=None,
    )
    assert (said.type, gist.type, gist.source.role) == (MemoryType.PASSAGE, MemoryType.GIST, "assistant")
    assert gist.content == "Knots Use a round turn with two hitches."


def test_the_question_that_an_answer_ends_with_is_of_its_gist() -> None:
    """What the user says next is the answer to it."""
    long = "Lisbon has many hotels by the river. " * 20
    asked = "What may a night cost?"
    gist = gist_of(f"{long}\n\n**{asked}**")
    assert gist.startswith("Lisbon has many hotels by the river. ")
    assert gist.endswith(f"river. … {asked}")
    assert gist_of(f"Gladly. {asked}") == f"Gladly. {asked}"
    assert asked not in gist_of(f"{long}{asked} {long}")
    assert gist_of(f"{long}{'Or ' * 60}when?") == gist_of(long)
    assert len(gist_of(f"{'x' * 900}. {'y' * (QUESTION_CHARS_MAX - 1)}?")) <= GIST_CHARS_MAX + QUESTION_CHARS_MAX + 3


def test_a_gist_ends_with_a_sentence() -> None:
    found = gist_of("This is a sentence of some length about boats. " * 40)
    assert len(found) <= GIST_CHARS_MAX
    assert found.endswith("about boats.")
    assert len(gist_of("x" * 900)) <= GIST_CHARS_MAX


@given(st.text(max_size=2000))
def test_every_passage_of_a_turn_has_an_id_that_is_known_from_the_turn_alone(text: str) -> None:
    made = [passage.id for passage in passages_of(turn(text, text), now=1.0, expires_at=None)]
    assert len(set(made)) == len(made)
    assert set(made) <= set(ids_of("t1"))
    assert all(map(is_passage, made))
