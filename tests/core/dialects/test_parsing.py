"""How many values a body holds, before any is built; how much of a text is looked at; halves of surrogate pairs."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.dialects import DIALECTS, parsing
from semmem.dialects.json_splice import decode_repaired
from semmem.dialects.parsing import TEXT_CHARS_MAX, ParseLimits, TooMany, holds_more_than, parse
from semmem.memory import Injection

CHAT = DIALECTS["/v1/chat/completions"]
TEXT = st.text(alphabet=st.sampled_from('a,[]{}"\\\n é'), max_size=30)
JSON = st.recursive(
    st.none() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=30,
)


def counted(value: Any) -> int:
    """Members and elements; an empty object or list counts as one more, for its bracket."""
    if isinstance(value, dict):
        return max(1, len(value)) + sum(map(counted, value.values()))
    return max(1, len(value)) + sum(map(counted, value)) if isinstance(value, list) else 0


@pytest.mark.parametrize("piece_bytes", [1, 2, 3, 7, 128 * 1024])
@given(JSON, st.booleans())
def test_values_are_counted_as_they_are_whatever_strings_hold(piece_bytes: int, value: Any, ascii_only: bool) -> None:
    body = json.dumps(value, ensure_ascii=ascii_only).encode()
    number = counted(value)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(parsing, "PIECE_BYTES", piece_bytes)
        assert not holds_more_than(number, body)
        assert number == 0 or holds_more_than(number - 1, body)


@given(st.binary(max_size=200), st.integers(0, 50))
def test_any_bytes_are_counted(body: bytes, limit: int) -> None:
    assert holds_more_than(limit, body) in (True, False)


def body_of(*messages: str, **members: Any) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": text} for text in messages], **members}).encode()


def test_a_request_of_too_many_messages_is_not_read() -> None:
    limits = ParseLimits(messages_max=3)
    assert parse(CHAT, body_of("a", "b", "c"), limits)
    with pytest.raises(TooMany, match="messages"):
        parse(CHAT, body_of("a", "b", "c", "d"), limits)


@pytest.mark.parametrize(
    "members",
    [
        {"metadata": {str(n): n for n in range(200)}},
        {"tools": [[] for _ in range(200)]},
        {str(n): 0 for n in range(200)},
    ],
    ids=["metadata", "tools", "top"],
)
def test_a_request_of_too_many_values_is_not_read_wherever_they_stand(members: dict[str, Any]) -> None:
    with pytest.raises(TooMany, match="values"):
        parse(CHAT, body_of("a", **members), ParseLimits(values_max=150))


def test_commas_and_brackets_in_a_text_are_no_values() -> None:
    assert parse(CHAT, body_of('for (i = 0, j = {}, k = [["\\"]]; i < n; i++) { "a, b", } ' * 1000), ParseLimits())


def test_of_a_long_text_both_ends_are_looked_at_and_the_body_keeps_every_byte() -> None:
    text = "begin " + "x" * TEXT_CHARS_MAX + " end"
    request = parse(CHAT, body_of(text), ParseLimits())
    seen = request.conversation.messages[0].text
    assert len(seen) <= TEXT_CHARS_MAX
    assert seen.startswith("begin ")
    assert seen.endswith(" end")
    rewritten = request.rewrite(Injection("known"))
    assert rewritten is not None
    assert json.loads(rewritten)["messages"][-1]["content"] == text
    assert not request.keeps(Injection("known"))


_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)
UNITS = st.sampled_from([r"\ud83d", r"\uDE00", r"\\", r"\"", r"\n", "ud83d", "a", r"é", r"\udBFF", r"\udfff"])


@given(st.lists(UNITS, max_size=12))
def test_halves_of_surrogate_pairs_are_replaced_and_nothing_else(units: list[str]) -> None:
    """Read escape by escape, as a JSON reader does."""
    text = f'"{"".join(units)}"'.encode()
    read_in_order = _ESCAPE.sub(lambda escape: b"\\ufffd" if escape[1] else escape[0], text)
    _, understood = decode_repaired(msgspec.json.Decoder(str), text)
    assert understood == read_in_order
