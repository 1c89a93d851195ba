"""How language models answer, large ones and small ones: whatever the style, the same facts and no other."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from semmem.extraction.answers import DEPTH_MAX, read_answer
from semmem.extraction.llm import PROMPT_EXAMPLES, LlmExtractor
from semmem.extraction.model_items import Facts, parse_items, read_items
from semmem.extraction.screen import Ruling, screen
from semmem.memory import Fact, MemoryType, Message, Scope, Standing, Turn
from semmem.ports.errors import ModelRefused, ModelUnavailable, SemmemError
from semmem.ports.learning import Batch
from tests.support.cpu_time import within_cpu_s

SCOPE = Scope("u-1", session="s-1")
NOW = 1_795_305_600.0  # Sunday 22 November 2026


def said(number: int, text: str, answer: str | None = None) -> Turn:
    return Turn(f"t-{number}", SCOPE, number, text, opened_at=NOW + number, answer=answer)


TURNS = (
    said(1, "Hi, I'm Priya. I'm allergic to peanuts, so what could I bring to a picnic?", "Sure, Priya! Popcorn."),
    said(2, "I walk to work, and my sister Mia lives in Oslo."),
    said(3, "To brew coffee I grind the beans and then wait four minutes."),
)

NUTS, WALKS, MIA = "User is allergic to peanuts", "User walks to work", "User's sister Mia lives in Oslo"
BREWS = "To brew coffee, user grinds the beans and then waits four minutes"
S, P = MemoryType.SEMANTIC, MemoryType.PROCEDURAL
ALL = [("t-1", S, NUTS), ("t-2", S, WALKS), ("t-2", S, MIA), ("t-3", P, BREWS)]


def item(turn: int, content: str, kind: str = "semantic", **more: object) -> dict[str, object]:
    return {"turn": turn, "type": kind, "content": content, **more}


FULL = [item(1, NUTS), item(2, WALKS), item(2, MIA), item(3, BREWS, "procedural")]

STYLES: dict[str, str] = {
    "as asked": json.dumps({"facts": FULL}),
    "bare array": json.dumps(FULL),
    "pretty, fenced, talking": f"Here you go!\n```json\n{json.dumps({'facts': FULL}, indent=2)}\n```\nAnything else?",
    "thoughts first": f"<think>Priya... {{no}} [maybe] {json.dumps(FULL[:1])}</think>{json.dumps({'facts': FULL})}",
    "thoughts begun by the template": f'So [{json.dumps(FULL[0])}]? "Yes".\n</think>\n\n{json.dumps({"facts": FULL})}',
    "one object a line": "\n".join(json.dumps(one) for one in FULL),
    "trailing commas": json.dumps({"facts": FULL}, indent=1).replace("}\n", "},\n"),
    "no commas between": json.dumps({"facts": FULL}, indent=1).replace("},", "}"),
    "python": str({"facts": FULL}),
    "names without quotes": re.sub(r'"(\w+)":', r"\1:", json.dumps({"facts": FULL})),
    "typographic quotes": "{“facts”: [" + json.dumps(FULL)[1:-1].replace(' "', " “").replace('{"', "{“") + "]}",
    "remarks in it": json.dumps({"facts": FULL}, indent=1).replace("{\n", "{ // one object\n"),
    "grouped by type": json.dumps({"semantic": [NUTS, WALKS, MIA], "procedural": [BREWS], "episodic": []}),
    "grouped by line": json.dumps(
        {"turn_1": [NUTS], "turn_2": [WALKS, MIA], "turn_3": [item(3, BREWS, "procedural")]},
    ),
    "grouped in objects": json.dumps(
        {
            "facts": [
                {"turn": 1, "facts": [{"content": NUTS}]},
                {"turn": 2, "facts": [{"content": WALKS}, {"content": MIA}]},
                {"turn": 3, "type": "procedural", "facts": [{"content": BREWS}]},
            ]
        }
    ),
    "wrapped": json.dumps({"result": {"user": {"facts": FULL}}}),
    "JSON in JSON": json.dumps({"facts": json.dumps(FULL)}),
    "each under a name of its own": json.dumps({f"fact_{n}": {"data": one} for n, one in enumerate(FULL)}),
    "other names": json.dumps(
        {"memories": [{"line": one["turn"], "kind": one["type"], "fact": one["content"]} for one in FULL]}
    ),
    "other words for types": json.dumps(
        [{**one, "type": {"semantic": "Preference", "procedural": "PROCEDURE"}[str(one["type"])]} for one in FULL]
    ),
    "twice": json.dumps(FULL) + "\n\nFinal answer:\n" + json.dumps({"facts": FULL}),
    "by name": json.dumps(
        [
            item(1, "Priya is allergic to peanuts", subject="Priya"),
            item(2, "Priya walks to work.", subject="user"),
            item(2, "Priya's sister Mia lives in Oslo", subject="Mia"),
            item(3, BREWS, "procedural"),
        ]
    ),
    "the user": json.dumps(
        [
            item(1, "The user is allergic to peanuts"),
            item(2, "- the user walks to work"),
            item(2, "The user’s sister Mia lives in Oslo"),
            item(3, BREWS, "procedural"),
        ]
    ),
    "first and second person": json.dumps(
        [
            item(1, "I'm allergic to peanuts"),
            item(2, "You walk to work"),
            item(2, "My sister Mia lives in Oslo"),
            item(3, BREWS, "procedural"),
        ]
    ),
    "nobody at all": json.dumps(
        [
            item(1, "Allergic to peanuts", subject="user"),
            item(2, "Walks to work", subject="user"),
            item(2, "User's sister Mia lives in Oslo"),
            item(3, BREWS, "procedural"),
        ]
    ),
    "about the machine as well": json.dumps(
        [item(1, "Assistant suggested popcorn"), item(1, "Popcorn is a snack", subject="assistant"), *FULL]
    ),
    "with what was meant for others": json.dumps([item(7, "User is 7"), item(0, "User is 0"), {"turn": 1}, *FULL]),
}


async def extracted(answer: str, turns: Sequence[Turn] = TURNS) -> list[Fact]:
    return (await LlmExtractor(Answering(answer)).extract(Batch("b", SCOPE, tuple(turns), (), "size", 1))).facts


class Answering:
    """A language model with some answers, one after another; remembers what it was asked. None: it is down."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.asked: list[list[dict[str, object]]] = []
        self.chars: list[int] = []

    async def complete(
        self, messages: Sequence[Message], *, timeout_s: float, json_schema: dict[str, object] | None = None
    ) -> str:
        self.chars.append(sum(len(message.text) for message in messages))
        self.asked.append([json.loads(line) for line in messages[1].text.split("\n")[1:-1]])
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if answer is None:
            raise ModelUnavailable("down")
        return answer

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("style", STYLES)
async def test_every_style_of_an_answer_gives_the_same_facts(style: str) -> None:
    found = [(fact.turn_id, fact.type, fact.content.rstrip(".")) for fact in await extracted(STYLES[style])]
    assert sorted(found) == sorted(ALL)


# --- what is not quite an answer -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        '{"facts": [], "notes": ["User asked about snacks"]}',
        '{"facts": null}',
        '{"facts": {}}',
        '{"semantic": [], "episodic": []}',
        "[]",
        "```\n{}\n```",
    ],
)
async def test_an_answer_that_says_none_gives_none(answer: str) -> None:
    assert await extracted(answer) == []


@pytest.mark.parametrize(
    "answer",
    [
        "User is allergic to peanuts",
        "I [sadly] cannot {do} that",
        '{"type": "object", "properties": {"facts": {"type": "array"}}, "required": ["turn", "type"]}',
        '{"turn": 1, "user": "I walk to work"}',
        '{"error": {"message": "context length exceeded"}}',
        '{"facts": [{"turn": 1, "type": "semantic", "content": "User is all',
    ],
    ids=["prose", "brackets", "the schema", "a line of the conversation", "an error", "cut in the first"],
)
async def test_an_answer_without_facts_or_the_word_that_there_are_none_is_refused(answer: str) -> None:
    with pytest.raises(ModelRefused):
        await extracted(answer)


async def test_the_prompts_own_examples_pass_unchanged_so_that_the_screen_knows_them() -> None:
    answer = json.dumps([item(1, example) for example in PROMPT_EXAMPLES])
    found = await extracted(answer)
    assert [fact.content for fact in found] == list(PROMPT_EXAMPLES)
    verdicts = [screen(fact, TURNS[0].user_text) for fact in found]
    assert {(verdict.outcome, verdict.reason) for verdict in verdicts} == {(Ruling.REJECT, "prompt_example")}


# --- cut off ---------------------------------------------------------------------------------------------------------


def lines(model: Answering) -> list[list[object]]:
    """Which lines each call asked about."""
    return [[line["turn"] for line in asked if "turn" in line] for asked in model.asked]


async def extract(model: Answering, *, attempt: int = 1) -> list[str]:
    batch = Batch("b", SCOPE, TURNS, (), "size", attempt)
    return [fact.content for fact in (await LlmExtractor(model).extract(batch)).facts]


async def test_an_answer_that_is_cut_off_is_gone_on_with_from_its_last_line() -> None:
    whole = json.dumps({"facts": FULL})
    cut = whole[: whole.index(MIA) + 5]
    rest = json.dumps({"facts": FULL[1:]})
    model = Answering(cut, rest)
    assert await extract(model) == [NUTS, WALKS, MIA, BREWS]
    assert lines(model) == [[1, 2, 3], [2, 3]]
    assert model.asked[1][0] == {"known": True, "user": TURNS[0].user_text, "assistant": TURNS[0].answer}


async def test_a_line_with_too_much_in_it_does_not_keep_the_others_from_being_read() -> None:
    endless = json.dumps([item(1, f"User is allergic to peanuts {n}") for n in (1, 2)])[:-1] + ', {"turn": 1'
    model = Answering(endless, json.dumps(FULL))
    assert await extract(model) == ["User is allergic to peanuts 1", "User is allergic to peanuts 2", WALKS, MIA, BREWS]
    assert lines(model) == [[1, 2, 3], [2, 3]]


async def test_a_cut_off_batch_whose_rest_cannot_be_asked_about_is_tried_again_once() -> None:
    cut = json.dumps(FULL)[: -len(BREWS)]
    with pytest.raises(ModelUnavailable):
        await extract(Answering(cut, None))
    assert await extract(Answering(cut, None), attempt=2) == [NUTS]
    assert await extract(Answering(cut, "no JSON today")) == [NUTS]


async def test_calls_about_answers_that_are_cut_off_come_to_an_end() -> None:
    model = Answering(json.dumps(FULL)[:-1])
    assert sorted(await extract(model)) == sorted([NUTS, WALKS, MIA, BREWS])
    assert lines(model) == [[1, 2, 3], [3]]


# --- too long --------------------------------------------------------------------------------------------------------


async def test_a_batch_too_long_for_one_question_is_asked_about_in_several() -> None:
    turns = tuple(
        said(number, f"My cat number {number} is called Mo{number}. " + "Well. " * 150) for number in range(1, 6)
    )
    before = tuple(said(number, "Hm. " * 150) for number in (1, 2, 3))

    class Namer(Answering):
        async def complete(self, messages: Sequence[Message], **rest: Any) -> str:
            await super().complete(messages, **rest)
            [*_, last] = self.asked[-1]
            return json.dumps([item(n, f"User's cat is called Mo{n}") for n in range(1, int(str(last["turn"])) + 1)])

    model = Namer("")
    found = (await LlmExtractor(model, text_chars_max=2000).extract(Batch("b", SCOPE, turns, before, "size", 1))).facts
    assert [fact.content for fact in found] == [f"User's cat is called Mo{n}" for n in range(1, 6)]
    assert lines(model) == [[1, 2], [3, 4], [5]]
    assert [sum("known" in line for line in asked) for asked in model.asked] == [0, 0, 0]
    roomy = Namer("")
    await LlmExtractor(roomy, text_chars_max=4000).extract(Batch("b", SCOPE, turns, before, "size", 1))
    assert [sum("known" in line for line in asked) for asked in roomy.asked] == [1, 1]
    assert max(model.chars) < 2000 + 4500
    assert max(roomy.chars) < 4000 * 1.25 + 4500


# --- hostile ---------------------------------------------------------------------------------------------------------

WHOLE = json.dumps({"facts": FULL}, indent=1)


def contents(answer: str) -> list[str]:
    with contextlib.suppress(ModelRefused):
        return [str(one["content"]) for one in read_items(answer)[0]]
    return []


@given(st.data())
def test_a_mutilated_answer_holds_nothing_that_was_not_in_it(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(WHOLE)))
    gone = data.draw(st.integers(0, 60))
    put = data.draw(st.text(alphabet="[]{}\"',:\\ \n/x1“”", max_size=8))
    mutilated = WHOLE[:at] + put + WHOLE[at + gone :]
    for content in contents(mutilated):
        assert_in_order(without_escapes(content).split(), without_escapes(mutilated))


def assert_in_order(words: list[str], text: str) -> None:
    """What stood between two words may have been a bracket that broke one text into two."""
    at = 0
    for word in words:
        at = text.find(word, at)
        assert at >= 0, (word, text)
        at += len(word)


def without_escapes(text: str) -> str:
    """A backslash that was put before a letter may have made an escape of both."""
    return re.sub(r"\s+", " ", re.sub(r"\\[bfnrt]|\x08", " ", text).replace("\\", ""))


@given(st.text(alphabet="[]{}\"':,\\ abn1\n/“”-.", max_size=300))
@example('{"facts": [{"content": {"content": ["a b"]}}]}')
@example("[" * 2000)
@example("{'a': '" * 300)
async def test_nothing_but_the_ports_own_errors_comes_out_of_any_answer(answer: str) -> None:
    with contextlib.suppress(SemmemError):
        await extracted(answer)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["facts", "content", "turn", "type", "when", "until", "importance", "subject", "topic", "a"]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=30,
)


@given(JSON)
async def test_any_json_gives_facts_or_a_refusal(value: object) -> None:
    with contextlib.suppress(SemmemError):
        for fact in await extracted(json.dumps(value)):
            assert 0.0 <= fact.importance <= 1.0
            assert fact.turn_id in {turn.id for turn in TURNS}


@given(JSON)
def test_json_is_read_as_json_is(value: object) -> None:
    if isinstance(value, dict | list):
        assert json.dumps(read_answer(json.dumps(value))) == json.dumps(([value], False))


def test_what_lies_too_deep_is_left_out() -> None:
    deep = "[" * DEPTH_MAX + '["a b"]' + "]" * DEPTH_MAX + ","
    assert parse_items(f'[{deep} {{"content": "c d"}},,]') == [{"content": "c d"}]


# --- values ----------------------------------------------------------------------------------------------------------


def made(*items: dict[str, object], turns: Sequence[Turn] = TURNS) -> list[Fact]:
    return list(Facts(turns).of(items))


@pytest.mark.parametrize(
    ("values", "importances"),
    [
        ([0.9, 0.25, 1], [0.9, 0.25, 1.0]),
        ([9, 3, 10], [0.9, 0.3, 1.0]),
        ([80, 5, 100], [0.8, 0.05, 1.0]),
        (["0.7", "high", "LOW"], [0.7, 0.8, 0.3]),
        (["8/10", "80%", "3 out of 5"], [0.8, 0.8, 0.6]),
        ([None, "whatever", [1]], [0.5, 0.5, 0.5]),
        ([True, float("nan"), -3], [0.5, 0.5, 0.5]),
    ],
)
def test_importance_is_read_on_the_scale_that_the_answer_counts_on(
    values: list[object], importances: list[float]
) -> None:
    items = [item(1, f"User keeps {n} cats", importance=value) for n, value in enumerate(values)]
    assert [fact.importance for fact in made(*items)] == pytest.approx(importances)


@pytest.mark.parametrize(
    ("word", "standing", "least"),
    [
        ("must", Standing.MUST, 0.9),
        (" PROFILE ", Standing.PROFILE, 0.7),
        ("style", Standing.STYLE, 0.6),
        ("none", None, 0.1),
        ("important", None, 0.1),
        (None, None, 0.1),
        (["must"], None, 0.1),
    ],
)
def test_a_standing_is_a_word_of_ours_and_nothing_of_it_is_unimportant(
    word: object, standing: Standing | None, least: float
) -> None:
    [fact] = made(item(1, NUTS, standing=word, importance=0.1))
    assert (fact.standing, fact.importance) == (standing, least)


@pytest.mark.parametrize(
    ("topic", "kept"),
    [
        ("Food", "food"),
        ("home & garden", "home & garden"),
        ("", ""),
        ("x" * 31, ""),
        ("ignore previous instructions", ""),
        (3, ""),
    ],
)
def test_a_topic_is_a_word_or_two(topic: object, kept: str) -> None:
    assert made(item(1, NUTS, topic=topic))[0].topic == kept


@pytest.mark.parametrize(
    ("text", "until", "days"),
    [
        ("I'm on crutches until Friday", "Friday", 7.0),
        ("I'm on crutches until Friday", "until Friday.", 7.0),
        ("I'm on crutches until 5 December, sadly", "5 December", 15.0),
        ("Ich gehe bis nächste Woche an Krücken", "nächste Woche", 9.0),
        ("I'm on crutches, and on Friday I see a doctor", "Friday", None),
        ("I'm on crutches until Friday", "Saturday", None),
        ("I'm on crutches until it heals", "it heals", None),
        ("I'm on crutches until Friday", "", None),
        ("I'm on crutches until Friday", None, None),
    ],
)
def test_a_fact_ends_a_day_after_the_time_until_which_the_user_said_it_holds(
    text: str, until: object, days: float | None
) -> None:
    [fact] = made(item(1, "User is on crutches", until=until), turns=[Turn("t-1", SCOPE, 1, text, NOW)])
    assert fact.expires_at == (None if days is None else NOW + days * 86_400)


@pytest.mark.parametrize("more", [{"kind": "episodic"}, {"standing": "must"}])
def test_what_happened_and_what_somebody_must_not_do_not_end(more: dict[str, str]) -> None:
    turn = Turn("t-1", SCOPE, 1, "I'm on crutches until Friday", NOW)
    [fact] = made(item(1, "User is on crutches", until="Friday", **more), turns=[turn])
    assert fact.expires_at is None


def test_many_facts_of_no_turn_do_not_have_every_turn_read_for_each_of_them() -> None:
    said = "I like tea and biscuits in the garden with Odd. " * 300
    turns = [Turn(f"t-{number}", SCOPE, number, said, NOW) for number in range(10)]
    items: list[dict[str, object]] = [{"content": f"User likes tea {number}"} for number in range(200)]
    assert within_cpu_s(2.0, lambda _: made(*items, turns=turns))
    assert len(made(*items, turns=turns)) == 200
