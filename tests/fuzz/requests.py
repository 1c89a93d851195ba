"""Request bodies: read or Malformed; memory goes in, semmem's members go out, and not a byte else changes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

from semmem.dialects import DIALECTS, Dialect, Malformed
from semmem.memory import Injection
from tests.fuzz.choices import Choices

ROLES = ("system", "developer", "user")
POSITIONS = ("first", "after_system", "before_last_user")
TEXT = 'Facts: "東京" </memory> \\ \n😀'
OWN = ("memory_config", "memory_context", "auto_store")

_SAYS = ("user", "assistant", "system", "developer", "tool", "function", "", "narrator")
_TYPES = (
    "text",
    "input_text",
    "output_text",
    "image_url",
    "tool_use",
    "tool_result",
    "web_search_tool_result",
    "message",
    "function_call",
    "function_call_output",
    "reasoning",
    "item_reference",
    "",
)
_VALUES = (
    b'"hello"',
    b"null",
    b"{}",
    b"[]",
    b'""',
    b"2.50",
    b"-0",
    b"1e400",
    b"123456789012345678901234567890",
    rb'"\ud83d"',
    rb'"\u0068i \" \\"',
    b"true",
    b'"c"',
    b"[[[null]]]",
    b'" \\t "',
    b'{"name":"f","type":"function","id":"c"}',
    '"東京 😀"'.encode(),
)
_GAPS = (b"", b" ", b"\n\t", b"\r")
_TOP = (
    b'"model"',
    b'"stream"',
    b'"memory_config"',
    b'"memory_context"',
    rb'"memory\u005fconfig"',
    b'"tool_choice"',
    b'"metadata"',
    b'"user"',
    b'"previous_response_id"',
    b'"conversation"',
    b'"x\\"y"',
)
WORDS = (*_VALUES, *_TOP, b'"messages":[', b'"input":', b'"instructions":', b'"role":"user"', b'"content":')


def request(data: bytes) -> None:
    """The target."""
    choices = Choices(data)
    dialect = choices.one_of(list(DIALECTS.values()))
    check(dialect, body_of(choices, dialect.name))


def body_of(choices: Choices, dialect: str) -> bytes:
    """A body as it stands in the data, or one that the data builds after the API's grammar."""
    return choices.rest() if choices.below(2) == 0 else _built(choices, dialect)


# --- the promises ----------------------------------------------------------------------------------------------------


def check(dialect: Dialect, body: bytes) -> None:
    """Raises when parsing this body, or any rewriting of it, is not what ParsedRequest promises."""
    try:
        parsed = dialect.parse(body)
    except Malformed:
        return
    stripped = parsed.rewrite()
    plain = body if stripped is None else stripped
    before, kept = json_value(body), json_value(plain)
    assert kept == {name: value for name, value in before.items() if name not in OWN}
    assert list(kept) == [name for name in before if name not in OWN]
    assert (stripped is None) == (before.keys() == kept.keys())
    for role, position in itertools.product(ROLES, POSITIONS):
        rewritten = parsed.rewrite(Injection(TEXT, role, position))
        assert rewritten is not None
        check_bytes(plain, rewritten)
        check_injected(kept, json_value(rewritten), role)
        assert any(TEXT in message.text for message in dialect.parse(rewritten).conversation.messages)


def json_value(text: bytes) -> Any:
    """What Python's own reader makes of it, numbers as they are spelt."""
    return json.loads(text, parse_int=str, parse_float=str)


def check_bytes(plain: bytes, rewritten: bytes) -> None:
    """Cutting one piece, or the two around one string, gives the plain body; a null may have been replaced."""
    start = _common(plain, rewritten)
    end = min(_common(plain[::-1], rewritten[::-1]), len(plain) - start)
    middle, grown = plain[start : len(plain) - end], rewritten[start : len(rewritten) - end]
    assert middle in (b"", b"null") or (middle.startswith(b'"') and grown.count(middle) >= 1), (middle, grown)


def _common(one: bytes, other: bytes) -> int:
    """How many bytes two texts have in common at their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


_ABSENT = object()


def check_injected(before: Any, after: Any, role: str) -> None:
    """There is one difference, and it is that the text was added."""
    differences = list(_differences(before, after))
    assert len(differences) == 1
    old, new = differences[0]
    if old is _ABSENT or old is None:
        assert new == TEXT
    elif isinstance(old, str) and isinstance(new, str):
        blank = not old.strip()
        assert new in (f"{TEXT}\n\n{old}", f"{old}\n\n{TEXT}") or (blank and new == TEXT + old)
    elif isinstance(old, str):
        [rest] = _without_text(new, role)
        assert rest in ({"type": "text", "text": old}, {"role": "user", "content": old})
    else:
        assert _without_text(new, role) == old


def _differences(before: Any, after: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(before, dict) and isinstance(after, dict):
        assert list(before) == list(after)[: len(before)], "members changed places"
        for name in after:
            yield from _differences(before.get(name, _ABSENT), after[name])
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for old, new in zip(before, after, strict=True):
            yield from _differences(old, new)
    elif before != after:
        yield before, after


def _without_text(elements: list[Any], role: str) -> list[Any]:
    added = ({"role": role, "content": TEXT}, {"type": "text", "text": TEXT})
    places = [index for index, element in enumerate(elements) if element in added]
    assert len(places) == 1
    return elements[: places[0]] + elements[places[0] + 1 :]


# --- bodies after the grammar ----------------------------------------------------------------------------------------


def _built(choices: Choices, dialect: str) -> bytes:
    conversation = {
        "chat": [(b'"messages"', _messages)],
        "messages": [(b'"system"', _content), (b'"messages"', _messages)],
        "responses": [(b'"instructions"', _value), (b'"input"', _messages)],
    }[dialect]
    members = [name + b":" + build(choices) for name, build in conversation if choices.below(8) != 7]
    for _ in range(choices.below(5)):
        place = choices.below(len(members) + 1)
        members.insert(place, choices.one_of(_TOP) + choices.one_of(_GAPS) + b":" + _value(choices))
    return _wrapped(choices, b"{", members, b"}") + choices.one_of(_GAPS)


def _messages(choices: Choices) -> bytes:
    if choices.below(16) == 15:
        return _value(choices)
    return _wrapped(choices, b"[", [_message(choices) for _ in range(choices.below(6))], b"]")


def _message(choices: Choices) -> bytes:
    if choices.below(16) == 15:
        return _value(choices)
    members = [b'"role":' + _quoted(choices, _SAYS)] if choices.below(4) else []
    if choices.below(4) == 3:
        members += [b'"type":' + _quoted(choices, _TYPES), b'"call_id":"c"']
    if choices.below(8) != 7:
        members.append(b'"content":' + _content(choices))
    if choices.below(8) == 7:
        members.append(choices.one_of((b'"content":', b'"role":', b'"output":')) + _value(choices))
    return _wrapped(choices, b"{", members, b"}")


def _content(choices: Choices) -> bytes:
    if choices.below(2) == 0:
        return _value(choices)
    return _wrapped(choices, b"[", [_part(choices) for _ in range(choices.below(4))], b"]")


def _part(choices: Choices) -> bytes:
    if choices.below(8) == 7:
        return _value(choices)
    members = [b'"type":' + _quoted(choices, _TYPES), b'"text":' + _value(choices)]
    if choices.below(8) == 7:
        members.append(b'"content":' + _content(choices))
    return _wrapped(choices, b"{", members, b"}")


def _value(choices: Choices) -> bytes:
    if choices.below(4) == 3:
        return json.dumps(choices.text()).encode()
    return choices.one_of(_VALUES)


def _quoted(choices: Choices, names: tuple[str, ...]) -> bytes:
    return f'"{choices.one_of(names)}"'.encode()


def _wrapped(choices: Choices, opening: bytes, items: list[bytes], closing: bytes) -> bytes:
    gap = choices.one_of(_GAPS)
    return gap + opening + gap + (gap + b"," + gap).join(items) + gap + closing
