"""Reading and rewriting a request of the Anthropic Messages API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.dialects import Malformed
from semmem.dialects import messages as messages_api
from semmem.dialects.messages import MessagesRequest
from semmem.memory import Controls, Injection, Message, Role

GOLDEN = Path(__file__).parent / "golden" / "messages"
OWN = ("memory_config", "memory_context")
HELLO = {"role": "user", "content": "Hello"}
CALL = {"type": "tool_use", "id": "t1", "name": "weather", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "rain"}
IMAGE = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
FACTS = 'Facts: "東京" \\ \n'


def text(words: str, **members: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **members}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def parse(**members: Any) -> MessagesRequest:
    body = {"model": "m", "messages": [HELLO], **members}
    return messages_api.parse(json.dumps(body).encode())


def said(*messages: Any, **members: Any) -> list[tuple[str, str]]:
    conversation = parse(messages=list(messages), **members).conversation
    return [(message.role.value, message.text) for message in conversation.messages]


def rewritten(role: str, position: str, **members: Any) -> dict[str, Any]:
    body = parse(**members).rewrite(Injection(FACTS, role, position))
    found: dict[str, Any] = json.loads(body or b"")
    return found


# --- golden bodies


@pytest.mark.parametrize(
    ("name", "injection"),
    [
        ("minimal", Injection('Facts:\n- "Ada" <b>')),
        ("full", Injection("Facts: 東京 \x07", role="developer", position="after_system")),
        ("tools", Injection("Facts")),
        ("images", Injection("Facts", role="user")),
        ("long", Injection("Facts", position="before_last_user")),
    ],
)
def test_a_whole_body_reads_and_rewrites_as_written_down(name: str, injection: Injection) -> None:
    request = messages_api.parse((GOLDEN / f"{name}.json").read_bytes())
    conversation = msgspec.to_builtins(request.conversation)
    conversation["messages"] = [[message.role.value, message.text] for message in request.conversation.messages]
    expected = json.loads((GOLDEN / f"{name}.conversation.json").read_text("utf-8"))
    assert json.loads(json.dumps(conversation)) == expected
    assert request.rewrite(injection) == (GOLDEN / f"{name}.rewritten.json").read_bytes()


# --- who says what


@pytest.mark.parametrize(
    ("system", "words"),
    [
        ("Be brief.", ["Be brief."]),
        ([text("Be brief."), text("Be kind.", cache_control={"type": "ephemeral"})], ["Be brief.\nBe kind."]),
        (["Be brief."], ["Be brief."]),
        ([], [""]),
        ("", [""]),
        (None, []),
    ],
)
def test_the_system_prompt_comes_first_and_is_one_message(system: Any, words: list[str]) -> None:
    assert said(HELLO, system=system) == [*(("system", word) for word in words), ("user", "Hello")]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("plain", "plain"),
        (None, ""),
        ([], ""),
        ([text("a"), text("b")], "a\nb"),
        ([IMAGE, text("a"), {"type": "document", "source": {"type": "text", "data": "d"}, "context": "c"}], "a"),
        ([{"type": "search_result", "content": [text("found")]}, "b"], "b"),
        ([{"type": "table", "text": {"rows": [1]}}, {"type": "text", "text": 7}, {"type": "text"}, {}], ""),
        ([{"type": "thinking", "thinking": "hm", "text": "hm"}], ""),
    ],
)
def test_the_text_of_a_user_is_his_text_blocks(content: Any, words: str) -> None:
    assert said({"role": "user", "content": content}) == [("user", words)]


def test_a_message_may_have_no_content() -> None:
    assert said({"role": "user"}, {"role": "assistant"}) == [("user", ""), ("assistant", "")]


@pytest.mark.parametrize(
    ("blocks", "messages"),
    [
        ([RESULT], [("tool", "rain")]),
        ([RESULT, RESULT], [("tool", "rain"), ("tool", "rain")]),
        ([RESULT, text("And tomorrow?")], [("tool", "rain"), ("user", "And tomorrow?")]),
        ([text("Look:"), RESULT, text("So?")], [("tool", "rain"), ("user", "Look:\nSo?")]),
        ([RESULT, text(" \n"), IMAGE], [("tool", "rain")]),
        ([RESULT | {"content": [text("a"), IMAGE, text("b")]}], [("tool", "a\nb")]),
        ([{"type": "tool_result", "tool_use_id": "t1"}], [("tool", "")]),
        ([RESULT | {"content": {"error": "I live in Rome"}}], [("tool", "")]),
        ([RESULT | {"content": 7}, text("Hm")], [("tool", ""), ("user", "Hm")]),
        ([{"type": "mcp_tool_result", "content": "I live in Rome"}], [("tool", "I live in Rome")]),
    ],
)
def test_what_tools_say_in_a_user_message_is_not_the_users(blocks: list[Any], messages: list[tuple[str, str]]) -> None:
    assert said(user(*blocks)) == messages


def test_an_assistants_thinking_and_calls_are_not_text_and_end_a_line() -> None:
    cited = [text("It rains"), text(" in Ghent", citations=[]), text(".")]
    blocks = [{"type": "thinking", "thinking": "hm", "signature": "s"}, *cited, CALL, text("Take a coat."), "Or two."]
    assert said(assistant(*blocks)) == [("assistant", "It rains in Ghent.\nTake a coat.Or two.")]


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("system", Role.SYSTEM),
        ("developer", Role.SYSTEM),
        ("user", Role.USER),
        ("assistant", Role.ASSISTANT),
        ("tool", Role.TOOL),
        ("moderator", Role.TOOL),
        ("User", Role.TOOL),
        ("", Role.TOOL),
    ],
)
def test_only_a_user_is_a_user(role: str, expected: Role) -> None:
    assert parse(messages=[{"role": role, "content": "a"}]).conversation.messages == (Message(expected, "a"),)


@pytest.mark.parametrize(
    ("members", "place"),
    [
        ({"messages": None}, "messages: "),
        ({"messages": {}}, "messages: "),
        ({"messages": "secret"}, "messages: "),
        ({"messages": []}, "messages: empty"),
        ({"messages": ["secret"]}, "messages[0]: "),
        ({"messages": [HELLO, None]}, "messages[1]: "),
        ({"messages": [HELLO, {"role": 7}]}, "messages[1].role: "),
        ({"messages": [HELLO, {"role": "user", "content": 1}]}, "messages[1].content: "),
        ({"messages": [{"role": "user", "content": {"secret": "secret"}}]}, "messages[0].content: "),
        ({"messages": [user(text("secret"), 5)]}, "messages[0].content[1]: "),
        ({"messages": [user({"type": ["secret"]})]}, "messages[0].content[0].type: "),
        ({"system": {"secret": "secret"}}, "system: "),
        ({"system": 7}, "system: "),
        ({"system": [text("secret"), ["secret"]]}, "system[1]: "),
    ],
)
def test_a_body_of_another_shape_is_malformed_at_a_place(members: dict[str, Any], place: str) -> None:
    with pytest.raises(Malformed) as refused:
        parse(**members)
    assert str(refused.value).startswith(place)
    assert "secret" not in str(refused.value)


def test_a_body_without_messages_is_malformed() -> None:
    with pytest.raises(Malformed, match=r"^messages: missing$"):
        messages_api.parse(b'{"system":"Be brief."}')


SCALARS = st.none() | st.booleans() | st.integers() | st.just("s3cret")
KEYS = st.sampled_from(["role", "content", "type", "text", "s3cret"])
SHAPES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=12)


@given(SHAPES, SHAPES)
def test_malformed_never_repeats_what_was_said(messages: Any, system: Any) -> None:
    try:
        parse(messages=messages, system=system)
    except Malformed as error:
        assert "s3cret" not in str(error)  # noqa: PT017  (whether it is raised depends on the example)


def test_a_string_cut_inside_an_emoji_is_read_and_kept() -> None:
    body = rb'{"system":"a \ud83d","messages":[{"role":"user","content":"hi \ud83d"}]}'
    request = messages_api.parse(body)
    assert [message.text for message in request.conversation.messages] == ["a \ufffd", "hi \ufffd"]
    for position, token in (("first", rb'"a \ud83d"'), ("before_last_user", rb'"hi \ud83d"')):
        out = request.rewrite(Injection("facts", position=position)) or b""
        block = rb'[{"type":"text","text":"facts"},{"type":"text","text":%s}]' % token
        assert out == body.replace(token, block)


# --- the rest of a request


@pytest.mark.parametrize(
    ("members", "model", "stream"),
    [
        ({}, "m", False),
        ({"stream": True}, "m", True),
        ({"stream": "true", "model": 7}, "", False),
        ({"stream": 1, "model": None}, "", False),
    ],
)
def test_model_and_stream_count_only_as_what_they_are(members: dict[str, Any], model: str, stream: bool) -> None:
    conversation = parse(**members).conversation
    assert (conversation.model, conversation.stream) == (model, stream)


@pytest.mark.parametrize(
    ("messages", "is_tool_turn"),
    [
        ([HELLO], False),
        ([HELLO, assistant(CALL), user(RESULT)], True),
        ([HELLO, assistant(CALL), user(RESULT, RESULT)], True),
        ([HELLO, assistant(CALL), user(RESULT, IMAGE, text(" "))], True),
        ([HELLO, assistant(CALL), user(RESULT, text("And tomorrow?"))], False),
        ([HELLO, assistant(CALL), user(RESULT), HELLO], False),
        ([HELLO, assistant(CALL), user(RESULT), assistant(text("It"))], True),
        ([HELLO, assistant(CALL), user(RESULT), {"role": "system", "content": "Be brief."}], True),
        ([HELLO, assistant(CALL)], False),
        ([user(IMAGE)], False),
        ([assistant(text("a"))], False),
    ],
)
def test_a_tool_turn_goes_on_from_a_tools_result(messages: list[Any], is_tool_turn: bool) -> None:
    assert parse(messages=messages).conversation.tool_turn is is_tool_turn


@pytest.mark.parametrize(
    ("members", "is_tool_turn"),
    [
        ({"tool_choice": {"type": "tool", "name": "weather"}}, True),
        ({"tool_choice": {"type": "tool", "name": "weather", "disable_parallel_tool_use": True}}, True),
        ({"tool_choice": {"type": "auto"}, "tools": [{"name": "weather", "input_schema": {}}]}, False),
        ({"tool_choice": {"type": "any"}}, False),
        ({"tool_choice": {"type": "none"}}, False),
        ({"tool_choice": {"type": "tool", "name": 7}}, False),
        ({"tool_choice": {"type": "tool"}}, False),
        ({"tool_choice": "tool"}, False),
        ({"tool_choice": None}, False),
    ],
)
def test_naming_a_tool_is_a_tool_turn_and_offering_tools_is_not(members: dict[str, Any], is_tool_turn: bool) -> None:
    assert parse(**members).conversation.tool_turn is is_tool_turn


@pytest.mark.parametrize(
    ("members", "controls"),
    [
        ({}, Controls()),
        ({"memory_config": {"enabled": False, "auto_store": False}}, Controls(enabled=False, auto_store=False)),
        ({"memory_context": {"user_id": "a", "project_id": "p"}, "metadata": {"user_id": "b"}},
         Controls(claimed_user="a", project="p")),
        ({"metadata": {"user_id": "b"}}, Controls(claimed_user="b")),
        ({"memory_config": "off", "metadata": 7}, Controls()),
    ],
)  # fmt: skip
def test_controls_are_read_and_semmems_members_stripped(members: dict[str, Any], controls: Controls) -> None:
    request = parse(**members)
    kept = {name: value for name, value in members.items() if name not in OWN}
    assert request.conversation.controls == controls
    stripped = json.dumps({"model": "m", "messages": [HELLO], **kept}).encode()
    assert request.rewrite() == (None if kept == members else stripped)


# --- where an injection stands


@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.parametrize(
    ("system", "first", "after_system"),
    [
        ("Be brief.", [text(FACTS), text("Be brief.")], [text("Be brief."), text(FACTS)]),
        ([text("a"), text("b")], [text(FACTS), text("a"), text("b")], [text("a"), text("b"), text(FACTS)]),
        (["a"], [text(FACTS), "a"], ["a", text(FACTS)]),
        ([], [text(FACTS)], [text(FACTS)]),
        ("", FACTS, FACTS),
        (" \n", FACTS + " \n", FACTS + " \n"),
        (None, FACTS, FACTS),
    ],
)
def test_as_system_it_stands_in_front_of_the_system_prompt_or_behind_it(
    role: str, system: Any, first: Any, after_system: Any
) -> None:
    assert rewritten(role, "first", system=system) == {"model": "m", "messages": [HELLO], "system": first}
    assert rewritten(role, "after_system", system=system) == {"model": "m", "messages": [HELLO], "system": after_system}


@pytest.mark.parametrize("position", ["first", "after_system"])
def test_without_a_system_prompt_it_becomes_one(position: str) -> None:
    assert rewritten("system", position) == {"model": "m", "messages": [HELLO], "system": FACTS}


def test_what_the_client_marked_for_caching_stays_marked_and_before_the_injection() -> None:
    marked = [text("a", cache_control={"type": "ephemeral"}), text("b", cache_control={"type": "ephemeral"})]
    assert rewritten("system", "after_system", system=marked)["system"] == [*marked, text(FACTS)]
    assert rewritten("system", "first", system=marked)["system"] == [text(FACTS), *marked]


@pytest.mark.parametrize(
    ("role", "position"),
    [("system", "before_last_user"), ("developer", "before_last_user"), ("user", "before_last_user"),
     ("user", "first"), ("user", "after_system")],
)  # fmt: skip
@pytest.mark.parametrize(
    ("messages", "at", "content"),
    [
        ([HELLO], 0, [text(FACTS), text("Hello")]),
        ([user(text("a", cache_control={})), assistant(), user(IMAGE, text("b"))], 2, [text(FACTS), IMAGE, text("b")]),
        ([user(IMAGE)], 0, [text(FACTS), IMAGE]),
        ([user()], 0, [text(FACTS)]),
        ([{"role": "user", "content": ""}], 0, FACTS),
        ([HELLO, assistant(CALL), user(RESULT)], 0, [text(FACTS), text("Hello")]),
        ([HELLO, assistant(CALL), user(RESULT), assistant(CALL), user(RESULT)], 0, [text(FACTS), text("Hello")]),
        ([HELLO, assistant(CALL), user(RESULT, RESULT, text("So?"))], 2, [RESULT, RESULT, text(FACTS), text("So?")]),
        ([HELLO, assistant(CALL), user(text("So"), RESULT)], 2, [text("So"), RESULT, text(FACTS)]),
        ([HELLO, assistant(text("Hi"))], 0, [text(FACTS), text("Hello")]),
        ([HELLO, {"role": "user", "content": None}], 0, [text(FACTS), text("Hello")]),
        ([HELLO, {"role": "moderator", "content": "b"}], 0, [text(FACTS), text("Hello")]),
    ],
)
def test_beside_the_user_it_stands_in_front_of_his_last_own_words(
    role: str, position: str, messages: list[Any], at: int, content: Any
) -> None:
    expected = [*messages[:at], {**messages[at], "content": content}, *messages[at + 1 :]]
    body = rewritten(role, position, messages=messages, system="Be brief.")
    assert body == {"model": "m", "messages": expected, "system": "Be brief."}


@pytest.mark.parametrize(
    ("role", "position", "system"),
    [
        ("system", "before_last_user", [text("Be brief."), text(FACTS)]),
        ("user", "before_last_user", [text("Be brief."), text(FACTS)]),
        ("user", "after_system", [text("Be brief."), text(FACTS)]),
        ("user", "first", [text(FACTS), text("Be brief.")]),
    ],
)
def test_where_no_user_speaks_it_stands_beside_the_system_prompt(role: str, position: str, system: Any) -> None:
    messages = [assistant(CALL), user(RESULT), {"role": "user"}]
    body = rewritten(role, position, messages=messages, system="Be brief.")
    assert body == {"model": "m", "messages": messages, "system": system}


def test_a_message_that_names_its_content_twice_is_left_alone() -> None:
    body = b'{"messages":[{"role":"user","content":"a","content":"b"}]}'
    injected = messages_api.parse(body).rewrite(Injection("facts", position="before_last_user"))
    assert injected == body[:-1] + b',"system":"facts"}'


BLOCKS = st.sampled_from([RESULT, text("a"), text(" "), IMAGE, text("b", cache_control={"type": "ephemeral"})])
TALKS = st.lists(
    st.lists(BLOCKS, max_size=4).map(lambda blocks: user(*sorted(blocks, key=lambda block: block is not RESULT)))
    | st.sampled_from([HELLO, assistant(CALL), assistant(text("a"), CALL), assistant(text("a"))]),
    min_size=1,
    max_size=6,
)


@given(TALKS, st.sampled_from(["system", "user"]), st.sampled_from(["first", "after_system", "before_last_user"]))
def test_no_message_is_added_and_results_stay_first_in_theirs(talk: list[Any], role: str, position: str) -> None:
    after = rewritten(role, position, messages=talk)["messages"]
    assert [message["role"] for message in after] == [message["role"] for message in talk]
    for message in after:
        results = [b["type"] == "tool_result" for b in message["content"] if isinstance(b, dict)]
        assert results == sorted(results, reverse=True)


def test_a_position_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ValueError, match="nowhere"):
        parse().rewrite(Injection("facts", position="nowhere"))


@given(st.text(), st.sampled_from(["first", "before_last_user"]))
def test_any_text_arrives_as_it_is(words: str, position: str) -> None:
    body = json.loads(parse(system="s").rewrite(Injection(words, position=position)) or b"")
    blocks = body["system"] if position == "first" else body["messages"][0]["content"]
    assert blocks[0] == text(words)


def test_half_of_a_surrogate_pair_does_not_cost_the_injection() -> None:
    assert json.loads((parse().rewrite(Injection("a\ud83d")) or b"").decode())["system"] == "a?"


# --- any body: what is not ours stays as it is spelled

JSON_SPELLINGS = st.sampled_from(
    ["2.50", "-0.0", "1E+2", "123456789012345678901234567890", "true", "null", r'"\u00e9\ud83c\udfe8"', '"é东"',
     '{ "messages" : [ ] }', '{"memory_config":{"a":1}}', '"memory_config"', r'"},{\"system\":["', "{}"]
)  # fmt: skip
OTHER_NAMES = ["model", "temperature", "x-unknown", "", "System", "memory", r"tool\u0073", "metadata", "thinking"]
SPACE = st.text(alphabet=" \t\n\r", max_size=2)
TEXTS = st.sampled_from(
    ['"a"', '"\\u00e9 \\ud83c\\udfe8"', '"]}"', '""', '" "', "[]", "[ ]",
     '[ {"type":"text","text":"b", "cache_control" : {"type":"ephemeral"}} , {"type":"x"}]']
)  # fmt: skip
RESULTS = st.sampled_from(
    ['[{"type":"tool_result","content":[ {"type":"text","text":"}]"}],"n":2.50} ,{"type":"text","text":"c"}]',
     '[{"type":"tool_result"}]', "null"]
)  # fmt: skip
MESSAGES = st.builds(
    lambda role, content, extra: f'{{"role":"{role}",{extra} "c\\u006fntent": {content}}}',
    st.sampled_from(["user", "user", "assistant", "system", "tool"]),
    TEXTS | RESULTS,
    st.sampled_from(["", '"n": 2.50 ,', '"messages":[{}],']),
)
INJECTIONS = st.builds(
    Injection,
    st.text(max_size=20),
    st.sampled_from(["system", "developer", "user"]),
    st.sampled_from(["first", "after_system", "before_last_user"]),
)


@st.composite
def bodies(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A body, and the same without semmem's members."""
    gaps = st.builds(lambda before, after: f"{before},{after}", SPACE, SPACE)
    messages = _joined(draw, draw(st.lists(MESSAGES, min_size=1, max_size=5)), gaps)
    names = draw(st.lists(st.sampled_from(OTHER_NAMES), max_size=4, unique=True))
    members = [f'"{name}"{draw(SPACE)}:{draw(SPACE)}{draw(JSON_SPELLINGS)}' for name in names]
    members.append(f'"messages" :{draw(SPACE)}[{draw(SPACE)}{messages}{draw(SPACE)}]')
    members += [f'"system"{draw(SPACE)}: {system}' for system in draw(st.lists(TEXTS, max_size=1))]
    own = [f'"{name}":{draw(JSON_SPELLINGS)}' for name in draw(st.sets(st.sampled_from(OWN)))]
    order = draw(st.permutations(members + own))
    lead, trail, gap = "{" + draw(SPACE), draw(SPACE) + "}" + draw(SPACE), draw(gaps)
    whole = lead + gap.join(order) + trail
    return whole.encode(), (lead + gap.join(member for member in order if member not in own) + trail).encode()


def _joined(draw: st.DrawFn, items: list[str], gaps: st.SearchStrategy[str]) -> str:
    return "".join(part for index, item in enumerate(items) for part in ([draw(gaps)] if index else []) + [item])


def added_pieces(injection: Injection) -> list[tuple[bytes, ...]]:
    """What an injection may put into a body: one piece, or two around a string that becomes a block."""
    block = msgspec.json.encode(text(injection.text))
    token = msgspec.json.encode(injection.text)
    opening = b'{"type":"text","text":'
    return [
        (b"," + block,),
        (block + b",",),
        (block,),
        (token[1:-1],),
        (b',"system":' + token,),
        (b"[" + block + b"," + opening, b"}]"),
        (b"[" + opening, b"}," + block + b"]"),
    ]


def without(body: bytes, pieces: tuple[bytes, ...]) -> set[bytes]:
    """The bodies that remain when the pieces are taken out, in their order, wherever they stand."""
    if not pieces:
        return {body}
    places = [at for at in range(len(body)) if body.startswith(pieces[0], at)]
    return {body[:at] + rest for at in places for rest in without(body[at + len(pieces[0]) :], pieces[1:])}


@given(bodies())
def test_stripping_takes_semmems_members_and_nothing_else(drawn: tuple[bytes, bytes]) -> None:
    body, bare = drawn
    assert messages_api.parse(body).rewrite() == (bare if bare != body else None)


@given(bodies(), INJECTIONS)
def test_taking_the_injected_pieces_out_gives_the_body_back(drawn: tuple[bytes, bytes], injection: Injection) -> None:
    body, bare = drawn
    injected = messages_api.parse(body).rewrite(injection)
    assert injected is not None
    sized = [p for p in added_pieces(injection) if sum(map(len, p)) == len(injected) - len(bare)]
    assert any(bare in without(injected, pieces) for pieces in sized)


@given(bodies(), INJECTIONS)
def test_members_keep_their_order_and_others_their_meaning(drawn: tuple[bytes, bytes], injection: Injection) -> None:
    before = json.loads(drawn[1], parse_float=str, parse_int=str)
    after = json.loads(messages_api.parse(drawn[0]).rewrite(injection) or b"", parse_float=str, parse_int=str)
    assert list(after) == [*before, *(["system"] if "system" in after and "system" not in before else [])]
    assert [name for name in before if before[name] != after[name]] in ([], ["messages"], ["system"])


@given(bodies(), INJECTIONS)
def test_rewriting_again_gives_the_same_and_leaves_nothing_to_strip(
    drawn: tuple[bytes, bytes], injection: Injection
) -> None:
    request = messages_api.parse(drawn[0])
    injected = request.rewrite(injection)
    assert injected == request.rewrite(injection)
    assert messages_api.parse(injected or b"").rewrite() is None


@given(st.binary(max_size=80) | bodies().map(lambda drawn: drawn[0]), st.integers(0, 200), st.binary(max_size=3))
def test_any_bytes_are_a_request_or_malformed(body: bytes, at: int, replaced: bytes) -> None:
    body = body[:at] + replaced + body[at + len(replaced) :]
    try:
        request = messages_api.parse(body)
    except Malformed:
        return
    for position in ("first", "after_system", "before_last_user"):
        json.loads(request.rewrite(Injection("facts", position=position)) or b"")
    assert json.loads(body)["messages"]
