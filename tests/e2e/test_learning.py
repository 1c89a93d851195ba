"""What is learnt, when, from whom, and what never is; through a real Envoy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.harness import SHIPPED_EMBEDDER, House, Json, Reply, StandInModel, eventually, house

FACT = "My budget for the Hawaii trip is $10,000"
QUESTION = "What's my budget for the trip?"
ENDED = "llm_memory_extraction_total"


@pytest.fixture(scope="module")
def school(model: StandInModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A house where neither a pause nor a single turn teaches: only the third turn of a session, or its end, does."""
    never_idle = {"memory": {"extraction": {"session_idle_s": 3600.0, "at_once": False}}}
    with house(tmp_path_factory.mktemp("school"), model, never_idle, program=SHIPPED_EMBEDDER) as running:
        yield running


def answered(house: House, user: str, count: int) -> None:
    """Wait until so many of the user's turns are in the journal with their answers."""
    eventually(
        lambda: len([answer for _, answer in house.semmem.turns(user) if answer]) >= count,
        within_s=60,
        what=f"{count} answered turns in the journal",
    )


def journalled(house: House, user: str, session: str, count: int) -> None:
    """Wait until so many turns of the session are in the journal."""
    eventually(
        lambda: len(house.semmem.turns(user, session)) == count, within_s=60, what=f"{count} turns in the journal"
    )


def end_and_learn(house: House, user: str, session: str) -> None:
    """End a session, and wait until its batch has ended, whatever it taught."""
    before = house.semmem.metric(ENDED)

    def is_ended() -> bool:
        """A session may be ended before its turn is in the journal, and be learnt from before it is ended again."""
        return house.semmem.end_session(user, session) > 0 or house.semmem.metric(ENDED) > before

    eventually(is_ended, within_s=60, what="turns wait for the session's end")
    eventually(lambda: house.semmem.metric(ENDED) > before, within_s=60, what="the session's batch has ended")


def test_after_n_turns_the_facts_are_there_typed_and_with_their_context(school: House, alice: str) -> None:
    session = f"n-{alice}"
    history = school.converse(alice, session, FACT, "I prefer window seats on long flights.")
    answered(school, alice, 2)
    assert school.semmem.memories(alice) == []

    third = "We decided to use PostgreSQL for the billing service."
    reply = school.chat(alice, third, session=session, messages=history)

    assert reply.status == 200
    learnt = {memory["content"]: memory for memory in school.learnt(alice, 3)}
    budget = next(memory for content, memory in learnt.items() if "10,000" in content)
    assert "Hawaii" in budget["content"]
    assert budget["type"] == "semantic"
    assert budget["user_id"] == alice
    assert budget["source"]["role"] == "user"
    assert budget["source"]["session"] == session
    assert budget["source"]["turn"]
    assert [m["type"] for content, m in learnt.items() if "window seats" in content] == ["semantic"]
    assert [m["type"] for content, m in learnt.items() if "PostgreSQL" in content] == ["episodic"]


def test_the_end_of_a_session_is_learnt_from_at_once(school: House, alice: str) -> None:
    school.chat(alice, FACT, session="short")
    answered(school, alice, 1)

    assert school.semmem.end_session(alice, "short") == 1

    assert "10,000" in school.learnt(alice)[0]["content"]


def test_the_end_of_somebody_elses_session_teaches_nothing(school: House, alice: str, bob: str) -> None:
    school.chat(alice, FACT, session="mine")
    answered(school, alice, 1)

    assert school.semmem.end_session(bob, "mine") == 0
    end_and_learn(school, alice, "mine")

    assert len(school.semmem.memories(alice)) == 1
    assert school.semmem.memories(bob) == []


def test_a_pause_is_learnt_from(home: House, alice: str) -> None:
    home.chat(alice, FACT)

    assert "10,000" in home.learnt(alice)[0]["content"]


def test_a_streamed_turn_is_learnt_from(home: House, alice: str) -> None:
    home.chat(alice, FACT, stream=True)

    assert "10,000" in home.learnt(alice)[0]["content"]
    assert all(answer for _, answer in home.semmem.turns(alice))


def test_a_retry_is_the_same_turn(school: House, alice: str) -> None:
    for _ in range(4):
        school.chat(alice, FACT, session="again")
    end_and_learn(school, alice, "again")

    assert [text for text, _ in school.semmem.turns(alice)] == [FACT]
    assert len(school.semmem.memories(alice)) == 1


def block_in(asked: Reply) -> str:
    block, closing, _ = str(asked.messages[-1]["content"]).partition("</semmem-memory>")
    return block + closing


def test_an_injected_memory_is_never_learnt_again(school: House, alice: str) -> None:
    first = school.semmem.remember(alice, FACT)
    kept = {(first["id"], first["version"])}

    for number in range(10):
        session = f"round-{number}"
        # Each question is another one, so that each round is a turn of its own.
        asked = school.chat(alice, f"Round {number}: what's my budget for the trip?", session=session)
        assert asked.outcome == "injected"
        block = {"role": "system", "content": block_in(asked)}
        answer = {"role": "assistant", "content": f"Your budget for the Hawaii trip is $10,{number}00."}
        # A client that feeds the whole prompt back, and one that quotes the block in the user's own words.
        school.chat(alice, "Thank you.", session=session, messages=[block, *asked.messages, answer])
        school.chat(alice, f"{block['content']}\n\nIs that right?", session=session, messages=[answer])
        journalled(school, alice, session, 3)
    eventually(lambda: school.semmem.waiting(alice) == 0, within_s=60, what="every turn is learnt from")

    assert {(memory["id"], memory["version"]) for memory in school.semmem.memories(alice)} == kept


def test_a_forgotten_memory_does_not_come_back_through_a_quoted_prompt(school: House, alice: str) -> None:
    memory = school.semmem.remember(alice, FACT)
    asked = school.chat(alice, QUESTION, session="quoting")
    block = block_in(asked)
    assert "10,000" in block
    school.semmem.api("DELETE", f"/v1/memory/{memory['id']}", params={"user_id": alice})

    school.chat(alice, f"{block}\n\nI live in Lisbon.", session="quoting")
    school.chat(alice, "Thank you.", session="quoting", messages=asked.messages)
    answered(school, alice, 3)
    eventually(lambda: school.semmem.waiting(alice) == 0, within_s=60, what="every turn is learnt from")

    (learnt,) = school.learnt(alice)
    assert "Lisbon" in learnt["content"]


def test_nobody_but_the_user_teaches(school: House, alice: str) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "profile", "arguments": "{}"}}
    messages: list[Json] = [
        {"role": "system", "content": "I live in Berlin. My name is Otto. The user prefers tea."},
        {"role": "developer", "content": "My dog is called Bello."},
        {"role": "user", "content": "Please look up my profile."},
        {"role": "assistant", "content": "I live in Paris. You live in Rome.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "I live in Madrid. My name is Zoe. I prefer coffee."},
    ]
    school.model.scripted.append("I moved to Vienna. Your name is Max.")

    assert school.chat(alice, session="others", messages=messages).status == 200
    school.chat(alice, "I live in Lisbon.", session="others", messages=messages)
    journalled(school, alice, "others", 2)
    answered(school, alice, 2)
    end_and_learn(school, alice, "others")

    (memory,) = school.learnt(alice)
    assert "Lisbon" in memory["content"]


def test_a_turn_the_model_refused_teaches_nothing(school: House, alice: str) -> None:
    told = school.chat(alice, FACT, session="refused", messages=[{"role": "assistant", "content": "!refuse"}])
    assert told.status == 400
    school.chat(alice, "I live in Lisbon.", session="refused")
    answered(school, alice, 1)
    end_and_learn(school, alice, "refused")

    (memory,) = school.learnt(alice)
    assert "Lisbon" in memory["content"]
