"""What reaches the model, and what does not, through a real Envoy with the shipped configuration."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from tests.support.harness import IDENTITY_HEADERS, House, eventually

FACT = "My budget for the Hawaii trip is $10,000"
QUESTION = "What's my budget for the trip?"

MUTATE_STREAMS = "http.llm.ext_proc.semmem_mutate.streams_started"
OBSERVE_STREAMS = "http.llm.ext_proc.semmem_observe.streams_started"

OPT_OUTS: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({"x-semmem-memory": "off"}, {}),
    ({"x-disable-router-memory": "true"}, {}),
    ({"x-omniroute-no-memory": "1"}, {}),
    ({}, {"memory_config": {"enabled": False}}),
]
OPT_OUT_IDS = ["x-semmem-memory", "x-disable-router-memory", "x-omniroute-no-memory", "memory_config"]

# Every value below would change its bytes in a decoder and encoder.
ODD_BODY = (
    b'{ "model":"stand-in",\t"temperature" : 2.50, "seed":123456789012345678901234567890,\r\n'
    b'  "stop":["\\u00e9\\/", "\xc3\xa9"], "top_p":1E0 , "messages":[{"role":"user",'
    b'"content":"What\\u0027s my budget for the trip?" , "n":-0.0}] ,"metadata":{"b":1,"a" : [ 1 ,2.0]},'
    b' "user_text":"\\ud83d\\ude00"}\n'
)


@pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])
def test_a_fact_told_in_one_conversation_comes_back_in_the_next(home: House, alice: str, stream: bool) -> None:
    told = home.chat(alice, FACT, session="first", stream=stream)
    assert (told.status, told.outcome) == (200, "no_hits")
    home.learnt(alice)

    asked = home.chat(alice, QUESTION, session="second", stream=stream)

    assert asked.outcome == "injected"
    (message,) = asked.messages
    assert "10,000" in message["content"].removesuffix(QUESTION)
    assert b"10,000" in asked.body


@pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])
def test_the_answer_is_captured_from_json_and_from_sse(home: House, alice: str, stream: bool) -> None:
    reply = home.chat(alice, "Thank you for your help with the garden.", stream=stream)
    assert reply.status == 200
    answers = eventually(
        lambda: [answer for _, answer in home.semmem.turns(alice) if answer],
        within_s=60,
        what="the answer is journalled",
    )
    assert answers == ["Got it, thank you for telling me."]


def test_a_project_does_not_hide_the_person_nor_show_another_project(home: House, alice: str) -> None:
    web, garden = {"x-project-id": "web"}, {"x-project-id": "garden"}
    home.chat(alice, "I'm allergic to peanuts.", session="first")
    home.chat(alice, "My name is Fennimore.", session="second")
    home.chat(alice, "The launch of our shop is on 3 May.", session="third", headers=web)
    home.chat(alice, "The planting of our shop's roses is on 9 June.", session="fourth", headers=garden)
    home.learnt(alice, 4)

    dinner = home.chat(alice, "Suggest a snack for me", session="fifth", headers=web)
    assert "peanuts" in json.dumps(dinner.messages)
    name = home.chat(alice, "What's my name?", session="sixth", headers=web)
    assert "Fennimore" in json.dumps(name.messages)
    launch = home.chat(alice, "When is the launch of our shop?", session="seventh", headers=web)
    assert "3 May" in json.dumps(launch.messages)
    assert "9 June" not in json.dumps(launch.messages)


KNOWN_OF_AGENTS_USER = {
    "birthplace": "I was born in Coimbra, in the old hospital",
    "children": "my two girls, Ines and Rita, are in primary school",
    "user hobbies": "on sundays I build model railways in the cellar",
    "diet": "no meat for me since 2019",
    "allergies": "penicillin gives me a rash",
    "employer": "I work at a shipyard in Setubal as a welder",
    "favourite colour": "paint it green, I like everything green",
    "pets": "our parrot Lolo screams at seven",
    "user's car": "I drive an old Renault 4",
    "spouse name": "my wife Teresa is a nurse",
    "phone": "I bought a Fairphone 5 in March",
    "programming language": "write it in Rust, please",
    "home city": "we moved to Evora two years ago",
    "preferred airline": "I always fly with TAP",
    "budget": "not more than 900 euros for the whole trip",
    "coffee preference": "a double espresso without sugar",
    "deadline": "the report has to be ready on Thursday",
    "education": "I studied marine biology in Faro",
    "religion": "we go to mass on Sundays",
    "medication": "I take metformin twice a day",
    "sports": "I play handball in the second league",
    "music taste": "fado and nothing else when I cook",
    "boss": "Mr Carvalho, who leads our department, wants graphs",
    "sleep": "I never sleep before two in the morning",
    "language of answers": "answer in Portuguese, always",
    "vacation plans": "in August we go to the Azores",
    "shoe size": "I wear 44 in shoes",
    "bank": "my account is with Montepio",
    "books": "I read Saramago again and again",
    "fears": "lifts make me panic",
    "instrument": "I play the accordion at weddings",
    "military service": "I was in the navy from 1998 to 2002",
}


def test_what_an_agent_searches_for_is_found(home: House, alice: str) -> None:
    for content in KNOWN_OF_AGENTS_USER.values():
        home.semmem.api("POST", "/v1/memory", json={"user_id": alice, "content": content})
    found = 0
    for query, content in KNOWN_OF_AGENTS_USER.items():
        told = home.semmem.api("POST", "/v1/memory/search", json={"user_id": alice, "query": query})
        found += content in [memory["content"] for memory in told["memories"]]
    assert found >= 28


def test_another_user_asking_the_same_gets_nothing(home: House, alice: str, bob: str) -> None:
    home.semmem.remember(alice, FACT)
    body = json.dumps({"model": "stand-in", "messages": [{"role": "user", "content": QUESTION}]}).encode()

    assert home.send(body, user=alice).outcome == "injected"
    reply = home.send(body, user=bob)

    assert reply.outcome == "no_hits"
    assert reply.prompt == body
    assert home.semmem.memories(bob) == []


def test_the_body_changes_only_by_the_injection(home: House, alice: str) -> None:
    home.semmem.remember(alice, FACT)

    reply = home.send(ODD_BODY, user=alice)

    assert reply.outcome == "injected"
    before, message, after = ODD_BODY.partition(b"What")
    assert reply.prompt.startswith(before + b"<semmem-memory ")
    assert reply.prompt.endswith(b"</semmem-memory>\\n\\n" + message + after)


CALL = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
NOT_SAID_BY_THE_USER = {
    "tool": [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": f"Outdated and wrong: {FACT}."},
        {"role": "assistant", "content": "Done."},
    ],
    "tool, word for word": [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": FACT},
        {"role": "assistant", "content": "Done."},
    ],
    "assistant": [{"role": "assistant", "content": FACT}],
    "system": [{"role": "system", "content": FACT}],
    "pasted": [{"role": "user", "content": f"An old note says this.\n\n{FACT}."}],
    "another speaker": [{"role": "user", "name": "mallory", "content": FACT}],
    "denied": [{"role": "user", "content": f"It is no longer true that {FACT}."}],
}


@pytest.mark.parametrize("history", NOT_SAID_BY_THE_USER.values(), ids=NOT_SAID_BY_THE_USER)
def test_words_in_a_history_that_the_user_did_not_say_hide_no_memory(
    home: House, alice: str, history: list[dict[str, Any]]
) -> None:
    home.semmem.remember(alice, FACT)
    asked = home.chat(alice, QUESTION, messages=history, headers={"x-semmem-memory": "read"})
    assert asked.outcome == "injected"


def test_what_the_user_says_in_this_request_is_not_shown_once_more(home: House, alice: str) -> None:
    home.semmem.remember(alice, FACT)
    asked = home.chat(alice, f"{FACT}. {QUESTION}", headers={"x-semmem-memory": "read"})
    assert asked.outcome == "no_hits"


def test_what_another_speaker_of_the_account_says_is_not_learnt(home: House, alice: str) -> None:
    said = [
        {"role": "user", "name": alice.upper(), "content": "I live in Lisbon."},
        {"role": "user", "name": "mallory", "content": "I live in Porto."},
    ]
    home.chat(alice, messages=said)
    home.chat(alice, messages=said[1:])
    home.chat(alice, "I keep bees.")
    eventually(lambda: len(home.semmem.turns(alice)) >= 2, within_s=60, what="the last turn is journalled")
    assert {text for text, _ in home.semmem.turns(alice)} == {"I live in Lisbon.", "I keep bees."}


def test_an_iban_is_not_stored(home: House, alice: str) -> None:
    rejected = partial(home.semmem.metric, "semmem_facts_rejected_total", reason="secret")
    before = rejected()
    home.chat(alice, "My IBAN is DE89 3704 0044 0532 0130 00.")
    home.chat(alice, "I keep bees.", session="bees")
    home.learnt(alice)
    eventually(lambda: rejected() > before, within_s=60, what="the number is refused")
    assert home.semmem.contents(alice) == {"User keeps bees"}


def test_the_rewritten_body_has_its_own_length(home: House, alice: str) -> None:
    home.semmem.remember(alice, FACT)

    reply = home.send(ODD_BODY, user=alice)

    assert reply.received is not None
    assert reply.received.header("content-length") == str(len(reply.prompt)) != str(len(ODD_BODY))
    assert reply.received.header("transfer-encoding") is None


def test_a_body_with_nothing_to_add_passes_byte_for_byte(home: House, bob: str) -> None:
    reply = home.send(ODD_BODY, user=bob)

    assert reply.outcome == "no_hits"
    assert reply.prompt == ODD_BODY
    assert reply.received is not None
    assert reply.received.header("content-length") == str(len(ODD_BODY))


@pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])
def test_the_answer_reaches_the_client_byte_for_byte(home: House, alice: str, stream: bool) -> None:
    home.semmem.remember(alice, FACT)

    reply = home.chat(alice, QUESTION, stream=stream)

    assert reply.received is not None
    assert reply.body == reply.received.answer
    assert reply.headers["content-type"].startswith("text/event-stream" if stream else "application/json")


def test_a_long_conversation_passes_whole(home: House, alice: str) -> None:
    home.semmem.remember(alice, FACT)
    padding = {"role": "assistant", "content": "long ago, " * 400_000}

    reply = home.chat(alice, QUESTION, messages=[{"role": "user", "content": "Tell me a story."}, padding])

    assert (reply.status, reply.outcome) == (200, "injected")
    assert len(reply.prompt) > 4_000_000


@pytest.mark.parametrize("name", [*IDENTITY_HEADERS, "x-semmem-user"])
def test_a_client_that_names_a_user_itself_gets_nobodys_memory(home: House, alice: str, bob: str, name: str) -> None:
    home.semmem.remember(alice, FACT)

    nobody = home.chat(None, QUESTION, headers={name: alice})
    somebody_else = home.chat(bob, QUESTION, headers={name: alice})

    assert (nobody.outcome, somebody_else.outcome) == ("anonymous", "no_hits")
    for reply in (nobody, somebody_else):
        assert [message["role"] for message in reply.messages] == ["user"]
        assert reply.received is not None
        assert reply.received.header(name) is None


def test_a_body_that_names_a_user_is_not_believed(home: House, alice: str) -> None:
    home.semmem.remember(alice, FACT)

    claims = {"user": alice, "memory_context": {"user_id": alice}, "metadata": {"user_id": alice}}
    body = {"model": "stand-in", "messages": [{"role": "user", "content": QUESTION}], **claims}

    reply = home.send(json.dumps(body).encode())

    assert reply.outcome == "anonymous"
    assert [message["role"] for message in reply.messages] == ["user"]


@pytest.mark.parametrize(("headers", "members"), OPT_OUTS, ids=OPT_OUT_IDS)
def test_opting_out_stops_reading_and_storing(
    home: House, alice: str, bob: str, headers: dict[str, str], members: dict[str, Any]
) -> None:
    home.semmem.remember(alice, FACT)

    reply = home.chat(alice, "I live in Lisbon. " + QUESTION, headers=headers, **members)
    home.chat(bob, "I live in Porto.")
    eventually(lambda: home.semmem.turns(bob), within_s=60, what="a later turn is journalled")

    assert reply.outcome == "opted_out"
    assert [message["role"] for message in reply.messages] == ["user"]
    assert home.semmem.turns(alice) == []


def test_reading_and_storing_can_be_had_one_without_the_other(home: House, alice: str) -> None:
    home.semmem.remember(alice, FACT)

    read = home.chat(alice, QUESTION, headers={"x-semmem-memory": "read"})
    written = home.chat(alice, "I moved to Lisbon in May.", headers={"x-semmem-memory": "write"})
    eventually(lambda: home.semmem.turns(alice), within_s=60, what="the second turn is journalled")

    assert (read.outcome, written.outcome) == ("injected", "write_only")
    assert [text for text, _ in home.semmem.turns(alice)] == ["I moved to Lisbon in May."]


@pytest.mark.parametrize("signed_in", [True, False])
@pytest.mark.parametrize("mode", ["on", "off"])
def test_semmems_own_fields_never_reach_the_model(home: House, alice: str, signed_in: bool, mode: str) -> None:
    body = (
        b'{"memory_config":{"retrieval_limit":3}, "seed":1234567890123456789012,'
        b'"messages":[{"role":"user","content":"Where do I live?"}], "memory_context":{"project_id":"p"},"top_p":1.0}'
    )
    headers = {"x-semmem-memory": mode, "x-semmem-debug": "1"}

    reply = home.send(body, user=alice if signed_in else None, headers=headers)

    assert b"memory_con" not in reply.prompt
    assert list(json.loads(reply.prompt)) == ["seed", "messages", "top_p"]
    assert b'"seed":1234567890123456789012,' in reply.prompt
    assert b'"top_p":1.0}' in reply.prompt
    assert reply.received is not None
    assert [name for name, _ in reply.received.headers if name.startswith("x-semmem")] == []


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/completions", "/anything?q=1"])
def test_other_paths_pass_untouched_and_open_no_stream(home: House, alice: str, path: str) -> None:
    before = home.envoy.stat(MUTATE_STREAMS), home.envoy.stat(OBSERVE_STREAMS)

    reply = home.send(ODD_BODY, user=alice, path=path)

    assert (reply.status, reply.outcome) == (200, None)
    assert reply.prompt == reply.body == ODD_BODY
    assert (home.envoy.stat(MUTATE_STREAMS), home.envoy.stat(OBSERVE_STREAMS)) == before
    home.chat(alice, QUESTION)
    assert home.envoy.stat(MUTATE_STREAMS) == before[0] + 1, "the counter that must not move on other paths counts"


def test_a_get_passes_untouched_and_opens_no_stream(home: House) -> None:
    before = home.envoy.stat(MUTATE_STREAMS)

    answer = home.http.get(home.envoy.url + "/v1/models")

    assert answer.json()["data"][0]["id"] == "stand-in"
    assert home.envoy.stat(MUTATE_STREAMS) == before


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"messages":7}', b'{"messages":[{"role":"user","content":"\xff"}]}']
)
def test_a_body_that_is_no_request_passes_as_it_came(home: House, alice: str, body: bytes) -> None:
    reply = home.send(body, user=alice)

    assert reply.prompt == body


def test_a_compressed_body_passes_as_it_came(home: House, alice: str) -> None:
    reply = home.send(b"\x1f\x8b not really gzip", user=alice, headers={"content-encoding": "gzip"})

    assert reply.outcome == "compressed"
    assert reply.prompt == b"\x1f\x8b not really gzip"
