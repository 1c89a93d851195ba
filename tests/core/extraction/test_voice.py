"""Whose voice each part of a message is, and what follows for what may end or change."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.backends.in_process import InProcessStore
from semmem.backends.sql.rows import facts_json, json_facts
from semmem.extraction.candidate import Action
from semmem.extraction.comparing import Comparing
from semmem.extraction.dedup import Dedup
from semmem.extraction.reading import Reader
from semmem.extraction.voice import hearing
from semmem.extraction.voice.hearing import UNIT_CHARS_MAX, UNITS_MAX, Heard, heard, quotations, units
from semmem.memory import BESIDE, CHANGES_STANDING, Fact, MemoryStatus, MemoryType, Scope, Standing, Turn
from semmem.ports.learning import Batch
from tests.core.extraction.dedup_world import ALICE, BOSTON, SEATTLE, candidate
from tests.support.telling_judge import judge
from tests.support.traced_journal import TracedJournal

ALLERGIC, NOT_ALLERGIC = "User is allergic to peanuts", "User is not allergic to peanuts"
TOLD = "I am not allergic to peanuts any more."


@pytest.fixture
def dedup(store: InProcessStore, journal: TracedJournal) -> Dedup:
    return Dedup(Comparing(store, judge=judge), journal)


def parts(text: str) -> list[str]:
    return [text[unit.start : unit.end].strip() for unit in units(text)]


# --- units -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One here. Two there?\n\nThree", ["One here.", "Two there?", "Three"]),
        ("Translate this: I live in Rome.", ["Translate this:", "I live in Rome."]),
        ("I pay approx. 40 at Dr. Lee's.", ["I pay approx. 40 at Dr. Lee's."]),
        ('He said "I am not going there" twice.', ["He said", '"I am not going there"', "twice."]),
        ("翻译：我住在北京。谢谢！", ["翻译：", "我住在北京。", "谢谢！"]),
        ("typos? -> I lives in Rome", ["typos?", "-> I lives in Rome"]),
        ("", []),
        (" \n\t\n", []),
    ],
)
def test_a_unit_is_what_one_voice_speaks(text: str, expected: list[str]) -> None:
    assert parts(text) == expected


def test_a_unit_knows_its_line_and_whether_it_stands_in_a_quotation() -> None:
    found = units('First. Second.\n\n"I would not go there"')
    assert [(unit.line, unit.opens, unit.quoted) for unit in found] == [
        (0, True, False),
        (0, False, False),
        (2, True, True),
    ]


@given(st.text(alphabet="aI \n.:\"“”'«»-?。：「」", max_size=300))
def test_units_hold_every_sign_once_and_in_order(text: str) -> None:
    found = units(text)
    assert all(one.end <= other.start for one, other in pairwise(found))
    if len(found) < UNITS_MAX:
        assert sum(len(part.replace(" ", "").replace("\n", "")) for part in parts(text)) == len("".join(text.split()))


def test_a_long_message_has_bounded_units_of_its_beginning_and_its_end() -> None:
    found = parts("\n".join(f"line {number}" for number in range(1000)))
    assert (len(found), found[0], found[-1]) == (UNITS_MAX, "line 0", "line 999")
    assert max(map(len, parts("x" * 10_000))) == UNIT_CHARS_MAX


def test_long_passages_and_those_in_the_first_person_are_quotations() -> None:
    assert quotations('she wrote "I can\'t come" to us') == [(10, 24)]
    assert quotations("il a dit « je viens demain » hier") == [(9, 28)]


def test_marks_that_only_quote_do_so_behind_a_letter_too_and_characters_count_as_words() -> None:
    assert quotations("他说「我不喝酒」") == [(2, 8)]
    assert quotations("题目是「如何在三个月之内学会游泳和跳水的基本动作」吗") == [(3, 25)]
    assert quotations("我喜欢「红楼梦」") == []
    assert quotations("»Dune« ist mein Lieblingsbuch, ich mag auch »Emma« sehr") == []


def test_titles_and_apostrophes_are_no_quotations() -> None:
    assert quotations("I love 'Dune' and my sister's \"Emma\"") == []
    assert quotations("He said 'I am old' twice") == [(8, 18)]


@pytest.mark.parametrize(
    "message",
    ["```\nmy dog is old\n```", "<mail>\nmy dog is old\n</mail>", "> my dog is old", "so:\n~~~\nmy dog is old"],
)
def test_what_is_marked_as_a_text_of_its_own_is_not_the_users_voice(message: str) -> None:
    assert "my dog is old" not in heard(message).text


def test_behind_the_end_of_a_fence_or_a_tag_the_user_speaks_again() -> None:
    for message in ("```\nx = 1\n```\nI live in Rome.", "<mail>\nhi\n</mail>\nI live in Rome."):
        assert [unit.quoted for unit in units(message)] == [True, True, True, False]


# --- voices ----------------------------------------------------------------------------------------------------------


@given(st.text(max_size=400))
def test_of_any_text_what_is_heard_stands_in_it_in_this_order(text: str) -> None:
    signs = iter("".join(text.split()))
    assert all(sign in signs for sign in "".join(heard(text).text.split()))


def test_a_message_that_is_too_long_to_be_read_whole_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hearing, "UNITS_MAX", 2)
    assert heard("I live in Lisbon.").alone
    assert heard("I live in Lisbon. I keep two cats.") == Heard("I live in Lisbon. I keep two cats.", alone=False)


class Odds:
    def __init__(self, *odds: float) -> None:
        self.odds = lambda words, shapes, vectors: odds


@pytest.mark.parametrize(
    ("odds", "text", "alone", "mixed"),
    [
        ((-3.0, -3.0, -3.0), "I cook. I run. Old news.", True, False),
        ((-3.0, -3.0, -0.5), "I cook. I run. Old news.", False, False),
        ((-3.0, -3.0, 0.9), "I cook. I run. Old news.", False, False),
        ((-3.0, -3.0, 1.1), "I cook. I run.", False, True),
        ((-3.0, -0.4, 2.1), "I cook.", False, True),
    ],
)
def test_what_is_perhaps_somebody_elses_is_heard_and_doubted_and_what_surely_is_takes_the_unsure_with_it(
    monkeypatch: pytest.MonkeyPatch, odds: tuple[float, ...], text: str, alone: bool, mixed: bool
) -> None:
    monkeypatch.setattr(hearing, "_weights", lambda _: Odds(*odds))
    assert heard("I cook. I run. Old news.") == Heard(text, alone, mixed)


@pytest.mark.parametrize(
    "detail",
    [
        "save 07700 900123",
        "+44 (0)20 7946 0991",
        "ring 03-0000-9876",
        "pay 5550001 now",
        "code 11-22-33",
        "GB00 FAKE 0000",
        "bc1qexamplefake",
        "rik@example.com",
        "https://pay.example/1",
        "www.pay.example",
        "18 Station Road",
        "5 rue des Lilas",
        "Lindenstraße 12",
        "calle Mayor 23",
        "梅田1-2-3",
    ],
)
def test_how_to_pay_or_reach_somebody_is_heard_where_it_is_surely_the_users_alone(
    monkeypatch: pytest.MonkeyPatch, detail: str
) -> None:
    said = f"I run. {detail}."
    for odds, text, alone in (
        ((-9.0, -3.6), said, True),
        ((-9.0, -3.4), "I run.", False),
        ((-0.9, -9.0), "I run.", False),
    ):
        monkeypatch.setattr(hearing, "_weights", lambda _, odds=odds: Odds(*odds))
        assert heard(said) == Heard(text, alone)


@pytest.mark.parametrize("said", ["since 2026-11-24", "am 24.11.2026", "120.000 francs", "ryzen 5600, 16gb, 550w"])
def test_dates_sums_and_lists_of_numbers_are_no_such_detail(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setattr(hearing, "_weights", lambda _: Odds(-0.9))
    assert heard(said).text == said


def test_beside_somebody_elses_text_what_introduces_it_is_not_about_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "This came by fax. I run a shop. My landlord wrote: Old news."
    monkeypatch.setattr(hearing, "_weights", lambda _: Odds(-3.0, -3.0, -3.0, 3.0))
    assert heard(text) == Heard("I run a shop.", alone=False, mixed=True)
    monkeypatch.setattr(hearing, "_weights", lambda _: Odds(-3.0, -3.0, -3.0, -3.0))
    assert heard(text) == Heard(text, alone=True)


def test_in_a_long_message_it_takes_more_to_be_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    for odd, mixed in ((0.4, False), (0.6, True)):
        monkeypatch.setattr(hearing, "_weights", lambda _, odd=odd: Odds(odd, -3.0))
        assert heard("I cook. I run.").mixed == mixed
    monkeypatch.setattr(hearing, "_weights", lambda _: Odds(1.2, *[-3.0] * 9))
    assert not heard("I cook. " * 10).mixed
    monkeypatch.setattr(hearing, "_weights", lambda _: Odds(2.6, *[-3.0] * 9))
    assert heard("I cook. " * 10).mixed


@pytest.mark.parametrize(
    ("lead", "mixed"), [("For the file:\n", True), ("For the file: ", False), ("For the file\n", False)]
)
def test_behind_a_line_that_ends_with_a_colon_it_takes_less_to_be_sure(
    monkeypatch: pytest.MonkeyPatch, lead: str, mixed: bool
) -> None:
    monkeypatch.setattr(hearing, "_weights", lambda _: Odds(-3.0, 0.1, *[-3.0] * 8))
    assert heard(lead + "I cook. " * 9).mixed == mixed


# --- reading turns ---------------------------------------------------------------------------------------------------


def _turn(turn_id: str, text: str) -> Turn:
    return Turn(turn_id, ALICE, 0, text, opened_at=1.0)


def test_an_extractor_sees_the_users_own_words_alone_and_facts_of_mixed_turns_stand_beside() -> None:
    mixed = _turn(
        "t-1", f"I live in Lisbon.\n\nPlease proofread this paragraph.\n\n{TOLD} It took three years of treatment."
    )
    plain, pasted = _turn("t-2", "I live in Boston."), _turn("t-3", f"Proofread this text:\n\n{TOLD}")
    read = Reader().read_with(Batch("b", ALICE, (mixed, plain, pasted), (), "size", attempt=1))
    assert [turn.id for turn in read.shown.turns][:2] == ["t-1", "t-2"]
    assert not any("peanuts" in turn.user_text for turn in read.shown.turns)
    assert not read.said.grounds(NOT_ALLERGIC)
    assert read.shown.mixed == {"t-1", "t-3"}
    facts = [Fact(MemoryType.SEMANTIC, BOSTON, turn_id) for turn_id in ("t-1", "t-2")]
    assert [fact.beside for fact in read.weighed(facts)] == [True, False]


def test_what_is_doubted_does_not_stand_and_gives_no_number_to_pay_or_call() -> None:
    turn = _turn("t-1", "I cook.")
    read = Reader(hear=lambda text, _: Heard(text, alone=False)).read_with(
        Batch("b", ALICE, (turn,), (), "size", attempt=1)
    )
    assert read.shown.doubted == {"t-1"}
    assert read.shown.mixed == frozenset()
    kept = Fact(MemoryType.SEMANTIC, ALLERGIC, "t-1", standing=Standing.MUST)
    dated = Fact(MemoryType.EPISODIC, "User flew on 2026-11-24", "t-1")
    pays = Fact(MemoryType.SEMANTIC, "User's number is 0151 0000-4711", "t-1")
    assert read.weighed([kept, dated, pays]) == [
        replace(kept, beside=True, standing=None),
        replace(dated, beside=True),
    ]
    assert replace(read, shown=replace(read.shown, doubted=frozenset())).weighed([pays]) == [pays]


def test_a_saved_fact_has_nothing_that_an_earlier_version_does_not_know() -> None:
    fact = Fact(MemoryType.SEMANTIC, BOSTON, "t-1", beside=True)
    assert "beside" not in facts_json([fact])
    assert json_facts(facts_json([fact])) == (replace(fact, beside=False),)


# --- what may end or change ------------------------------------------------------------------------------------------


async def _known(store: InProcessStore) -> dict[str, MemoryStatus]:
    return {memory.content: memory.status for memory in await store.list(Scope("alice"), limit=100)}


async def test_a_fact_of_a_mixed_message_ends_nothing_and_leaves_no_doubt(dedup: Dedup, store: InProcessStore) -> None:
    await dedup.put(await candidate(BOSTON))
    new = await candidate(SEATTLE, index=1)
    beside = replace(new, fact=replace(new.fact, beside=True))
    placed = await dedup.place(beside)
    assert (placed.action, placed.removals) == (Action.CREATED, ())
    assert set((await _known(store)).values()) == {MemoryStatus.ACTIVE}
    stored = await store.get(Scope("alice"), new.id)
    assert stored is not None
    assert (stored.metadata.get(BESIDE), "unsettled" in stored.metadata) == (True, False)


async def test_what_stands_beside_ends_nothing_when_it_is_confirmed_or_released_either(
    dedup: Dedup, store: InProcessStore
) -> None:
    await dedup.put(await candidate(BOSTON))
    new = await candidate(SEATTLE, index=1)
    provisional = replace(new, fact=replace(new.fact, beside=True), provisional=True)
    await dedup.place(provisional)
    held = await store.get(Scope("alice"), new.id)
    assert held is not None
    await dedup.confirm(held, replace(provisional, provisional=False))
    assert set((await _known(store)).values()) == {MemoryStatus.ACTIVE}
    held = await store.get(Scope("alice"), new.id)
    assert held is not None
    await dedup.release(replace(held, status=MemoryStatus.QUARANTINED), batch="b-2", now=2000.0)
    assert set((await _known(store)).values()) == {MemoryStatus.ACTIVE}


async def test_the_users_own_plain_words_end_a_standing_memory_and_that_is_noted(
    dedup: Dedup, store: InProcessStore
) -> None:
    old = await candidate(ALLERGIC)
    await dedup.put(replace(old, fact=replace(old.fact, standing=Standing.MUST)))
    await dedup.put(await candidate(NOT_ALLERGIC, index=1))
    [now] = [m for m in await store.list(Scope("alice"), limit=10) if m.status is MemoryStatus.ACTIVE]
    assert (now.content, now.metadata.get(CHANGES_STANDING)) == (NOT_ALLERGIC, True)


async def test_what_stood_beside_and_is_told_anew_in_plain_words_does_so_no_longer(
    dedup: Dedup, store: InProcessStore
) -> None:
    old = await candidate(ALLERGIC)
    await dedup.put(replace(old, fact=replace(old.fact, beside=True)))
    await dedup.put(await candidate(NOT_ALLERGIC, index=1))
    [now] = [m for m in await store.list(Scope("alice"), limit=10) if m.status is MemoryStatus.ACTIVE]
    assert (now.content, BESIDE in now.metadata) == (NOT_ALLERGIC, False)


async def test_a_change_of_what_does_not_stand_is_not_said_back(dedup: Dedup, store: InProcessStore) -> None:
    await dedup.put(await candidate(ALLERGIC))
    await dedup.put(await candidate(NOT_ALLERGIC, index=1))
    active = [m for m in await store.list(Scope("alice"), limit=10) if m.status is MemoryStatus.ACTIVE]
    assert not any(CHANGES_STANDING in memory.metadata for memory in active)
