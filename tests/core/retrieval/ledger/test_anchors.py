"""The names of the user's messages: the same wherever the same was said after the same, and no other's."""

from __future__ import annotations

import pytest

from semmem.memory import Conversation, Message, Role
from semmem.retrieval.context import HEADER, fenced
from semmem.retrieval.ledger.anchors import BEFORE_CHARS, Anchor, anchors_of, goes_on

SPEAKERS = {"s": Role.SYSTEM, "u": Role.USER, "a": Role.ASSISTANT, "t": Role.TOOL}
BLOCK = fenced(f"{HEADER}\n- User likes tea (undated)", "0123456789abcdef")


def talk(*lines: str) -> Conversation:
    """Lines as "u: Hello"."""
    return Conversation(tuple(Message(SPEAKERS[line[0]], line[3:]) for line in lines))


def names(*lines: str) -> list[str]:
    return [anchor.name for anchor in anchors_of(talk(*lines))]


def test_each_message_of_the_users_has_one_with_its_number() -> None:
    found = anchors_of(talk("s: Be brief.", "u: Hello", "a: Hi", "t: 21", "u: And now?"))
    assert [anchor.at for anchor in found] == [0, 1]
    assert len({anchor.name for anchor in found}) == 2


def test_where_nobody_speaks_there_is_none() -> None:
    assert names() == names("s: Be brief.", "a: Hi", "t: 21") == []


def test_a_later_request_has_the_names_of_the_one_before() -> None:
    said = ["u: Hello", "a: Hi", "u: How much?", "a: 10", "u: Why?"]
    assert names(*said)[:2] == names(*said[:3])


def test_instructions_and_tools_in_between_change_no_name() -> None:
    plain = names("u: Hello", "a: Hi", "u: How much?")
    assert names("s: Be brief.", "u: Hello", "a: Hi", "t: 10", "s: Now!", "u: How much?") == plain


def test_an_assistant_that_only_calls_tools_changes_no_name() -> None:
    assert names("u: Hello", "a: ", "t: 1", "a: Hi", "u: Bye") == names("u: Hello", "a: Hi", "u: Bye")


def test_blocks_and_white_space_around_the_words_change_no_name() -> None:
    plain = names("u: Hello", "a: Hi", "u: Bye")
    assert names(f"u: {BLOCK}\n\nHello", "a: Hi", "u: Bye") == plain
    assert names("u:   Hello \n", "a: Hi\n", f"u: Bye\n\n{BLOCK}") == plain


def test_other_words_are_another_message() -> None:
    assert len({*names("u: Hello"), *names("u: hello"), *names("u: Hello."), *names("u: ")}) == 4


def test_what_was_said_before_tells_the_same_words_apart() -> None:
    found = [names("a: Tea?", "u: Yes"), names("a: Milk?", "u: Yes"), names("u: Tea?", "u: Yes")[1:], names("u: Yes")]
    assert len({name for (name,) in found}) == 4


def test_another_answer_names_the_next_message_anew_and_those_before_it_not() -> None:
    said = names("u: A", "a: one", "u: B", "a: two", "u: C")
    again = names("u: A", "a: one", "u: B", "a: other", "u: C")
    assert said[:2] == again[:2]
    assert said[2] != again[2]


def test_a_message_that_was_edited_takes_the_name_of_the_next_one_along_only_where_nothing_was_answered() -> None:
    assert names("u: A", "a: one", "u: B")[1] == names("u: X", "a: one", "u: B")[1]
    assert names("u: A", "u: B")[1] != names("u: X", "u: B")[1]


def test_when_the_oldest_are_cut_off_the_others_keep_their_names_and_get_other_numbers() -> None:
    said = ["u: A", "a: one", "u: B", "a: two", "u: C", "a: three", "u: D"]
    whole, cut = anchors_of(talk(*said)), anchors_of(talk(*said[1:]))
    assert [anchor.name for anchor in cut] == [anchor.name for anchor in whole[1:]]
    assert [anchor.at for anchor in cut] == [0, 1, 2]


def test_only_the_end_of_what_was_said_before_counts() -> None:
    end = "e" * BEFORE_CHARS
    assert names(f"a: one{end}", "u: B") == names(f"a: other{end}", "u: B")
    assert names(f"a: one{end[1:]}", "u: B") != names(f"a: other{end[1:]}", "u: B")


def test_the_same_words_after_the_same_words_are_numbered() -> None:
    said = ["a: More?", "u: Yes", "a: More?", "u: Yes", "a: More?", "u: Yes"]
    first, second, third = names(*said)
    assert (second, third) == (f"{first}.2", f"{first}.3")
    assert names(*said[:2]) == [first]


def test_places_that_something_else_stands_for_have_none_and_count_all_the_same() -> None:
    said = talk("a: More?", "u: Yes", "a: More?", "u: Yes", "u: No")
    first, second, third = anchors_of(said)
    assert anchors_of(said, gone={0, 1}) == [second, third]
    assert (first.at, second, third.at) == (0, Anchor(f"{first.name}.2", 1), 2)


@pytest.mark.parametrize(
    ("lines", "does"),
    [
        (("u: Hello",), False),
        (("u: Hello", "a: ", "t: 21"), True),
        (("u: Hello", "a: ", "t: 21", "a: Warm.", "s: Go on."), True),
        (("u: Hello", "t: 21", "u: And?"), False),
        (("s: Be brief.",), False),
        ((), False),
    ],
)
def test_a_turn_goes_on_where_tools_spoke_last(lines: tuple[str, ...], does: bool) -> None:
    assert goes_on(talk(*lines)) is does
