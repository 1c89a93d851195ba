"""Reading and rewriting a chat-completions request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.dialects import Malformed
from semmem.dialects import chat as chat_api
from semmem.dialects.chat import ChatRequest
from semmem.dialects.request import LIMIT_MAX
from semmem.memory import Controls, Injection, MemoryType, Message, Role

GOLDEN = Path(__file__).parent / "golden" / "chat"
OWN = ("memory_config", "memory_context", "auto_store")
HELLO = {"role": "user", "content": "Hello"}


def parse(**members: Any) -> ChatRequest:
    return chat_api.parse(json.dumps({"model": "m", "messages": [HELLO], **members}).encode())


def written(roles: str) -> list[dict[str, Any]]:
    """Messages from one letter each: s(ystem), d(eveloper), u(ser), a(ssistant), c(all), t(ool), f(unction), x."""
    names = {"s": "system", "d": "developer", "u": "user", "a": "assistant", "c": "assistant", "t": "tool"}
    names |= {"f": "function", "x": "moderator"}
    return [
        {"role": names[letter], "content": str(index)} | ({"tool_calls": [{"id": "1"}]} if letter == "c" else {})
        for index, letter in enumerate(roles)
    ]


# --- golden bodies


@pytest.mark.parametrize(
    ("name", "injection"),
    [
        ("minimal", Injection('Facts:\n- "Ada" <b>')),
        ("full", Injection("Facts: 東京 \x07", role="developer", position="after_system")),
        ("tools", None),
        ("images", Injection("Facts", role="user", position="before_last_user")),
    ],
)
def test_a_whole_body_reads_and_rewrites_as_written_down(name: str, injection: Injection | None) -> None:
    request = chat_api.parse((GOLDEN / f"{name}.json").read_bytes())
    said = {name: value for name, value in msgspec.to_builtins(request.conversation).items() if value is not None}
    said["messages"] = [[message.role.value, message.text] for message in request.conversation.messages]
    assert json.loads(json.dumps(said)) == json.loads((GOLDEN / f"{name}.conversation.json").read_text("utf-8"))
    assert request.rewrite(*filter(None, [injection])) == (GOLDEN / f"{name}.rewritten.json").read_bytes()


# --- messages


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        ([], ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ([{"type": "image_url", "image_url": {"url": "u"}}, {"type": "text", "text": "a"}], "a"),
        ([{"type": "input_text", "text": "a"}, "b"], "a\nb"),
        ([{"type": "table", "text": {"rows": [1]}}, {"type": "text", "text": 7}, {}], ""),
        ([{"type": "thinking", "text": "hm"}], ""),
    ],
)
def test_the_text_of_a_message_is_its_text_parts(content: Any, text: str) -> None:
    assert parse(messages=[{"role": "user", "content": content}]).conversation.messages == (Message(Role.USER, text),)


def test_a_message_may_have_no_content() -> None:
    assert parse(messages=[{"role": "assistant", "tool_calls": []}]).conversation.messages == (
        Message(Role.ASSISTANT, ""),
    )


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("system", Role.SYSTEM),
        ("developer", Role.SYSTEM),
        ("user", Role.USER),
        ("assistant", Role.ASSISTANT),
        ("tool", Role.TOOL),
        ("function", Role.TOOL),
        ("moderator", Role.TOOL),
        ("User", Role.TOOL),
        ("", Role.TOOL),
    ],
)
def test_only_a_user_is_a_user(role: str, expected: Role) -> None:
    assert parse(messages=[{"role": role, "content": ""}]).conversation.messages[0].role is expected


def test_user_messages_in_a_row_stay_apart() -> None:
    messages = parse(messages=written("suu")).conversation.messages
    assert messages == (Message(Role.SYSTEM, "0"), Message(Role.USER, "1"), Message(Role.USER, "2"))


@pytest.mark.parametrize(
    ("messages", "place"),
    [
        (None, "messages: "),
        ({}, "messages: "),
        ("secret", "messages: "),
        ([], "messages: empty"),
        (["secret"], "messages[0]: "),
        ([HELLO, None], "messages[1]: "),
        ([HELLO, {"role": 7}], "messages[1].role: "),
        ([HELLO, HELLO, HELLO, {"role": "user", "content": 1}], "messages[3].content: "),
        ([{"role": "user", "content": {"secret": "secret"}}], "messages[0].content: "),
        ([{"role": "user", "content": [{"type": "text", "text": "secret"}, 5]}], "messages[0].content[1]: "),
        ([{"role": "user", "content": [{"type": ["secret"]}]}], "messages[0].content[0].type: "),
    ],
)
def test_messages_of_another_shape_are_malformed_at_a_place(messages: Any, place: str) -> None:
    with pytest.raises(Malformed) as refused:
        parse(messages=messages)
    assert str(refused.value).startswith(place)
    assert "secret" not in str(refused.value)


def test_a_body_without_messages_is_malformed() -> None:
    with pytest.raises(Malformed, match=r"^messages: missing$"):
        chat_api.parse(b'{"model":"m"}')


SCALARS = st.none() | st.booleans() | st.integers() | st.just("s3cret")
KEYS = st.sampled_from(["role", "content", "type", "text", "s3cret"])


@given(st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=12))
def test_malformed_never_repeats_what_was_said(messages: Any) -> None:
    try:
        parse(messages=messages)
    except Malformed as error:
        assert "s3cret" not in str(error)  # noqa: PT017  (whether it is raised depends on the example)


def test_a_string_cut_inside_an_emoji_is_read_and_kept() -> None:
    body = rb'{"messages":[{"role":"user","content":"hi \ud83d"}],"memory_config":{}}'
    request = chat_api.parse(body)
    assert request.conversation.messages[0].text == "hi \ufffd"
    assert request.rewrite() == rb'{"messages":[{"role":"user","content":"hi \ud83d"}]}'


# --- the rest of a request


@pytest.mark.parametrize(
    ("members", "model", "stream"),
    [
        ({}, "m", False),
        ({"stream": True}, "m", True),
        ({"stream": False}, "m", False),
        ({"stream": "true", "model": 7}, "", False),
        ({"stream": 1, "model": None}, "", False),
    ],
)
def test_model_and_stream_count_only_as_what_they_are(members: dict[str, Any], model: str, stream: bool) -> None:
    conversation = parse(**members).conversation
    assert (conversation.model, conversation.stream) == (model, stream)


@pytest.mark.parametrize(
    ("roles", "is_tool_turn"),
    [
        ("u", False),
        ("uct", True),
        ("uctt", True),
        ("ucf", True),
        ("uctu", False),
        ("uctau", False),
        ("ucts", True),
        ("ucta", True),
        ("ua", False),
        ("t", True),
        ("s", False),
        ("ux", False),
    ],
)
def test_a_tool_turn_goes_on_from_a_tools_result(roles: str, is_tool_turn: bool) -> None:
    assert parse(messages=written(roles)).conversation.tool_turn is is_tool_turn


@pytest.mark.parametrize(
    ("members", "is_tool_turn"),
    [
        ({"tool_choice": {"type": "function", "function": {"name": "weather"}}}, True),
        ({"tool_choice": {"type": "custom", "custom": {"name": "weather"}}}, True),
        ({"tool_choice": {"type": "function", "name": "weather"}}, True),
        ({"function_call": {"name": "weather"}}, True),
        ({"tool_choice": "auto", "tools": [{"type": "function", "function": {"name": "weather"}}]}, False),
        ({"tool_choice": "none"}, False),
        ({"tool_choice": "required"}, False),
        ({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}}, False),
        ({"tool_choice": {"type": "function", "function": {"name": 7}}}, False),
        ({"tool_choice": {"type": "function", "function": "weather"}}, False),
        ({"tool_choice": None, "function_call": "auto"}, False),
        ({"function_call": [1]}, False),
    ],
)
def test_naming_a_tool_is_a_tool_turn_and_offering_tools_is_not(members: dict[str, Any], is_tool_turn: bool) -> None:
    assert parse(**members).conversation.tool_turn is is_tool_turn


# --- controls


def test_a_request_that_says_nothing_of_memory_has_no_controls() -> None:
    assert parse().conversation.controls == Controls()


@pytest.mark.parametrize(
    ("config", "controls"),
    [
        ({"enabled": True, "auto_store": False}, Controls(enabled=True, auto_store=False)),
        ({"enabled": "false", "auto_store": 1}, Controls()),
        ({"enabled": None, "auto_store": []}, Controls()),
        ({"enabled": False, "retrieval_limit": [], "memory_types": "semantic"}, Controls(enabled=False)),
        ({"retrieval_limit": 7}, Controls(limit=7)),
        ({"retrieval_limit": 0}, Controls(limit=0)),
        ({"retrieval_limit": -3}, Controls(limit=0)),
        ({"retrieval_limit": 51}, Controls(limit=LIMIT_MAX)),
        ({"retrieval_limit": 10**30}, Controls(limit=LIMIT_MAX)),
        ({"retrieval_limit": True}, Controls()),
        ({"retrieval_limit": "5"}, Controls()),
        ({"retrieval_limit": 2.5}, Controls()),
        ({"similarity_threshold": 0.4}, Controls(threshold=0.4)),
        ({"similarity_threshold": 1}, Controls(threshold=1.0)),
        ({"similarity_threshold": -0.1}, Controls(threshold=0.0)),
        ({"similarity_threshold": 60}, Controls(threshold=1.0)),
        ({"similarity_threshold": "0.4"}, Controls()),
        ({"similarity_threshold": False}, Controls()),
        ({"memory_types": ["episodic", "semantic", "episodic"]},
         Controls(types=(MemoryType.EPISODIC, MemoryType.SEMANTIC))),
        ({"memory_types": ["procedural", "telepathic", 7, None, ["semantic"]]},
         Controls(types=(MemoryType.PROCEDURAL,))),
        ({"memory_types": ["telepathic"]}, Controls(types=())),
        ({"memory_types": []}, Controls(types=())),
        ({"memory_types": {"semantic": True}}, Controls()),
        ({"unknown": 1}, Controls()),
        ("off", Controls()),
        ([False], Controls()),
        (None, Controls()),
    ],
)  # fmt: skip
def test_each_control_counts_when_it_is_well_formed_and_is_stripped_in_any_case(
    config: Any, controls: Controls
) -> None:
    request = parse(memory_config=config)
    assert request.conversation.controls == controls
    assert request.rewrite() == json.dumps({"model": "m", "messages": [HELLO]}).encode()


@pytest.mark.parametrize(
    ("members", "stored"),
    [
        ({"auto_store": False}, False),
        ({"auto_store": True}, True),
        ({"auto_store": "no"}, None),
        ({"auto_store": True, "memory_config": {"auto_store": False}}, False),
        ({"auto_store": False, "memory_config": {"auto_store": True}}, False),
    ],
)
def test_storing_may_be_spoken_of_outside_of_the_configuration_and_a_no_is_a_no(
    members: dict[str, Any], stored: bool | None
) -> None:
    request = parse(**members)
    assert request.conversation.controls.auto_store is stored
    assert request.rewrite() == json.dumps({"model": "m", "messages": [HELLO]}).encode()


def test_a_number_beyond_all_bounds_says_nothing_and_harms_no_other_control() -> None:
    config = b'{"enabled":false,"similarity_threshold":1e999,"retrieval_limit":' + b"9" * 5_000 + b"}"
    body = b'{"memory_config":%s,"messages":[{"role":"user"}]}' % config
    request = chat_api.parse(body)
    assert request.conversation.controls == Controls(enabled=False)
    assert request.rewrite() == b'{"messages":[{"role":"user"}]}'


@pytest.mark.parametrize(
    ("members", "claimed"),
    [
        ({"memory_context": {"user_id": "a"}, "metadata": {"user_id": "b"}, "user": "c"}, "a"),
        ({"memory_context": {"user_id": ""}, "metadata": {"user_id": "b"}, "user": "c"}, "b"),
        ({"memory_context": {"user_id": 7}, "metadata": {"user_id": None}, "user": "c"}, "c"),
        ({"memory_context": "a", "metadata": "b", "user": "c"}, "c"),
        ({"metadata": {"user_id": "b"}}, "b"),
        ({"metadata": ["user_id"], "user": ""}, None),
        ({"user": {"user_id": "c"}}, None),
    ],
)
def test_the_claimed_user_is_the_most_deliberate_of_three(members: dict[str, Any], claimed: str | None) -> None:
    assert parse(**members).conversation.controls.claimed_user == claimed


@pytest.mark.parametrize(("project", "expected"), [("p", "p"), ("", None), (7, None), (None, None)])
def test_the_project_is_a_word_or_nothing(project: Any, expected: str | None) -> None:
    assert parse(memory_context={"project_id": project}).conversation.controls.project == expected


# --- rewriting


def test_a_body_with_nothing_to_change_is_not_rewritten() -> None:
    assert parse(metadata={"memory_config": {}}).rewrite() is None


@pytest.mark.parametrize(
    ("roles", "position", "index"),
    [
        ("u", "first", 0),
        ("su", "first", 0),
        ("u", "after_system", 0),
        ("su", "after_system", 1),
        ("sdsu", "after_system", 3),
        ("susu", "after_system", 1),
        ("sd", "after_system", 2),
        ("xsu", "after_system", 0),
        ("u", "before_last_user", 0),
        ("suau", "before_last_user", 3),
        ("suauu", "before_last_user", 4),
        ("suct", "before_last_user", 1),
        ("suctu", "before_last_user", 4),
        ("suctuct", "before_last_user", 4),
        ("sa", "before_last_user", 1),
        ("scut", "before_last_user", 1),
        ("scuxt", "before_last_user", 1),
        ("scuf", "before_last_user", 1),
        ("uaux", "before_last_user", 2),
    ],
)
def test_the_injection_stands_at_its_position(roles: str, position: str, index: int) -> None:
    messages = written(roles)
    rewritten = parse(messages=messages).rewrite(Injection("facts", "system", position))
    assert rewritten is not None
    injected = {"role": "system", "content": "facts"}
    assert json.loads(rewritten)["messages"] == [*messages[:index], injected, *messages[index:]]


@given(st.lists(st.sampled_from(["s", "u", "uu", "a", "ct", "cttt", "cu", "cut", "cuct", "x"]), min_size=1, max_size=8))
def test_a_tool_call_and_its_result_are_never_parted(exchanges: list[str]) -> None:
    messages = written("".join(exchanges))
    for position in ("first", "after_system", "before_last_user"):
        rewritten = parse(messages=messages).rewrite(Injection("facts", "injected", position))
        roles = [message["role"] for message in json.loads(rewritten or b"")["messages"]]
        at = roles.index("injected")
        behind = "".join("r" if role == "tool" else role[0] for role in roles[at + 1 :])
        before = messages[at - 1] if at else {}
        assert not ("tool_calls" in before and behind.lstrip("u").startswith("r"))


def test_a_position_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ValueError, match="nowhere"):
        parse().rewrite(Injection("facts", position="nowhere"))


@given(st.text())
def test_any_text_arrives_as_it_is(text: str) -> None:
    rewritten = parse().rewrite(Injection(text))
    assert json.loads(rewritten or b"")["messages"][0] == {"role": "system", "content": text}


def test_half_of_a_surrogate_pair_does_not_cost_the_injection() -> None:
    rewritten = parse().rewrite(Injection("a\ud83d"))
    assert json.loads((rewritten or b"").decode())["messages"][0]["content"] == "a?"


# --- any body: what is not ours stays as it is spelled

JSON_SPELLINGS = st.sampled_from(
    ["2.50", "-0.0", "1E+2",
     "123456789012345678901234567890", "true", "null", r'"\u00e9\ud83c\udfe8"', '"é东"', r'"\/"',
     '{ "messages" : [ ] }', '[ 1 ,2.0]', '{"memory_config":{"a":1}}', '"memory_config"', r'"},{\"messages\":["', "{}"]
)  # fmt: skip
OTHER_NAMES = ["model", "temperature", "seed", "x-unknown", "", "Messages", "memory", r"tool\u0073", "metadata", "user"]
CONTENTS = st.sampled_from(
    ['"a"', '"\\u00e9 \\ud83c\\udfe8"', "null", '[{"type":"text","text":"b"}, {"type":"x"}]', '"]}"']
)
MESSAGES = st.builds(
    lambda role, content, extra: f'{{"role":"{role}",{extra} "content": {content}}}',
    st.sampled_from(["system", "user", "assistant", "tool"]),
    CONTENTS,
    st.sampled_from(["", '"n": 2.50 ,', '"messages":[{}],']),
)
SPACE = st.text(alphabet=" \t\n\r", max_size=2)
INJECTIONS = st.builds(
    Injection,
    st.text(max_size=20),
    st.sampled_from(["system", "developer", "user"]),
    st.sampled_from(["first", "after_system", "before_last_user"]),
)


@st.composite
def bodies(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A chat body, and the same without semmem's members."""
    gaps = st.builds(lambda before, after: f"{before},{after}", SPACE, SPACE)
    messages = draw(SPACE).join(["[", *_joined(draw, draw(st.lists(MESSAGES, min_size=1, max_size=5)), gaps), "]"])
    names = draw(st.lists(st.sampled_from(OTHER_NAMES), max_size=5, unique=True))
    members = [f'"{name}"{draw(SPACE)}:{draw(SPACE)}{draw(JSON_SPELLINGS)}' for name in names]
    members.append(f'"messages" :{draw(SPACE)}{messages}')
    own = [f'"{name}":{draw(JSON_SPELLINGS)}' for name in draw(st.sets(st.sampled_from(OWN)))]
    order = draw(st.permutations(members + own))
    lead, trail = "{" + draw(SPACE), draw(SPACE) + "}" + draw(SPACE)
    gap = draw(gaps)
    whole = lead + gap.join(order) + trail
    return whole.encode(), (lead + gap.join(member for member in order if member not in own) + trail).encode()


def _joined(draw: st.DrawFn, items: list[str], gaps: st.SearchStrategy[str]) -> list[str]:
    return [part for index, item in enumerate(items) for part in ([draw(gaps)] if index else []) + [item]]


@given(bodies())
def test_stripping_takes_semmems_members_and_nothing_else(drawn: tuple[bytes, bytes]) -> None:
    body, without = drawn
    stripped = chat_api.parse(body).rewrite()
    assert stripped == (without if without != body else None)


@given(bodies(), INJECTIONS)
def test_taking_the_injected_piece_out_gives_the_body_back(drawn: tuple[bytes, bytes], injection: Injection) -> None:
    body, without = drawn
    request = chat_api.parse(body)
    rewritten = request.rewrite(injection)
    assert rewritten is not None
    length = len(rewritten) - len(without)
    starts = [at for at in range(len(without)) if rewritten[:at] + rewritten[at + length :] == without]
    pieces = {rewritten[at : at + length] for at in starts}
    message = msgspec.json.encode({"role": injection.role, "content": injection.text})
    assert pieces & {message + b",", b"," + message}


@given(bodies(), INJECTIONS)
def test_everything_but_the_injection_means_what_it_meant(drawn: tuple[bytes, bytes], injection: Injection) -> None:
    body, _ = drawn
    before = json.loads(body, parse_float=str, parse_int=str)
    after = json.loads(chat_api.parse(body).rewrite(injection) or b"", parse_float=str, parse_int=str)
    after["messages"].remove({"role": injection.role, "content": injection.text})
    assert list(after.items()) == [(name, value) for name, value in before.items() if name not in OWN]


@given(bodies(), INJECTIONS)
def test_rewriting_again_gives_the_same_and_leaves_nothing_to_strip(
    drawn: tuple[bytes, bytes], injection: Injection
) -> None:
    request = chat_api.parse(drawn[0])
    rewritten = request.rewrite(injection)
    assert rewritten == request.rewrite(injection)
    assert chat_api.parse(rewritten or b"").rewrite() is None


@given(st.binary(max_size=80) | bodies().map(lambda drawn: drawn[0]), st.integers(0, 200), st.binary(max_size=3))
def test_any_bytes_are_a_request_or_malformed(body: bytes, at: int, replaced: bytes) -> None:
    body = body[:at] + replaced + body[at + len(replaced) :]
    try:
        chat_api.parse(body).rewrite(Injection("facts", position="before_last_user"))
    except Malformed:
        return
    assert json.loads(body)["messages"]
