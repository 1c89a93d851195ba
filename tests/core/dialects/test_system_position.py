"""Position ``system``: whatever a strict server accepted without the injection it accepts with it, in every API."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.dialects import BY_NAME, DIALECTS
from semmem.memory import Injection
from tests.core.dialects import test_chat_request, test_messages_request, test_responses_request
from tests.core.dialects.injected_pieces import bodies_before
from tests.core.dialects.template_rules import FAMILIES, chat_messages
from tests.support.examples import examples

Json = dict[str, Any]
NOTES = '<semmem-memory 0123456789abcdef>\n"Notes" \\ 東京\n</semmem-memory>'
INNER = json.dumps(NOTES, ensure_ascii=False)[1:-1].encode()
PATHS = {dialect.name: path for path, dialect in DIALECTS.items()}
BODIES = {
    "chat": test_chat_request.bodies(),
    "messages": test_messages_request.bodies(),
    "responses": test_responses_request.bodies(),
}


def injected(name: str, body: Json, role: str = "system") -> Json:
    return spelled(name, json.dumps(body).encode(), role)[1]


def spelled(name: str, body: bytes, role: str = "system") -> tuple[bytes, Json]:
    rewritten = BY_NAME[name].parse(body).rewrite(Injection(NOTES, role))
    assert rewritten is not None
    return rewritten, json.loads(rewritten)


# --- where it goes


SYSTEM = {"role": "system", "content": "Be brief."}
HELLO = {"role": "user", "content": "Hello"}
BRIEF = "Be brief.\n\n" + NOTES
PART = {"type": "text", "text": NOTES}
IMAGE = {"type": "image_url", "image_url": {"url": "u"}}
TALK = [HELLO, {"role": "assistant", "content": "Hi"}]


@pytest.mark.parametrize(
    ("messages", "after"),
    [
        ([SYSTEM, HELLO], [{"role": "system", "content": BRIEF}, HELLO]),
        ([{**SYSTEM, "role": "developer"}, HELLO], [{"role": "developer", "content": BRIEF}, HELLO]),
        ([SYSTEM, SYSTEM, HELLO], [{"role": "system", "content": BRIEF}, SYSTEM, HELLO]),
        ([{**SYSTEM, "role": "developer"}, SYSTEM], [{"role": "developer", "content": BRIEF}, SYSTEM]),
        ([HELLO, SYSTEM], [HELLO, {"role": "system", "content": BRIEF}]),
        ([{**SYSTEM, "content": ""}, HELLO], [{"role": "system", "content": NOTES}, HELLO]),
        ([{**SYSTEM, "content": None}, HELLO], [{"role": "system", "content": NOTES}, HELLO]),
        ([{"role": "system"}, HELLO], [{"role": "system", "content": NOTES}, HELLO]),
        ([{**SYSTEM, "content": []}, HELLO], [{"role": "system", "content": [PART]}, HELLO]),
        ([{**SYSTEM, "content": [IMAGE]}, HELLO], [{"role": "system", "content": [IMAGE, PART]}, HELLO]),
        ([{**SYSTEM, "content": ["a", "b"]}, HELLO], [{"role": "system", "content": ["a", "b", NOTES]}, HELLO]),
        ([{**SYSTEM, "name": "x"}, HELLO], [{"role": "system", "content": BRIEF, "name": "x"}, HELLO]),
        ([HELLO], [{"role": "system", "content": NOTES}, HELLO]),
        ([{**HELLO, "role": "x"}], [{"role": "system", "content": NOTES}, {**HELLO, "role": "x"}]),
    ],
)  # fmt: skip
def test_in_a_chat_it_ends_the_first_system_message(messages: list[Json], after: list[Json]) -> None:
    assert injected("chat", {"messages": messages})["messages"] == after


@pytest.mark.parametrize(
    ("content", "after"),
    [
        ("Hello", NOTES + "\n\nHello"),
        ("", NOTES),
        (None, NOTES),
        ([], [PART]),
        ([IMAGE], [PART, IMAGE]),
        ([IMAGE, {"type": "text", "text": "What is it?"}], [PART, IMAGE, {"type": "text", "text": "What is it?"}]),
    ],
)
def test_as_the_user_it_begins_the_users_last_message(content: Any, after: Any) -> None:
    said = [*TALK, {"role": "user", "content": content}]
    call = [{"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}, {"role": "tool", "content": "42"}]
    for loop in ([], call):
        expected = [*TALK, {"role": "user", "content": after}, *loop]
        assert injected("chat", {"messages": [*said, *loop]}, "user")["messages"] == expected


def test_a_chat_in_which_no_user_speaks_gets_a_message_of_its_own() -> None:
    said = [{"role": "assistant", "content": "Hi"}]
    assert injected("chat", {"messages": said}, "user")["messages"] == [{"role": "user", "content": NOTES}, *said]


ITEM = {"type": "input_text", "text": NOTES}


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ({"instructions": "Be brief.", "input": "Hello"}, {"instructions": BRIEF, "input": "Hello"}),
        ({"instructions": "Be brief.", "input": [SYSTEM]}, {"instructions": BRIEF, "input": [SYSTEM]}),
        ({"input": "Hello"}, {"input": "Hello", "instructions": NOTES}),
        ({"instructions": None, "input": [HELLO]}, {"instructions": NOTES, "input": [HELLO]}),
        ({"instructions": "", "input": [HELLO]}, {"instructions": NOTES, "input": [HELLO]}),
        ({"input": [SYSTEM, HELLO]}, {"input": [{"role": "system", "content": BRIEF}, HELLO]}),
        (
            {"instructions": "", "input": [HELLO, {"role": "developer", "content": []}]},
            {"instructions": "", "input": [HELLO, {"role": "developer", "content": [ITEM]}]},
        ),
    ],
)
def test_in_responses_it_ends_the_instructions_wherever_they_stand(body: Json, after: Json) -> None:
    assert injected("responses", body) == after


@pytest.mark.parametrize(
    ("given_input", "after"),
    [
        ("Hello", NOTES + "\n\nHello"),
        ([HELLO], [{"role": "user", "content": NOTES + "\n\nHello"}]),
        ([{"role": "user", "content": []}], [{"role": "user", "content": [ITEM]}]),
    ],
)
def test_in_responses_it_begins_what_the_user_says_last(given_input: Any, after: Any) -> None:
    body = {"instructions": "Be brief.", "input": given_input}
    assert injected("responses", body, "user") == {"instructions": "Be brief.", "input": after}


def test_a_later_request_of_a_chain_knows_whether_the_api_has_kept_it() -> None:
    def kept(role: str = "system", **body: Any) -> bool:
        request = BY_NAME["responses"].parse(json.dumps(body).encode())
        return request.keeps(request.placed(Injection(NOTES, role)))

    assert not kept(input="Hello")
    assert not kept(instructions="Be brief.", input=[SYSTEM, HELLO])
    assert kept(input=[SYSTEM, HELLO])
    assert kept("user", input="Hello")


MARKED = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ({"system": "Be brief."}, {"system": BRIEF}),
        ({"system": MARKED}, {"system": [*MARKED, PART]}),
        ({}, {"system": NOTES}),
        ({"system": None}, {"system": NOTES}),
        ({"system": ""}, {"system": NOTES}),
        ({"system": []}, {"system": [PART]}),
    ],
)
def test_in_messages_it_ends_the_system_prompt(body: Json, after: Json) -> None:
    assert injected("messages", {"messages": [HELLO], **body}) == {"messages": [HELLO], **after}


def test_in_messages_a_system_message_takes_the_place_of_a_missing_system_prompt() -> None:
    assert injected("messages", {"messages": [SYSTEM, HELLO]}) == {
        "messages": [{"role": "system", "content": BRIEF}, HELLO]
    }


@pytest.mark.parametrize(
    ("content", "after"),
    [
        ("Hello", NOTES + "\n\nHello"),
        ([{"type": "image"}], [PART, {"type": "image"}]),
        ([{"type": "tool_result"}, {"type": "text", "text": "b"}],
         [{"type": "tool_result"}, PART, {"type": "text", "text": "b"}]),
    ],
)  # fmt: skip
def test_in_messages_it_begins_the_users_own_last_words(content: Any, after: Any) -> None:
    tools = [{"role": "assistant", "content": [{"type": "tool_use"}]},
             {"role": "user", "content": [{"type": "tool_result"}]}]  # fmt: skip
    body = {"messages": [*TALK, {"role": "user", "content": content}, *tools]}
    assert injected("messages", body, "user") == {"messages": [*TALK, {"role": "user", "content": after}, *tools]}


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("chat", rb'{"messages":[{"role":"system","content":"a","content":"b"},{"role":"user","content":"c"}]}'),
        ("messages", rb'{"messages":[{"role":"system","content":"a","content":"b"},{"role":"user","content":"c"}]}'),
        ("responses", rb'{"input":[{"role":"system","content":"a","content":"b"},{"role":"user","content":"c"}]}'),
    ],
)
def test_a_message_that_names_its_content_twice_is_left_alone(name: str, body: bytes) -> None:
    rewritten, _ = spelled(name, body)
    assert b'{"role":"system","content":"a","content":"b"},{"role":"user","content":"c"}' in rewritten
    assert rewritten.count(INNER) == 1


# --- what stands there stays as it is spelled


@settings(deadline=None)
@given(st.sampled_from(sorted(BODIES)).flatmap(lambda name: st.tuples(st.just(name), BODIES[name])),
       st.sampled_from(["system", "developer", "user"]))  # fmt: skip
def test_taking_the_notes_out_gives_the_body_back(drawn: tuple[str, tuple[bytes, bytes]], role: str) -> None:
    name, (body, bare) = drawn
    rewritten, _ = spelled(name, body, role)
    assert rewritten.count(INNER) == 1
    start = rewritten.index(INNER)
    assert bare in bodies_before(rewritten, start, start + len(INNER))
    assert spelled(name, body, role)[0] == rewritten
    assert BY_NAME[name].parse(rewritten).rewrite() is None


# --- strict servers


TEXTS = st.sampled_from(["", "Hello", "Ünï \ud83d", None]) | st.text(max_size=5)


def contents(kind: str) -> st.SearchStrategy[Any]:
    part = st.builds(lambda text: {"type": kind, "text": text}, st.text(max_size=5))
    return TEXTS | st.lists(part | st.just({"type": "image", "source": {}}), max_size=3)


def instructed(role: st.SearchStrategy[str], content: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Json]]:
    return st.lists(st.builds(lambda who, what: {"role": who, "content": what}, role, content), max_size=2)


INSTRUCTORS = st.sampled_from(["system", "developer"])


@st.composite
def chat_bodies(draw: st.DrawFn) -> Json:
    content = contents("text")
    messages = draw(instructed(INSTRUCTORS, content))
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["turn", "turn", "loop", "question", "remark", "again"]))
        if kind != "again":
            messages.append({"role": "user", "content": draw(content)})
        if kind == "loop":
            messages.append({"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]})
            messages += [{"role": "tool", "content": "42", "tool_call_id": "1"}] * draw(st.integers(1, 2))
        if kind in ("turn", "again"):
            messages.append({"role": "assistant", "content": draw(TEXTS)})
        if kind == "remark":
            messages.append({"role": draw(INSTRUCTORS), "content": draw(content)})
    return {"model": "m", "messages": messages or [HELLO], "stream": draw(st.booleans())}


@st.composite
def responses_bodies(draw: st.DrawFn) -> Json:
    messages = draw(chat_bodies())["messages"]
    items: list[Json] = []
    for message in messages:
        if message["role"] == "tool":
            items.append({"type": "function_call_output", "call_id": "1", "output": "42"})
        elif message.get("tool_calls"):
            items.append({"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"})
        else:
            items.append(message)
    body: Json = {"model": "m", "input": draw(st.just(items) | st.text(max_size=5))}
    if draw(st.booleans()):
        body["instructions"] = draw(st.text(max_size=5) | st.none())
    return body


@st.composite
def messages_bodies(draw: st.DrawFn) -> Json:
    said: list[Json] = []
    for message in draw(chat_bodies())["messages"]:
        if message["role"] == "tool":
            result = {"type": "tool_result", "tool_use_id": "1", "content": "42"}
            if said[-1].get("content") and said[-1]["role"] == "user":
                said[-1]["content"].append(result)
            else:
                said.append({"role": "user", "content": [result]})
        elif message.get("tool_calls"):
            said.append({"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}]})
        else:
            said.append(message)
    body: Json = {"model": "m", "max_tokens": 9, "messages": said}
    if draw(st.booleans()):
        body["system"] = draw(contents("text"))
    return body


REQUESTS = {"chat": chat_bodies(), "responses": responses_bodies(), "messages": messages_bodies()}


@pytest.mark.parametrize("name", REQUESTS)
@settings(deadline=None, max_examples=examples(300))
@given(data=st.data())
def test_whatever_a_strict_server_accepted_it_accepts_with_the_notes(name: str, data: st.DataObject) -> None:
    """A family that knows no system role is served by models that are configured so, and gets role user."""
    body = json.loads(json.dumps(data.draw(REQUESTS[name])))
    before = chat_messages(PATHS[name], body)
    for family, accepts in FAMILIES.items():
        if not accepts(before):
            continue
        after = injected(name, body, "user" if family == "C" else "system")
        assert accepts(chat_messages(PATHS[name], after)), family
        assert json.dumps(after).count(json.dumps(NOTES)[1:-1]) == 1
        assert len(chat_messages(PATHS[name], after)) <= len(before) + 1


@pytest.mark.parametrize("name", REQUESTS)
@settings(deadline=None, max_examples=examples(200))
@given(data=st.data())
def test_no_server_is_given_a_second_system_message(name: str, data: st.DataObject) -> None:
    body = json.loads(json.dumps(data.draw(REQUESTS[name])))

    def systems(said: Json) -> int:
        return sum(message["role"] in ("system", "developer") for message in chat_messages(PATHS[name], said))

    assert systems(injected(name, body)) == max(1, systems(body))
    if any(message["role"] == "user" for message in chat_messages(PATHS[name], body)):
        assert systems(injected(name, body, "user")) == systems(body)
