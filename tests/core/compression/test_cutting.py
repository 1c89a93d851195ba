"""Where a history may be parted, and what the body is then, in every dialect."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semmem.compression.cutting import (
    cut,
    digest_of,
    gone_of,
    kept_of,
    may_part,
    replaceable,
    start_behind,
    users_before,
)
from semmem.dialects import DIALECTS
from semmem.memory import Element, Injection, Replacement, Role
from tests.core.compression.histories import (
    APIS,
    HISTORIES,
    Api,
    Json,
    Spoken,
    names_of_calls,
    names_of_results,
)
from tests.support.examples import examples

STATE = "the state so far"
LONG = [Spoken(f"Number {n}?", rounds=(2,) if n % 3 == 0 else (), answer=f"It is {n}.") for n in range(9)]


def elements(api: Api, body: bytes) -> Sequence[Element]:
    return DIALECTS[api.path].parse(body).elements()


def compressed(api: Api, body: bytes, kept: int, injection: Injection | None = None) -> bytes | None:
    parsed = DIALECTS[api.path].parse(body)
    found = parsed.elements()
    start = cut(found, turns_kept=kept)
    return (
        None
        if start is None
        else parsed.rewrite(
            *(() if injection is None else (injection,)), replacement=Replacement(replaceable(found, start), STATE)
        )
    )


def is_instruction(element: Json) -> bool:
    return element.get("role") in ("system", "developer")


def speaks(element: Json) -> bool:
    """Whether an element has words of the user's own."""
    content = element.get("content")
    texts = [content] if isinstance(content, str) else [part.get("text", "") for part in content or ()]
    return element.get("role") == "user" and any(texts)


def spelled(body: bytes, member: str) -> list[bytes]:
    """The bytes of every element, as Python spells them when it is asked to (which is how they were made)."""
    return [json.dumps(each).encode() for each in json.loads(body)[member]]


@pytest.mark.parametrize("api", APIS.values(), ids=APIS)
@settings(max_examples=examples(150), deadline=None)
@given(turns=HISTORIES, kept=st.integers(1, 4), position=st.sampled_from([None, "system", "first", "before_last_user"]))
def test_nothing_that_belongs_together_is_parted_and_what_is_kept_keeps_its_bytes(
    api: Api, turns: list[Spoken], kept: int, position: str | None
) -> None:
    body = api.encoded(turns)
    before: list[Json] = json.loads(body)[api.member]
    injection = None if position is None else Injection("facts", position=position)
    after_bytes = compressed(api, body, kept, None)
    if after_bytes is None:
        return
    whole = json.loads(after_bytes)
    after: list[Json] = whole[api.member]
    assert {name: value for name, value in whole.items() if name != api.member} == {
        name: value for name, value in json.loads(body).items() if name != api.member
    }
    told = {"role": "user", "content": STATE}
    at = after.index(told)
    rest = [element for element in after if element != told]
    tail = [element for element in after[at + 1 :] if not is_instruction(element)]
    # every instruction stays, in its order, and so does the whole end of the conversation
    assert [e for e in rest if is_instruction(e)] == [e for e in before if is_instruction(e)]
    spoken_before = [e for e in before if not is_instruction(e)]
    assert tail == spoken_before[len(spoken_before) - len(tail) :]
    assert len(tail) < len(spoken_before)
    assert all(
        each in spelled(body, api.member)
        for each in spelled(after_bytes, api.member)
        if each != json.dumps(told).encode()
    )
    assert all(json.dumps(element).encode() in after_bytes for element in rest)
    # a result has its call, an answer stands before the user's next words
    made = set().union(*map(names_of_calls, after))
    assert set().union(*map(names_of_results, after)) <= made
    assert sum(map(speaks, tail)) >= kept
    answer, *_ = (element for element in tail if element.get("type") != "reasoning")
    assert answer["role"] == "assistant"
    # with memories as well
    both = compressed(api, body, kept, injection)
    assert both is not None
    assert STATE in json.dumps(json.loads(both))
    assert injection is None or b"facts" in both


@pytest.mark.parametrize("api", APIS.values(), ids=APIS)
@settings(max_examples=examples(60), deadline=None)
@given(turns=HISTORIES, kept=st.integers(1, 4))
def test_the_same_beginning_is_known_again_when_the_conversation_goes_on(
    api: Api, turns: list[Spoken], kept: int
) -> None:
    found = elements(api, api.encoded(turns))
    start = cut(found, turns_kept=kept)
    if start is None:
        return
    places = replaceable(found, start)
    later = elements(api, api.encoded([*turns, Spoken("And then?")]))
    assert start_behind(later, len(places)) == start
    assert digest_of(later, replaceable(later, start)) == digest_of(found, places)
    assert may_part(later, start, turns_kept=kept)


@pytest.mark.parametrize("api", APIS.values(), ids=APIS)
def test_as_many_turns_stay_as_are_asked_for(api: Api) -> None:
    after = json.loads(compressed(api, api.encoded(LONG), 5) or b"{}")[api.member]
    assert [e["content"] for e in after if speaks(e)] == [STATE, *(f"Number {n}?" for n in range(4, 9))]


@pytest.mark.parametrize("api", APIS.values(), ids=APIS)
def test_a_compressed_request_is_not_compressed_again(api: Api) -> None:
    found = elements(api, api.encoded(LONG))
    places = replaceable(found, cut(found, turns_kept=5) or 0)
    again = elements(api, compressed(api, api.encoded(LONG), 5) or b"")
    start = start_behind(again, len(places))
    assert start is None or digest_of(again, replaceable(again, start)) != digest_of(found, places)


@pytest.mark.parametrize("api", APIS.values(), ids=APIS)
@pytest.mark.parametrize("kept", [9, 10])
def test_a_conversation_of_no_more_turns_than_stay_is_left_alone(api: Api, kept: int) -> None:
    assert compressed(api, api.encoded(LONG), kept) is None


def test_a_tool_loop_that_goes_on_stays_whole() -> None:
    """The calls of the last turn wait for results; whatever is cut, they stay together."""
    running = [*LONG, Spoken("Look it up", rounds=(2, 3), answer=None)]
    for api in APIS.values():
        after = json.loads(compressed(api, api.encoded(running), 1) or b"{}")[api.member]
        before = json.loads(api.encoded(running))[api.member]
        asked = next(place for place, e in enumerate(before) if e.get("content") == "Look it up")
        assert after[-len(before[asked:]) :] == before[asked:]


def test_a_call_by_a_name_that_is_used_again_belongs_to_the_nearest_result() -> None:
    """Some servers call every call call_0."""
    body = chat_body(*(r for n in range(4) for r in round_of("call_0", n)))
    found = elements(APIS["chat"], body)
    assert cut(found, turns_kept=2) is not None
    lost = chat_body(
        *round_of("a", 0), *round_of("b", 1), user(2), {"role": "tool", "tool_call_id": "a", "content": ""}
    )
    assert cut(elements(APIS["chat"], lost), turns_kept=1) == 1, "all from the call on stays, far as its result is"


@pytest.mark.parametrize("call_id", [None, 7, ""])
def test_a_result_that_does_not_say_whose_belongs_to_the_calls_before_it(call_id: Any) -> None:
    nameless = [{**each, **({"tool_call_id": call_id} if each["role"] == "tool" else {})} for each in round_of("a", 1)]
    body = chat_body(*round_of("b", 0), *nameless, *round_of("c", 2))
    after = json.loads(compressed(APIS["chat"], body, 2) or b"{}")["messages"]
    assert after[0]["content"] == STATE
    assert after[1:] == json.loads(body)["messages"][3:]


def test_marks_for_a_cache_and_another_spelling_make_no_other_history() -> None:
    one = b'{"messages":[{"role":"user","content":[{"type":"text","text":"Hi \\u00e9"}]}]}'
    other = (
        '{"messages": [ {"content": [{"text": "Hi é", "type": "text", "cache_control": {"type": "ephemeral"}}],'
        ' "role": "user"} ]}'
    ).encode()
    changed = one.replace(b"Hi", b"Ho")
    digests = [elements(APIS["messages"], body)[0].digest for body in (one, other, changed)]
    assert digests[0] == digests[1] != digests[2]


def test_what_is_no_text_counts_as_well() -> None:
    """An image that was changed is another history."""
    body = APIS["chat"].encoded([Spoken("Look", image=True)])
    assert (
        elements(APIS["chat"], body)[0].digest
        != elements(APIS["chat"], body.replace(b"aGVsbG8=", b"aGVsbG9="))[0].digest
    )


def test_history_that_the_api_keeps_itself_is_left_alone() -> None:
    body = json.loads(APIS["responses"].encoded(LONG))
    for member in ({"previous_response_id": "resp_1"}, {"conversation": "conv_1"}, {"conversation": {"id": "c"}}):
        assert elements(APIS["responses"], json.dumps({**body, **member}).encode()) == ()
    assert elements(APIS["responses"], b'{"input": "Hello"}') == () == elements(APIS["responses"], b'{"model": "m"}')


@pytest.mark.parametrize("api", APIS.values(), ids=APIS)
def test_what_is_left_of_a_conversation_is_what_is_sent(api: Api) -> None:
    """Memories are found for what the model sees; what the state stands for is not said in the request any more."""
    parsed = DIALECTS[api.path].parse(api.encoded(LONG))
    found = parsed.elements()
    start = cut(found, turns_kept=5) or 0
    left = kept_of(parsed.conversation, gone_of(parsed.conversation, found, replaceable(found, start)))
    sent = DIALECTS[api.path].parse(compressed(api, api.encoded(LONG), 5) or b"").conversation.messages
    assert [m.text for m in left.messages] == [m.text for m in sent if m.text != STATE]
    assert users_before(parsed.conversation, found, start) == 4
    assert sum(m.role is Role.USER for m in left.messages) == 5


def user(number: int) -> Json:
    return {"role": "user", "content": f"Number {number}?"}


def round_of(call: str, number: int) -> list[Json]:
    made = [{"id": call, "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    return [
        user(number),
        {"role": "assistant", "content": None, "tool_calls": made},
        {"role": "tool", "tool_call_id": call, "content": "r"},
        {"role": "assistant", "content": f"It is {number}."},
    ]


def chat_body(*messages: Json) -> bytes:
    return json.dumps({"messages": messages}).encode()
