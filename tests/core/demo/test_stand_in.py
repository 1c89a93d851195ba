"""The stand-in model: its answer is in its prompt, in whichever API it is asked."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from demo.answering import ACKNOWLEDGED, PERHAPS, TOLD, UNKNOWN, answer_to
from demo.model import StandIn
from semmem.memory import Hit, Memory, MemoryType
from semmem.retrieval.context import render

Json = dict[str, Any]


def block(*notes: str) -> str:
    """semmem's own block of these notes, as it stands in a prompt."""
    memories = [Memory(f"m{i}", 1, MemoryType.SEMANTIC, note, "alice") for i, note in enumerate(notes)]
    hits = [Hit(memory, 0.5, 0.5) for memory in memories]
    text, _, _ = render(hits, tokens_max=1000, mark=lambda _inside: "0" * 16)
    assert text is not None
    return text


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        (["What's my budget for the trip?"], UNKNOWN),
        (["My budget for the trip is 5"], ACKNOWLEDGED),
        (["My cat is old. My budget for the trip is 5.", "What's my budget?"], TOLD + "My budget for the trip is 5."),
        (
            ["- [semantic] budget: 5\n- [semantic] my cat is old", "How old is my cat?"],
            TOLD + "[semantic] my cat is old",
        ),
        (["I live in Lisbon.", "hello", "Tell me where I was living"], TOLD + "I live in Lisbon."),
        (["Oslo is cold.", "Where is my sister?"], UNKNOWN),
    ],
)
def test_it_answers_with_the_sentence_that_shares_most_words(prompt: list[str], answer: str) -> None:
    assert answer_to([{"role": "user", "content": text} for text in prompt]) == answer


NOTES = block("User's cat is called Miso", "User's budget for the Hawaii trip is $10,000")


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What's my budget for the trip?", TOLD + "User's budget for the Hawaii trip is $10,000"),
        ("what is the name of my cat", TOLD + "User's cat is called Miso"),
        ("How much money do I have?", PERHAPS + "User's cat is called Miso"),
        ("My dog is called Rex.", ACKNOWLEDGED),
    ],
)
@pytest.mark.parametrize("place", ["system", "before the question", "behind the question"])
def test_a_note_is_found_wherever_semmem_puts_it(place: str, question: str, answer: str) -> None:
    messages = {
        "system": [{"role": "system", "content": f"Be brief.\n\n{NOTES}"}, {"role": "user", "content": question}],
        "before the question": [{"role": "user", "content": f"{NOTES}\n\n{question}"}],
        "behind the question": [{"role": "user", "content": f"{question}\n\n{NOTES}"}],
    }

    assert answer_to(messages[place]) == answer


def test_what_the_model_itself_said_is_no_source() -> None:
    said = [{"role": "assistant", "content": "Your budget is 7."}, {"role": "user", "content": "What's my budget?"}]

    assert answer_to(said) == UNKNOWN


QUESTION = "How large is my budget?"
CHAT: Json = {
    "messages": [{"role": "user", "content": [{"type": "text", "text": NOTES}, {"type": "text", "text": QUESTION}]}]
}
MESSAGES: Json = {"system": NOTES, "messages": [{"role": "user", "content": QUESTION}]}
RESPONSES: Json = {"instructions": NOTES, "input": QUESTION}


@pytest.mark.parametrize(
    ("path", "body"), [("/v1/chat/completions", CHAT), ("/v1/messages", MESSAGES), ("/v1/responses", RESPONSES)]
)
@pytest.mark.parametrize("stream", [False, True])
async def test_every_api_answers_from_its_notes(path: str, body: Json, stream: bool) -> None:
    model = StandIn(token_delay_s=0)
    transport = httpx.ASGITransport(app=model.app())
    async with httpx.AsyncClient(transport=transport, base_url="http://model") as client:
        answer = await client.post(path, json={**body, "stream": stream})

    assert answer.status_code == 200
    assert "$10,000" in answer.text
    assert model.received[-1].answer == answer.content
