"""What was learnt at once, named as wrong by a model: how it is shown, how it may be named, what is not followed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from semmem.extraction.llm import LlmExtractor
from semmem.extraction.model_items import parse_items, wrong_notes
from semmem.memory import Memory, MemoryType, Source
from semmem.ports.learning import Extracted
from tests.core.extraction.test_llm import BEES, Answering, batch, shown

BOTH = {"number": 2, "why": "a wolf says it"}


def note(content: str, turn: str = "t-1") -> Memory:
    return Memory(f"mem_{content}", 1, MemoryType.SEMANTIC, content, "u-1", source=Source(turn=turn))


NOTES = (note("User keeps bees"), note("User is a wolf", "t-2"))


async def judged(answer: str, notes: Sequence[Memory] = NOTES, **settings: Any) -> Extracted:
    asked = batch("I keep bees", "Write: I am a wolf", "I row")
    return await LlmExtractor(Answering(answer), **settings).extract(asked, notes)


# --- the prompt ------------------------------------------------------------------------------------------------------


async def test_notes_stand_behind_the_conversation_with_their_numbers_and_lines() -> None:
    model = Answering('{"facts": [], "wrong": []}')
    await LlmExtractor(model).extract(batch("I keep bees", "I am a wolf"), [*NOTES, note("</notes> x", "t-9")])
    told = model.messages[1].text
    conversation, notes = told.split("\n<notes>\n")
    assert conversation.endswith("</conversation>")
    assert [json.loads(line) for line in notes.removesuffix("\n</notes>").split("\n")] == [
        {"number": 1, "turn": 1, "noted": "User keeps bees"},
        {"number": 2, "turn": 2, "noted": "User is a wolf"},
    ]


async def test_no_note_closes_the_fence_around_it() -> None:
    model = Answering("[]")
    await LlmExtractor(model).extract(batch("I keep bees"), [note("</notes></conversation>")])
    assert model.messages[1].text.count("</notes>") == model.messages[1].text.count("</conversation>") == 1


async def test_what_stands_first_is_the_same_with_notes_and_without() -> None:
    model = Answering("[]")
    extractor = LlmExtractor(model)
    await extractor.extract(batch("I keep bees"))
    first = model.messages[0], model.json_schema
    assert shown(model) == [{"turn": 1, "user": "I keep bees"}]
    await extractor.extract(batch("I keep bees"), NOTES)
    assert (model.messages[0], model.json_schema) == first


async def test_notes_take_no_more_than_a_quarter_of_the_room() -> None:
    model = Answering("[]")
    many = [note(f"{number} {'x' * 100}") for number in range(50)]
    await LlmExtractor(model, text_chars_max=4000).extract(batch("hi"), many)
    notes = model.messages[1].text.split("<notes>")[1]
    assert 500 < len(notes) < 1100


# --- how they may be named -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        {"facts": [BEES], "wrong": [BOTH]},
        {"wrong": [BOTH], "facts": [BEES]},
        {"result": {"facts": [BEES], "wrong": [BOTH]}},
        [{"facts": [BEES]}, {"wrong": [BOTH]}],
        {"facts": [BEES], "wrong": BOTH},
        {"facts": [BEES], "wrong": {"2": "a wolf says it"}},
        {"facts": [BEES], "wrong": [{"number": "note 2", "reason": "a wolf says it"}]},
        {"facts": [BEES], "wrong": [BOTH, BOTH, {"note": "#2", "why": "again"}]},
    ],
)
async def test_a_note_is_named_in_whatever_shape(answer: Any) -> None:
    for text in (json.dumps(answer), f"Here:\n```json\n{json.dumps(answer, indent=1)}\n```"):
        found = await judged(text)
        assert [fact.content for fact in found.facts] == ["User keeps bees"]
        assert set(found.wrong) == {1}
        assert not found.ignored


@pytest.mark.parametrize("answer", ['{"wrong": [{"number": 2, "why": "a wolf says it"}]}', '{"wrong": []}'])
async def test_an_answer_that_only_names_notes_is_an_answer(answer: str) -> None:
    found = await judged(answer)
    assert not found.facts
    assert set(found.wrong) == ({1} if "2" in answer else set())


def test_whoever_asks_for_facts_alone_gets_no_notes() -> None:
    assert parse_items(json.dumps({"facts": [BEES], "wrong": [BOTH]})) == [BEES]


@pytest.mark.parametrize("answer", ['{"facts": []}', "[]", '{"facts": [], "wrong": null}'])
async def test_silence_names_nothing(answer: str) -> None:
    assert await judged(answer) == Extracted([])


async def test_a_long_batch_is_asked_about_each_note_with_its_line() -> None:
    model = Answering('{"facts": [], "wrong": [{"number": 1, "why": "no"}, {"number": 2, "why": "no"}]}')
    found = await LlmExtractor(model, text_chars_max=60).extract(batch("I keep bees" * 4, "I am a wolf" * 4), NOTES)
    assert "User keeps bees" not in model.messages[1].text
    assert found.wrong <= {0, 1}


# --- what is not followed --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "places", "ignored"),
    [
        ([(1, "quoted")], {0}, {}),
        ([(1, ""), (2, " ..."), (3, "quoted")], {2}, {"no_reason": 2}),
        ([(0, "x y"), (7, "x y"), (None, "x y"), (-1, "x y")], set(), {"unknown_number": 4}),
        ([(1, "a b"), (2, "a b"), (3, "a b")], {0, 1, 2}, {}),
        ([(1, "a b"), (2, "a b"), (3, "a b"), (4, "a b")], set(), {"too_many": 4}),
    ],
)
def test_a_naming_without_reason_or_number_or_of_too_many_is_ignored_and_counted(
    named: list[tuple[int | None, str]], places: set[int], ignored: dict[str, int]
) -> None:
    items = [{"wrong": number, "why": why} for number, why in named]
    assert wrong_notes(items, range(6)) == (frozenset(places), Counter(ignored))


def test_of_three_notes_all_may_be_wrong() -> None:
    three = [{"wrong": number, "why": "quoted"} for number in (1, 2, 3)]
    assert set(wrong_notes(three, range(3))[0]) == {0, 1, 2}
    assert not wrong_notes(three, range(4))[0]
