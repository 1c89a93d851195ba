"""Reading and rewriting a Responses request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.dialects import Malformed
from semmem.dialects import responses as responses_api
from semmem.dialects.responses import ResponsesRequest
from semmem.memory import Controls, Injection, MemoryType, Message, Role

GOLDEN = Path(__file__).parent / "golden" / "responses"
OWN = ("memory_config", "memory_context")
HELLO = {"role": "user", "content": "Hello"}
OUTPUT_KINDS = ("function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call")


def parse(**members: Any) -> ResponsesRequest:
    return responses_api.parse(json.dumps({"model": "m", "input": [HELLO], **members}).encode())


def written(letters: str) -> list[dict[str, Any]]:
    """Items from one letter each: s(ystem), d(eveloper), u(ser), a(ssistant), r(easoning), i(tem reference),
    w(eb search), x (a role we do not know); c and k are calls, o and p their outputs, q a request of approval and
    y(es) the answer to it.
    """
    roles = {"s": "system", "d": "developer", "u": "user", "a": "assistant", "x": "critic"}
    others: dict[str, dict[str, Any]] = {
        "r": {"type": "reasoning", "id": "rs", "summary": []},
        "i": {"type": "item_reference", "id": "fc"},
        "w": {"type": "web_search_call", "id": "ws"},
        "c": {"type": "function_call", "id": "fc_c", "call_id": "c", "name": "f", "arguments": "{}"},
        "o": {"type": "function_call_output", "call_id": "c", "output": "done"},
        "k": {"type": "custom_tool_call", "id": "ctc_k", "call_id": "k", "name": "g", "input": ""},
        "p": {"type": "custom_tool_call_output", "call_id": "k", "output": "done"},
        "q": {"type": "mcp_approval_request", "id": "mcpr", "name": "h", "arguments": "{}", "server_label": "s"},
        "y": {"type": "mcp_approval_response", "approval_request_id": "mcpr", "approve": True},
    }
    return [
        {"role": roles[letter], "content": str(at)} if letter in roles else others[letter]
        for at, letter in enumerate(letters)
    ]


# --- golden bodies


@pytest.mark.parametrize(
    ("name", "injection"),
    [
        ("minimal", Injection('Facts:\n- "Ada" <b>')),
        ("full", Injection("Facts: 東京 \x07", role="developer", position="after_system")),
        ("tools", Injection("Facts", position="before_last_user")),
        ("images", Injection("Facts", role="user", position="before_last_user")),
        ("long", Injection("Facts", role="developer", position="before_last_user")),
    ],
)
def test_a_whole_body_reads_and_rewrites_as_written_down(name: str, injection: Injection) -> None:
    request = responses_api.parse((GOLDEN / f"{name}.json").read_bytes())
    said = msgspec.to_builtins(request.conversation)
    said["messages"] = [[message.role.value, message.text] for message in request.conversation.messages]
    assert json.loads(json.dumps(said)) == json.loads((GOLDEN / f"{name}.conversation.json").read_text("utf-8"))
    assert request.rewrite(injection) == (GOLDEN / f"{name}.rewritten.json").read_bytes()


# --- input


def test_a_string_is_one_user_message() -> None:
    assert parse(input="Hello\n").conversation.messages == (Message(Role.USER, "Hello\n"),)


@pytest.mark.parametrize("members", [{"input": None}, {"input": []}, {"input": None, "prompt": {"id": "p"}}])
def test_a_request_without_input_has_no_user_message(members: dict[str, Any]) -> None:
    assert parse(**members).conversation.messages == ()
    assert responses_api.parse(b'{"model":"m"}').conversation.messages == ()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        ([], ""),
        ([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}], "a\nb"),
        ([{"type": "input_image", "image_url": "u"}, {"type": "input_text", "text": "a"}], "a"),
        ([{"type": "input_file", "file_id": "f"}, {"type": "input_audio", "input_audio": {}}], ""),
        ([{"type": "text", "text": "a"}, "b", {"type": "output_text", "text": "c"}], "a\nb\nc"),
        ([{"type": "input_text", "text": 7}, {"type": "refusal", "refusal": "no"}, {}], ""),
        ([{"type": "summary_text", "text": "hm"}], ""),
    ],
)
@pytest.mark.parametrize("kind", [{}, {"type": "message"}, {"type": None}])
def test_the_text_of_a_message_is_its_text_parts(content: Any, text: str, kind: dict[str, Any]) -> None:
    request = parse(input=[{**kind, "role": "user", "content": content}])
    assert request.conversation.messages == (Message(Role.USER, text),)


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("system", Role.SYSTEM),
        ("developer", Role.SYSTEM),
        ("user", Role.USER),
        ("assistant", Role.ASSISTANT),
        ("tool", Role.TOOL),
        ("critic", Role.TOOL),
        ("User", Role.TOOL),
        ("", Role.TOOL),
    ],
)
def test_only_a_user_is_a_user(role: str, expected: Role) -> None:
    assert parse(input=[{"role": role, "content": ""}]).conversation.messages[0].role is expected


@pytest.mark.parametrize(
    ("item", "messages"),
    [
        ({"type": "function_call_output", "call_id": "c", "output": "9 deg"}, [Message(Role.TOOL, "9 deg", "c")]),
        ({"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "a"}]},
         [Message(Role.TOOL, "a", "c")]),
        ({"type": "custom_tool_call_output", "call_id": "c", "output": "a"}, [Message(Role.TOOL, "a", "c")]),
        ({"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot"}},
         [Message(Role.TOOL, "", "c")]),
        ({"type": "local_shell_call_output", "id": "c"}, [Message(Role.TOOL, "", "c")]),
        ({"type": "from_the_future_output", "output": 7, "role": "user"}, [Message(Role.TOOL, "")]),
        ({"type": "mcp_approval_response", "approval_request_id": "c", "approve": True}, [Message(Role.TOOL, "", "c")]),
        ({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}, []),
        ({"type": "mcp_call", "id": "c", "output": "inside"}, []),
        ({"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}], "summary": []}, []),
        ({"type": "item_reference", "id": "msg_1"}, []),
        ({"id": "msg_1"}, []),
        ({"type": "compaction", "encrypted_content": "zzz"}, []),
        ({"type": "from_the_future", "role": "user", "content": {"text": "a"}}, []),
    ],
)  # fmt: skip
def test_outputs_are_a_tools_words_and_other_items_nobodys(item: dict[str, Any], messages: list[Message]) -> None:
    assert list(parse(input=[item]).conversation.messages) == messages


@pytest.mark.parametrize(
    ("instructions", "messages"),
    [
        ("Be brief.", (Message(Role.SYSTEM, "Be brief."), Message(Role.USER, "Hello"))),
        ("", (Message(Role.USER, "Hello"),)),
        (None, (Message(Role.USER, "Hello"),)),
    ],
)
def test_instructions_are_the_first_system_message(instructions: str | None, messages: tuple[Message, ...]) -> None:
    assert parse(instructions=instructions).conversation.messages == messages


@pytest.mark.parametrize(
    ("members", "place"),
    [
        ({"input": 7}, "input: "),
        ({"input": {}}, "input: "),
        ({"input": ["secret"]}, "input[0]: "),
        ({"input": [HELLO, None]}, "input[1]: "),
        ({"input": [HELLO, {"role": 7}]}, "input[1].role: "),
        ({"input": [HELLO, {"type": ["secret"]}]}, "input[1].type: "),
        ({"input": [HELLO, HELLO, {"role": "user", "content": 1}]}, "input[2].content: "),
        ({"input": [{"role": "user", "content": {"secret": "secret"}}]}, "input[0].content: "),
        ({"input": [{"role": "user", "content": [{"type": "input_text", "text": "secret"}, 5]}]},
         "input[0].content[1]: "),
        ({"instructions": 7}, "instructions: "),
        ({"instructions": [{"role": "developer", "content": "secret"}]}, "instructions: "),
    ],
)  # fmt: skip
def test_what_has_another_shape_is_malformed_at_a_place(members: dict[str, Any], place: str) -> None:
    with pytest.raises(Malformed) as refused:
        parse(**members)
    assert str(refused.value).startswith(place)
    assert "secret" not in str(refused.value)


SCALARS = st.none() | st.booleans() | st.integers() | st.just("s3cret")
KEYS = st.sampled_from(["role", "content", "type", "text", "output", "call_id", "s3cret"])


@given(st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=12))
def test_malformed_never_repeats_what_was_said(items: Any) -> None:
    try:
        parse(input=items)
    except Malformed as error:
        assert "s3cret" not in str(error)  # noqa: PT017  (whether it is raised depends on the example)


@pytest.mark.parametrize("token", [rb'"hi \ud83d"', rb'[{"role":"user","content":"hi \ud83d"}]'])
def test_a_string_cut_inside_an_emoji_is_read_and_kept(token: bytes) -> None:
    request = responses_api.parse(rb'{"instructions":"\ude00", "input":%s,"memory_config":{}}' % token)
    assert [message.text for message in request.conversation.messages] == ["\ufffd", "hi \ufffd"]
    assert request.rewrite(Injection("facts")) == rb'{"instructions":"\ude00\n\nfacts", "input":%s}' % token
    first = request.rewrite(Injection("facts", position="first"))
    assert first == rb'{"instructions":"facts\n\n\ude00", "input":%s}' % token


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
    ("members", "conversation_id", "previous_id"),
    [
        ({}, None, None),
        ({"conversation": "conv_1"}, "conv_1", None),
        ({"conversation": {"id": "conv_1"}}, "conv_1", None),
        ({"previous_response_id": "resp_1"}, None, "resp_1"),
        ({"conversation": "", "previous_response_id": ""}, None, None),
        ({"conversation": {"id": 7}, "previous_response_id": 7}, None, None),
        ({"conversation": None, "previous_response_id": None}, None, None),
    ],
)
def test_a_chain_is_known_by_its_names(
    members: dict[str, Any], conversation_id: str | None, previous_id: str | None
) -> None:
    conversation = parse(**members).conversation
    assert (conversation.conversation_id, conversation.previous_id) == (conversation_id, previous_id)


@pytest.mark.parametrize(
    ("letters", "is_tool_turn"),
    [
        ("u", False),
        ("uco", True),
        ("o", True),
        ("urcoa", True),
        ("uckop", True),
        ("ucos", True),
        ("ucow", True),
        ("ucou", False),
        ("ou", False),
        ("uqy", True),
        ("uw", False),
        ("s", False),
        ("", False),
    ],
)
def test_a_tool_turn_goes_on_from_a_tools_output(letters: str, is_tool_turn: bool) -> None:
    assert parse(input=written(letters)).conversation.tool_turn is is_tool_turn


@pytest.mark.parametrize(
    ("choice", "is_tool_turn"),
    [
        ({"type": "function", "name": "weather"}, True),
        ({"type": "custom", "name": "weather"}, True),
        ({"type": "mcp", "server_label": "s"}, True),
        ({"type": "file_search"}, True),
        ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "weather"}]}, False),
        ({"type": "auto"}, False),
        ({"type": 7}, False),
        ({}, False),
        ("auto", False),
        ("none", False),
        ("required", False),
        (None, False),
    ],
)
def test_naming_a_tool_is_a_tool_turn_and_offering_tools_is_not(choice: Any, is_tool_turn: bool) -> None:
    tools = [{"type": "function", "name": "weather"}]
    assert parse(tools=tools, tool_choice=choice).conversation.tool_turn is is_tool_turn


def test_what_a_request_asks_of_memory_is_read_and_stripped() -> None:
    config = {"enabled": True, "retrieval_limit": 7, "memory_types": ["episodic"]}
    request = parse(memory_config=config, memory_context={"project_id": "p"}, user="ada")
    assert request.conversation.controls == Controls(
        enabled=True, types=(MemoryType.EPISODIC,), limit=7, project="p", claimed_user="ada"
    )
    assert request.rewrite() == json.dumps({"model": "m", "input": [HELLO], "user": "ada"}).encode()


# --- rewriting: instructions


def test_a_body_with_nothing_to_change_is_not_rewritten() -> None:
    assert parse(metadata={"memory_config": {}}).rewrite() is None


@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.parametrize(
    ("position", "before", "after"),
    [
        ("first", r'"instructions" : "Be \u0062rief.\/"', r'"instructions" : "\"F\"é\n\nBe \u0062rief.\/"'),
        ("after_system", r'"instructions" : "Be \u0062rief.\/"', r'"instructions" : "Be \u0062rief.\/\n\n\"F\"é"'),
        ("first", r'"instructions":"\\\""', r'"instructions":"\"F\"é\n\n\\\""'),
        ("after_system", r'"instructions":"\\\""', r'"instructions":"\\\"\n\n\"F\"é"'),
        ("first", r'"instructions":""', r'"instructions":"\"F\"é"'),
        ("after_system", r'"instructions":""', r'"instructions":"\"F\"é"'),
        ("first", r'"instructions": null', r'"instructions": "\"F\"é"'),
    ],
)  # fmt: skip
def test_the_clients_own_instructions_keep_their_bytes(role: str, position: str, before: str, after: str) -> None:
    body = f'{{{before}, "input":"Hello", "memory_config":{{}} }}'
    rewritten = responses_api.parse(body.encode()).rewrite(Injection('"F"é', role, position))
    assert rewritten == f'{{{after}, "input":"Hello" }}'.encode()


@pytest.mark.parametrize(
    ("body", "rewritten"),
    [
        (b'{"input":"Hello"}', b'{"input":"Hello","instructions":"F"}'),
        (b'{"input":"Hello" , "memory_config":{}\n}', b'{"input":"Hello","instructions":"F"\n}'),
        (b'{"memory_config":{}, "input":"Hello" }', b'{"input":"Hello","instructions":"F" }'),
        (b'{"memory_config":{} }', b'{"instructions":"F" }'),
        (b"{}", b'{"instructions":"F"}'),
    ],
)
def test_missing_instructions_are_added_at_the_end(body: bytes, rewritten: bytes) -> None:
    assert responses_api.parse(body).rewrite(Injection("F")) == rewritten


@pytest.mark.parametrize("position", ["first", "after_system", "before_last_user"])
@pytest.mark.parametrize("role", ["system", "developer", "user"])
@pytest.mark.parametrize("given_input", [{}, {"input": None}, {"input": []}])
def test_without_input_there_are_only_instructions(role: str, position: str, given_input: dict[str, Any]) -> None:
    rewritten = responses_api.parse(json.dumps(given_input).encode()).rewrite(Injection("F", role, position))
    assert json.loads(rewritten or b"") == {**given_input, "instructions": "F"}


def test_without_a_user_message_there_is_nothing_to_stand_before() -> None:
    rewritten = parse(input=written("so"), instructions="I").rewrite(Injection("F", position="before_last_user"))
    assert json.loads(rewritten or b"")["instructions"] == "I\n\nF"


# --- rewriting: items


@pytest.mark.parametrize(
    ("role", "position"),
    [("user", "first"), ("user", "after_system"), ("user", "before_last_user"), ("developer", "before_last_user")],
)
def test_a_string_becomes_the_second_of_two_items_with_its_bytes(role: str, position: str) -> None:
    body = rb'{"memory_config":{}, "input" : "H\u0065llo \"\/" ,"memory_context":{}}'
    rewritten = responses_api.parse(body).rewrite(Injection("F", role, position))
    message = b'{"role":"%s","content":"F"}' % role.encode()
    assert rewritten == rb'{"input" : [%s,{"role":"user","content":"H\u0065llo \"\/"}]}' % message


@pytest.mark.parametrize(
    ("letters", "role", "position", "index"),
    [
        ("u", "user", "first", 0),
        ("su", "user", "first", 0),
        ("su", "user", "after_system", 1),
        ("sdsu", "user", "after_system", 3),
        ("xsu", "user", "after_system", 0),
        ("sa", "user", "before_last_user", 1),
        ("so", "user", "before_last_user", 2),
        ("u", "system", "before_last_user", 0),
        ("suau", "developer", "before_last_user", 3),
        ("suauu", "user", "before_last_user", 4),
        ("urco", "system", "before_last_user", 0),
        ("suco", "system", "before_last_user", 1),
        ("sucou", "system", "before_last_user", 4),
        ("sucouco", "system", "before_last_user", 4),
        ("scuo", "system", "before_last_user", 1),
        ("sckuop", "system", "before_last_user", 1),
        ("sckouxp", "system", "before_last_user", 1),
        ("srcuo", "system", "before_last_user", 1),
        ("squy", "system", "before_last_user", 1),
        ("suiuo", "system", "before_last_user", 2),
        ("swru", "system", "before_last_user", 2),
        ("ou", "user", "first", 1),
        ("opu", "user", "first", 2),
        ("ou", "developer", "before_last_user", 1),
        ("uo", "developer", "before_last_user", 2),
        ("yu", "user", "first", 1),
        ("ucco", "user", "first", 0),
    ],
)
def test_an_item_stands_at_its_position(letters: str, role: str, position: str, index: int) -> None:
    items = written(letters)
    rewritten = parse(input=items).rewrite(Injection("facts", role, position))
    injected = {"role": role, "content": "facts"}
    assert json.loads(rewritten or b"") == {"model": "m", "input": [*items[:index], injected, *items[index:]]}


@given(st.text("suaxriwckopqy", min_size=1, max_size=10), st.sampled_from(["system", "user"]))
def test_what_belongs_together_is_never_parted(letters: str, role: str) -> None:
    """A call and its output, reasoning and what it led to; an output whose call is not there goes on from a call of
    an earlier response.
    """
    items = written(letters)
    for position in ("first", "after_system", "before_last_user"):
        rewritten = json.loads(parse(input=items).rewrite(Injection("facts", role, position)) or b"")
        if "instructions" in rewritten:
            assert rewritten["input"] == items
            continue
        at = rewritten["input"].index({"role": role, "content": "facts"})
        before, behind = letters[:at], letters[at:]
        assert not behind or not before.endswith("r")
        for call, output in ("co", "kp", "qy"):
            first = behind.find(output)
            assert first < 0 or call in behind[:first] or "i" in behind[:first]


def test_a_position_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ValueError, match="nowhere"):
        parse().rewrite(Injection("facts", position="nowhere"))


@given(st.text(), st.text())
def test_any_text_arrives_as_it_is(text: str, own: str) -> None:
    gap = "\n\n" if own else ""
    first = json.loads(parse(instructions=own).rewrite(Injection(text, position="first")) or b"")
    behind = json.loads(parse(instructions=own).rewrite(Injection(text, position="after_system")) or b"")
    merged = json.loads(parse(instructions=own).rewrite(Injection(text)) or b"")
    asked = json.loads(parse(input=own).rewrite(Injection(text, "user")) or b"")
    item = json.loads(parse(input=own).rewrite(Injection(text, "user", "first")) or b"")
    assert first["instructions"] == text + gap + own
    assert behind["instructions"] == merged["instructions"] == own + gap + text
    assert asked["input"] == text + gap + own
    assert item["input"] == [{"role": "user", "content": text}, {"role": "user", "content": own}]


@pytest.mark.parametrize("position", ["system", "first"])
@pytest.mark.parametrize("role", ["system", "user"])
def test_half_of_a_surrogate_pair_does_not_cost_the_injection(role: str, position: str) -> None:
    assert b'"a?' in (parse().rewrite(Injection("a\ud83d", role, position)) or b"")


# --- any body: what is not ours stays as it is spelled

JSON_SPELLINGS = st.sampled_from(
    ["2.50", "-0.0", "1E+2", "123456789012345678901234567890", "true", "null", r'"\u00e9\ud83c\udfe8"', '"é东"',
     r'"\/"', '{ "input" : [ ] }', '[ 1 ,2.0]', '{"memory_config":{"a":1}}', '"memory_config"',
     r'"},{\"input\":["', "{}"]
)  # fmt: skip
STRING_SPELLINGS = st.sampled_from(['""', '"a"', r'"\u00e9 \ud83c\udfe8\/"', r'"\\"', r'"\""', '"]}"', '"é"'])
OTHER_NAMES = ["model", "temperature", "x-unknown", "", "Input", "memory", r"tool\u0073", "metadata", "user"]
CONTENTS = STRING_SPELLINGS | st.sampled_from(["null", '[{"type":"input_text","text":"b"}, {"type":"x"}]', "[ ]"])
ITEMS = st.builds(
    lambda role, content, extra: f'{{"role":"{role}",{extra} "content": {content}}}',
    st.sampled_from(["system", "user", "assistant", "tool"]),
    CONTENTS,
    st.sampled_from(["", '"n": 2.50 ,', '"input":[{}],', '"type":"message" ,']),
) | st.sampled_from([json.dumps(item) for item in written("riwckopqy")])
SPACE = st.text(alphabet=" \t\n\r", max_size=2)
INJECTIONS = st.builds(
    Injection,
    st.text(max_size=20),
    st.sampled_from(["system", "developer", "user"]),
    st.sampled_from(["first", "after_system", "before_last_user"]),
)


@st.composite
def inputs(draw: st.DrawFn) -> str:
    gaps = st.builds(lambda before, after: f"{before},{after}", SPACE, SPACE)
    items = draw(st.lists(ITEMS, max_size=5))
    array = "[" + draw(SPACE) + draw(gaps).join(items) + draw(SPACE) + "]"
    return draw(st.sampled_from([array, array, draw(STRING_SPELLINGS), "null"]))


@st.composite
def bodies(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A Responses body, and the same without semmem's members."""
    names = draw(st.lists(st.sampled_from(OTHER_NAMES), max_size=4, unique=True))
    members = [f'"{name}"{draw(SPACE)}:{draw(SPACE)}{draw(JSON_SPELLINGS)}' for name in names]
    if draw(st.booleans()):
        members.append(f'"instructions"{draw(SPACE)}:{draw(STRING_SPELLINGS | st.just("null"))}')
    if draw(st.integers(0, 9)):
        members.append(f'"input" :{draw(SPACE)}{draw(inputs())}')
    own = [f'"{name}":{draw(JSON_SPELLINGS)}' for name in draw(st.sets(st.sampled_from(OWN)))]
    order = draw(st.permutations(members + own))
    lead, trail = "{" + draw(SPACE), draw(SPACE) + "}" + draw(SPACE)
    gap = draw(SPACE) + "," + draw(SPACE)
    whole = lead + gap.join(order) + trail
    return whole.encode(), (lead + gap.join(member for member in order if member not in own) + trail).encode()


@given(bodies())
def test_stripping_takes_semmems_members_and_nothing_else(drawn: tuple[bytes, bytes]) -> None:
    body, without = drawn
    assert responses_api.parse(body).rewrite() == (without if without != body else None)


def without_piece(body: bytes, piece: bytes, instead: bytes = b"") -> set[bytes]:
    """The body with one of the piece's occurrences replaced, for each of them."""
    places = [at for at in range(len(body)) if body.startswith(piece, at)]
    return {body[:at] + instead + body[at + len(piece) :] for at in places}


@given(bodies(), INJECTIONS)
def test_taking_the_injected_piece_out_gives_the_body_back(drawn: tuple[bytes, bytes], injection: Injection) -> None:
    body, without = drawn
    rewritten = responses_api.parse(body).rewrite(injection)
    assert rewritten is not None
    text = msgspec.json.encode(injection.text)
    item = msgspec.json.encode({"role": injection.role, "content": injection.text})
    member, inner = b'"instructions":' + text, text[1:-1]
    pieces = [item + b",", b"," + item, item, b"," + member, member, inner + rb"\n\n", rb"\n\n" + inner, inner]
    restored = {left for piece in pieces for left in without_piece(rewritten, piece)}
    restored |= without_piece(rewritten, text, b"null")
    wrapped = without_piece(rewritten, b"[" + item + b',{"role":"user","content":')
    restored |= {left for inside in wrapped for left in without_piece(inside, b"}]")}
    assert without in restored


@given(bodies(), INJECTIONS)
def test_everything_but_the_injection_means_what_it_meant(drawn: tuple[bytes, bytes], injection: Injection) -> None:
    body, _ = drawn
    before = json.loads(body, parse_float=str, parse_int=str)
    after = json.loads(responses_api.parse(body).rewrite(injection) or b"", parse_float=str, parse_int=str)
    others = [name for name in before if name not in (*OWN, "input", "instructions")]
    assert [name for name in after if name not in ("input", "instructions")] == others
    assert all(after[name] == before[name] for name in others)
    own, own_input = before.get("instructions") or "", before.get("input")
    if after.get("input") == own_input:
        texts = {injection.text + "\n\n" + own, own + "\n\n" + injection.text} if own else {injection.text}
        assert after["instructions"] in texts
        return
    assert after.get("instructions") == before.get("instructions")
    after["input"].remove({"role": injection.role, "content": injection.text})
    assert after["input"] == ([{"role": "user", "content": own_input}] if isinstance(own_input, str) else own_input)


@given(bodies(), INJECTIONS)
def test_rewriting_again_gives_the_same_and_leaves_nothing_to_strip(
    drawn: tuple[bytes, bytes], injection: Injection
) -> None:
    request = responses_api.parse(drawn[0])
    rewritten = request.rewrite(injection)
    assert rewritten == request.rewrite(injection)
    assert responses_api.parse(rewritten or b"").rewrite() is None


@given(st.binary(max_size=80) | bodies().map(lambda drawn: drawn[0]), st.integers(0, 200), st.binary(max_size=3))
def test_any_bytes_are_a_request_or_malformed(body: bytes, at: int, replaced: bytes) -> None:
    body = body[:at] + replaced + body[at + len(replaced) :]
    try:
        rewritten = responses_api.parse(body).rewrite(Injection("facts", position="before_last_user"))
    except Malformed:
        return
    assert isinstance(json.loads(body), dict)
    assert b"facts" in (rewritten or b"")


@pytest.mark.parametrize("deep", [b"[" * 100_000 + b"]" * 100_000, b'{"id":' * 100_000 + b"1" + b"}" * 100_000])
@pytest.mark.parametrize("name", [b"id", b"call_id", b"content", b"output", b"x"])
def test_nesting_without_end_is_malformed(name: bytes, deep: bytes) -> None:
    with pytest.raises(Malformed, match="nested too deeply"):
        responses_api.parse(b'{"input":[{"role":"user","%s":%s}]}' % (name, deep))


def test_numbers_beyond_all_bounds_do_no_harm_in_an_item() -> None:
    item = b'{"role":"user","content":"Hello","n":1e999,"m":%s}' % (b"9" * 5_000)
    assert responses_api.parse(b'{"input":[%s]}' % item).conversation.messages == (Message(Role.USER, "Hello"),)
