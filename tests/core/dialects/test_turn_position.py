"""Blocks at the user's messages: each at the beginning of its own, and everything else as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.dialects import BY_NAME
from semmem.memory import Injection, Role
from semmem.retrieval.context import HEADER, fenced, strip_block

TEXTS = st.sampled_from(["", " ", "Hello", 'a "quoted" \\ line\n\n', "阿達 🐝", "\ud83d half"])
PICTURE = {
    "chat": {"type": "image_url", "image_url": {"url": "data:,"}},
    "messages": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}},
    "responses": {"type": "input_image", "image_url": "data:,"},
}
MEMBER = {"chat": "messages", "messages": "messages", "responses": "input"}


def block(number: int) -> str:
    return fenced(f"{HEADER}\n- User likes tea no. {number} (undated)", f"{number:016x}")


def contents(name: str) -> st.SearchStrategy[Any]:
    part = "input_text" if name == "responses" else "text"
    parts = st.one_of(TEXTS.map(lambda text: {"type": part, "text": text}), st.just(PICTURE[name]))
    return st.one_of(TEXTS, st.lists(parts, max_size=3))


def items(name: str) -> st.SearchStrategy[Any]:
    user = contents(name).map(lambda content: {"role": "user", "content": content})
    others = st.sampled_from(["assistant", "system"]).map(lambda role: {"role": role, "content": "Hm"})
    result = {"type": "tool_result", "tool_use_id": "c", "content": "21"}
    if name == "messages":
        behind = st.lists(TEXTS.map(lambda text: {"type": "text", "text": text}), max_size=2)
        return st.one_of(user, others, behind.map(lambda parts: {"role": "user", "content": [result, *parts]}))
    if name == "responses":
        return st.one_of(user, others, st.just({"type": "function_call_output", "call_id": "c", "output": "21"}))
    return st.one_of(user, others, st.just({"role": "tool", "tool_call_id": "c", "content": "21"}))


BODIES = st.sampled_from(sorted(MEMBER)).flatmap(
    lambda name: st.tuples(st.just(name), st.lists(items(name), min_size=1, max_size=6), st.booleans())
)


@given(BODIES, st.data())
def test_each_block_stands_at_its_message_and_nothing_else_changes(
    drawn: tuple[str, list[Any], bool], data: st.DataObject
) -> None:
    name, said, is_ascii = drawn
    encoded = json.dumps({"model": "m", MEMBER[name]: said}, ensure_ascii=is_ascii)
    body = encoded.encode("utf-8", "replace")
    parsed = BY_NAME[name].parse(body)
    users = [message.text for message in parsed.conversation.messages if message.role is Role.USER]
    places = data.draw(st.sets(st.integers(0, len(users) - 1)) if users else st.just(set[int]()))
    rewritten = parsed.rewrite(*(Injection(block(at), position="turn", at=at) for at in sorted(places, reverse=True)))
    assert (rewritten is None) == (not places)
    after = BY_NAME[name].parse(rewritten or body)
    seen = [message.text for message in after.conversation.messages if message.role is Role.USER]
    assert [text.startswith(block(at)) for at, text in enumerate(seen)] == [at in places for at in range(len(users))]
    assert [strip_block(text).strip() for text in seen] == [text.strip() for text in users]
    others = [message for message in parsed.conversation.messages if message.role is not Role.USER]
    assert [message for message in after.conversation.messages if message.role is not Role.USER] == others
    read = json.loads(rewritten or body)
    assert [type(item.get("content")) for item in read[MEMBER[name]]] == [type(item.get("content")) for item in said]


NO_USER: dict[str, bytes] = {
    "chat": b'{"messages":[{"role":"assistant","content":"Hello"}]}',
    "messages": b'{"messages":[{"role":"assistant","content":"Hello"}]}',
    "responses": b'{"input":[{"role":"assistant","content":"Hello"}]}',
}


@pytest.mark.parametrize("name", NO_USER)
def test_a_block_of_a_message_that_is_not_there_goes_nowhere(name: str) -> None:
    assert BY_NAME[name].parse(NO_USER[name]).rewrite(Injection("facts", position="turn")) is None


TWICE: dict[str, bytes] = {
    "messages": b'{"messages":[{"role":"user","content":"a","content":"b"}]}',
    "responses": b'{"input":[{"role":"user","content":"a","content":"b"}]}',
}


@pytest.mark.parametrize("name", TWICE)
def test_a_message_that_names_its_content_twice_is_left_alone(name: str) -> None:
    assert BY_NAME[name].parse(TWICE[name]).rewrite(Injection("facts", position="turn")) is None
