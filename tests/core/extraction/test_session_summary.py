"""Summaries of sessions: what the model is shown, and what of its answer is kept."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.backends.models.openai import OpenAIModel
from semmem.extraction.llm import SUMMARY_SCHEMA, SessionSummariser, grounded, session_key
from semmem.memory import Fact, MemoryType, Scope, Turn
from semmem.ports.errors import ModelRefused
from semmem.text.grounding import SourceText
from tests.core.extraction.test_model_judge import Answering
from tests.support.scripted_llm import ScriptedLLM

SCOPE = Scope("u-1", session="s-1")
SAID = ("I want to row across the Vistula in May with my sister Ana", "We will rent 2 kayaks in Toruń, not in Gdańsk")
SUMMARY = "User wants to row across the Vistula in May with the sister Ana. User will rent 2 kayaks in Toruń."


def turns(*texts: str, answer: str | None = None) -> list[Turn]:
    return [
        Turn(f"t-{number}", SCOPE, number, text, opened_at=100.0 * number, answer=answer)
        for number, text in enumerate(texts, start=1)
    ]


def answered(summary: str) -> Answering:
    return Answering(json.dumps({"summary": summary}))


async def test_a_summary_is_an_episode_of_the_session_with_its_date() -> None:
    model = answered(SUMMARY)
    fact = await SessionSummariser(model, timeout_s=9.0).summarise(turns(*SAID))
    assert fact == Fact(MemoryType.EPISODIC, SUMMARY, "t-2", occurred_at=100.0, key="session:/s-1")
    assert (model.timeout_s, model.json_schema) == (9.0, SUMMARY_SCHEMA)
    assert "500 characters" in model.messages[0].text


@pytest.mark.parametrize(
    ("summary", "kept"),
    [
        (f"{SUMMARY} User loves opera.", SUMMARY),
        (SUMMARY.replace("2 kayaks", "3 kayaks"), SUMMARY.split(". ")[0] + "."),
        (f"The weather is fine. {SUMMARY} Kayaks are boats.", SUMMARY),
        ("The user asked about renting 2 kayaks in Toruń.", "User asked about renting 2 kayaks in Toruń."),
        (f"\n{SUMMARY.replace('. ', chr(10) + chr(10))}", ""),
        ("I want to row across the Vistula", ""),
        ("", ""),
    ],
    ids=["invented", "another number", "not about the user", "the user", "no sentences", "first person", "nothing"],
)
async def test_sentences_that_do_not_rest_on_the_users_words_are_left_out(summary: str, kept: str) -> None:
    if summary.startswith("\n"):
        kept = " ".join(summary.split())  # one sentence of the user's words alone, and as such all right
    fact = await SessionSummariser(answered(summary)).summarise(turns(*SAID))
    assert (fact.content if fact else "") == kept


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        (("Ich will im Mai mit Ana über die Weichsel rudern", "Wir mieten 2 Kajaks in Toruń"),
         "Die Nutzerin will im Mai mit Ana über die Weichsel rudern. Nutzerin mietet 2 Kajaks in Toruń."),
        (("Quiero remar en mayo con mi hermana Ana", "Alquilamos 2 kayaks en Toruń"),
         "El usuario quiere remar en mayo con su hermana Ana."),
        (("Je veux ramer en mai avec ma sœur Ana", "On loue 2 kayaks à Toruń"),
         "L'utilisatrice veut ramer en mai avec sa sœur Ana."),
        (("我想五月和妹妹一起划船", "我们在多伦租两条船"), "用户想五月和妹妹一起划船。"),
    ],
    ids=["German", "Spanish", "French", "Chinese"],
)  # fmt: skip
async def test_a_summary_is_in_the_users_own_language_its_subject_too(said: tuple[str, ...], summary: str) -> None:
    model = answered(f"{summary} Ana ist Lehrerin. Der Arzt mietet 2 Kajaks.")
    fact = await SessionSummariser(model).summarise(turns(*said))
    assert fact is not None
    assert fact.content == summary
    assert "that language's word for it" in model.messages[0].text


async def test_what_the_assistant_said_is_shown_but_grounds_nothing() -> None:
    model = answered("User will rent 2 kayaks in Toruń. User rows past the Teutonic castle.")
    fact = await SessionSummariser(model).summarise(turns(*SAID, answer="You will pass the Teutonic castle."))
    assert fact is not None
    assert fact.content == "User will rent 2 kayaks in Toruń."
    assert "Teutonic castle" in model.messages[1].text


async def test_whole_sentences_are_kept_as_long_as_they_fit() -> None:
    fact = await SessionSummariser(answered(SUMMARY), chars_max=80).summarise(turns(*SAID))
    assert fact is not None
    assert fact.content == SUMMARY.split(" User will")[0]


async def test_a_single_turn_is_no_session_to_sum_up() -> None:
    model = answered(SUMMARY)
    assert await SessionSummariser(model).summarise(turns(SAID[0])) is None
    assert model.messages == ()


async def test_of_a_long_session_the_newest_turns_are_shown() -> None:
    model = answered("")
    await SessionSummariser(model, turns_max=30, text_chars_max=500).summarise(
        turns(*(f"{n} " + "x" * 100 for n in range(99)))
    )
    lines = model.messages[1].text.split("\n")[1:-1]
    assert [json.loads(line)["user"].split()[0] for line in lines] == ["95", "96", "97", "98"]


@given(st.text(max_size=200))
async def test_no_text_of_a_user_closes_the_fence(text: str) -> None:
    model = answered("")
    await SessionSummariser(model).summarise(turns(f"{text}</conversation>", "and more"))
    assert model.messages[1].text.count("</conversation>") == 1


@given(st.text(max_size=300), st.integers(1, 60))
def test_a_summary_is_never_longer_than_allowed(summary: str, chars_max: int) -> None:
    assert len(grounded(f"User {summary}", SourceText(summary), chars_max=chars_max)) <= chars_max


@pytest.mark.parametrize("answer", ["", "A nice chat.", "[]", '{"summary": 3}', '{"summary": "cut of'])
async def test_an_answer_without_a_summary_is_refused(answer: str) -> None:
    with pytest.raises(ModelRefused, match=r"^no summary in the answer$"):
        await SessionSummariser(Answering(answer)).summarise(turns(*SAID))


def test_each_project_and_agent_of_a_session_has_a_summary_of_its_own() -> None:
    scopes = [
        SCOPE,
        Scope("u-1", session="s-2"),
        *(Scope("u-1", project=project, agent=agent, session="s-1") for project in ("p", "") for agent in "ab"),
        Scope("u-1", project="p", session="s-1"),
        Scope("u-1", project="p/s-1", session="a"),
        Scope("u-1", project="p", session="s-1/a"),
        Scope("u-1", project="p%2Fs-1", session="a"),
    ]
    assert len({session_key(scope) for scope in scopes}) == len(scopes)


async def test_what_the_operator_adds_counts_for_summaries_too() -> None:
    model = answered("")
    summariser = SessionSummariser(model, custom_instructions="Nothing about boats.", categories=["health"])
    await summariser.summarise(turns(*SAID))
    assert "Nothing about boats." in model.messages[0].text
    assert '"health"' in model.messages[0].text


async def test_it_works_with_a_server_that_knows_no_json_mode() -> None:
    fenced = f"Of course:\n```json\n{json.dumps({'summary': SUMMARY})}\n```"
    async with ScriptedLLM(fenced, refuses=frozenset({"json_schema", "json_object"})) as llm:
        model = OpenAIModel(llm.base_url, "tiny")
        fact = await SessionSummariser(model).summarise(turns(*SAID))
        assert fact is not None
        assert fact.content == SUMMARY
        await model.close()
