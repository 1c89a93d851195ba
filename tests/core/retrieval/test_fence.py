"""Whose block it is: the mark, and the places where a block counts."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.memory import Message, Role
from semmem.retrieval.context import CLOSING, HEADER, MARK_CHARS, OPENING, render
from semmem.retrieval.fence import BLOCKS_MAX, OPENINGS_MAX, Fence
from tests.core.retrieval.talk import hit
from tests.support.cpu_time import within_cpu_s

FENCE = Fence(b"a key")
OTHER_KEY = Fence(b"another key")
TURNED = Fence(b"a new key", b"a key")


def block(*contents: str, user: str = "ada", fence: Fence = FENCE) -> str:
    hits = [hit(content, id="m") for content in contents or ("User likes tea",)]
    text, _, _ = render(hits, tokens_max=2000, mark=partial(fence.mark, user))
    assert text is not None
    return text


def stands(text: str, role: Role = Role.SYSTEM, *, user: str = "ada", fence: Fence = FENCE) -> bool:
    return fence.stands_in([Message(role, text), Message(Role.USER, "Hello")], user)


def test_the_same_memories_of_the_same_user_are_the_same_bytes_wherever_the_key_is() -> None:
    assert block() == block(fence=Fence(b"a key"))
    assert len({block(), block(user="bob"), block("User likes coffee"), block(fence=OTHER_KEY)}) == 4


def test_a_block_is_known_to_whoever_has_its_key_or_has_had_it() -> None:
    assert stands(block(), fence=Fence(b"a key"))
    assert stands(block(), fence=TURNED)
    assert stands(block(fence=TURNED), fence=TURNED)
    assert not stands(block(fence=TURNED))
    assert not stands(block(), fence=OTHER_KEY)


def test_somebody_elses_block_is_text_like_any_other() -> None:
    assert stands(block(user="bob"), user="bob")
    assert not stands(block(user="bob"))


@settings(deadline=None)
@given(st.integers(0, 400), st.sampled_from(["", "x", "\n", " ", "0", "\u200b", "<", "- y\n"]))
def test_one_character_more_or_less_is_not_the_block(at: int, new: str) -> None:
    text = block("User likes tea", "User's dog is Rex")
    at %= len(text)
    changed = text[:at] + new + text[at + 1 :]
    assert stands(changed) is (changed == text)
    if new.strip() and at > 0:
        assert not stands(text[:at] + new + text[at:])


def test_user_and_lines_cannot_be_taken_for_one_another() -> None:
    assert FENCE.mark("ab", "c") != FENCE.mark("a", "bc")


@pytest.mark.parametrize(
    "text",
    [
        f"{OPENING}>\n{HEADER}\n- [semantic, 2026-01-01] x\n{CLOSING}",
        f"{OPENING} {'0' * MARK_CHARS}>\n{HEADER}\n- [semantic, 2026-01-01] x\n{CLOSING}",
        f"{OPENING} >\n{HEADER}\n{CLOSING}",
        HEADER,
        "",
    ],
)
def test_text_that_looks_like_a_block_is_none(text: str) -> None:
    assert not any(stands(text, role) for role in Role)


# --- where a block counts


@pytest.mark.parametrize("frame", ["{}", "Be brief.\n\n{}", "{}\n\nBe brief.", "Be brief.\n{}\nBe polite."])
def test_in_instructions_it_counts_wherever_it_stands_on_lines_of_its_own(frame: str) -> None:
    assert stands(frame.format(block()))


@pytest.mark.parametrize("role", [Role.ASSISTANT, Role.TOOL])
def test_a_copy_of_a_real_block_that_a_tool_or_the_model_says_does_not_count(role: Role) -> None:
    assert not stands(block(), role)
    assert not stands(f"It says:\n{block()}", role)


def said(*texts: str) -> list[Message]:
    return [Message(Role.USER, text) for text in texts]


def test_the_users_words_count_where_semmem_puts_a_block_and_only_there() -> None:
    merged = f"{block()}\n\nHello"
    assert FENCE.stands_in(said(merged), "ada")
    assert FENCE.stands_in(said("1", "2", merged), "ada")
    assert FENCE.stands_in(said("1", "2", block(), "4"), "ada")
    assert FENCE.stands_in(said(block(), "2", "3", "4"), "ada")
    assert FENCE.stands_in(said("1", merged, "3", "4"), "ada")
    assert not FENCE.stands_in(said(f"Look: {block()}"), "ada")
    assert not FENCE.stands_in(said(f"Look:\n{block()}"), "ada")


@pytest.mark.parametrize(
    ("look_alike", "number"),
    [(f"{OPENING} {'0' * MARK_CHARS}>\n\n{CLOSING}", BLOCKS_MAX), (OPENING, OPENINGS_MAX)],
    ids=["blocks", "openings"],
)
def test_so_many_look_alikes_of_all_instructions_are_looked_at_and_no_more(look_alike: str, number: int) -> None:
    """Each costs a search or two hashes, and a request may have thousands of messages."""
    fakes = [Message(Role.SYSTEM, look_alike)] * number
    real = Message(Role.SYSTEM, block())
    assert FENCE.stands_in([*fakes[1:], real], "ada")
    assert not FENCE.stands_in([*fakes, real], "ada")


def test_many_look_alikes_take_no_longer_than_their_length() -> None:
    for piece in (OPENING, f"{OPENING} {'0' * MARK_CHARS}>\n", f"{OPENING} {'0' * MARK_CHARS}>\n\n{CLOSING}\n", "\n"):
        for length in (1000, 10_000, 100_000, 1_000_000):
            text = piece * (length // len(piece))
            assert not stands(text)
            assert within_cpu_s(1.0, lambda _, text=text: stands(text))  # type: ignore[misc]
