"""Changes of topic: where a session is cut, and what is not worth a look."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.extraction.drift import REST_S, DriftWatch, first_drift
from semmem.memory import Scope, Turn, TurnEnding, Vector
from semmem.ports.errors import EmbedderError
from semmem.ports.learning import BatchRules, WaitingSession
from semmem.ports.recording import TurnClosed
from tests.support.empty_journal import empty_journal
from tests.support.fakes import HashEmbedder

ADA = Scope("ada", session="s1")
RULES = BatchRules(size=50, idle_s=1000.0, answer_wait_s=0.0)
TRIP = [
    "We plan a trip to Japan with our toddler",
    "Which city of Japan is best for a trip with a toddler?",
    "How long a trip to Japan is fine for a toddler?",
    "Does a toddler need a visa for a trip to Japan?",
]
SCRIPT = "Pandas raises some strange KeyError today"
VAGUE = "How much?"


class Counting(HashEmbedder):
    """Counts the texts; knows none at all while ``down``."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.down = False

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        if self.down:
            raise EmbedderError("none")
        self.texts.append(text)
        return await super().embed(text)


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[SqlJournal]:
    made = SqlJournal(empty_journal(tmp_path / "journal.db"))
    await made.open()
    yield made
    await made.close()


async def say(journal: SqlJournal, *texts: str, scope: Scope = ADA, start: float = 100.0) -> None:
    turns = [Turn(f"{scope.user}-{start + n}", scope, 0, text, opened_at=start + n) for n, text in enumerate(texts)]
    await journal.record(
        turns, [TurnClosed(turn.id, TurnEnding.ANSWERED, turn.opened_at + 0.5, "Fine.") for turn in turns]
    )


async def due(journal: SqlJournal, now: float = 150.0) -> tuple[str, list[str]]:
    batch = await journal.claim(RULES, now=now)
    return ("", []) if batch is None else (batch.trigger, [turn.user_text for turn in batch.turns])


async def test_another_topic_makes_what_was_said_before_a_batch(journal: SqlJournal) -> None:
    await say(journal, *TRIP, SCRIPT)
    assert await DriftWatch(journal, HashEmbedder()).look(now=110.0) == 1
    assert await due(journal) == ("drift", TRIP)


async def test_one_topic_is_not_cut(journal: SqlJournal) -> None:
    await say(journal, *TRIP)
    assert await DriftWatch(journal, HashEmbedder()).look(now=110.0) == 0
    assert await due(journal) == ("", [])


async def test_a_message_without_content_goes_on_with_the_topic(journal: SqlJournal) -> None:
    await say(journal, *TRIP, VAGUE, "And then?", "Are they always real?")
    assert await DriftWatch(journal, HashEmbedder()).look(now=110.0) == 0


async def test_too_few_messages_are_no_topic_yet(journal: SqlJournal) -> None:
    await say(journal, *TRIP[:2], SCRIPT)
    assert await DriftWatch(journal, HashEmbedder(), turns_min=3).look(now=110.0) == 0
    assert await DriftWatch(journal, HashEmbedder(), turns_min=2).look(now=110.0) == 1


async def test_two_processes_that_look_at_once_make_one_batch(journal: SqlJournal) -> None:
    await say(journal, *TRIP, SCRIPT)
    for _ in range(2):
        await DriftWatch(journal, HashEmbedder()).look(now=110.0)
    assert await due(journal) == ("drift", TRIP)
    assert await due(journal) == ("", [])


async def test_a_session_is_looked_at_once_per_new_turn(journal: SqlJournal) -> None:
    await say(journal, *TRIP)
    embedder = Counting()
    watch = DriftWatch(journal, embedder)
    await watch.look(now=110.0)
    await watch.look(now=111.0)
    assert embedder.texts == TRIP
    await say(journal, SCRIPT, start=112.0)
    assert await watch.look(now=113.0) == 1
    assert await watch.look(now=114.0) == 0


async def test_of_many_sessions_those_that_wait_longest_come_first_and_none_is_left_out(journal: SqlJournal) -> None:
    for number in range(3):
        await say(journal, *TRIP, SCRIPT, scope=Scope(f"user-{number}", session="s1"), start=100.0 + 10 * number)
    watch = DriftWatch(journal, HashEmbedder(), sessions_max=2)
    assert [await watch.look(now=140.0) for _ in range(3)] == [2, 1, 0]


class Reads:
    """The journal; counts how often it was asked for sessions."""

    def __init__(self, journal: SqlJournal) -> None:
        self._journal = journal
        self.asked = 0

    async def waiting_sessions(self, *, turns_min: int, opened_after: float) -> list[WaitingSession]:
        self.asked += 1
        return await self._journal.waiting_sessions(turns_min=turns_min, opened_after=opened_after)

    async def waiting_turns(self, user: str, session: str) -> list[Turn]:
        return await self._journal.waiting_turns(user, session)

    async def cut_session(self, user: str, session: str, *, before: float) -> None:
        await self._journal.cut_session(user, session, before=before)


async def test_where_nothing_was_written_the_journal_is_left_alone_for_a_while(journal: SqlJournal) -> None:
    reads, written = Reads(journal), [0]
    watch = DriftWatch(reads, HashEmbedder(), last_write=lambda: written[-1])
    await watch.look(now=100.0)
    await watch.look(now=105.0)
    assert reads.asked == 1
    await say(journal, *TRIP, SCRIPT)
    written.append(1)
    assert await watch.look(now=110.0) == 1
    assert await watch.look(now=110.0 + REST_S) == 0  # a write may have escaped notice
    assert reads.asked == 3


async def test_nobody_rests_before_all_sessions_were_looked_at(journal: SqlJournal) -> None:
    for number in range(3):
        await say(journal, *TRIP, SCRIPT, scope=Scope(f"user-{number}", session="s1"))
    watch = DriftWatch(journal, HashEmbedder(), sessions_max=2, last_write=lambda: "the same")
    assert [await watch.look(now=110.0) for _ in range(3)] == [2, 1, 0]


async def test_a_session_that_fell_silent_is_not_looked_at(journal: SqlJournal) -> None:
    await say(journal, *TRIP, SCRIPT)
    embedder = Counting()
    assert await DriftWatch(journal, embedder, look_back_s=60.0).look(now=200.0) == 0
    assert embedder.texts == []


async def test_what_an_embedder_could_not_do_is_made_up_for(journal: SqlJournal) -> None:
    await say(journal, *TRIP, SCRIPT)
    embedder = Counting()
    watch = DriftWatch(journal, embedder)
    embedder.down = True
    with pytest.raises(EmbedderError):
        await watch.look(now=110.0)
    embedder.down = False
    assert await watch.look(now=111.0) == 1


async def test_semmems_own_block_says_nothing_about_the_topic(journal: SqlJournal) -> None:
    await say(journal, *TRIP, f"<<{TRIP[0]} {TRIP[1]}>> {SCRIPT}")
    watch = DriftWatch(journal, HashEmbedder(), strip_block=lambda text: text.rpartition(">>")[2])
    assert await watch.look(now=110.0) == 1


def axis(*weights: float) -> Vector:
    vector = np.array(weights, dtype=np.float32)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


@pytest.mark.parametrize(
    ("vectors", "telling", "place"),
    [
        ([axis(1, 0)] * 4, [True] * 4, None),
        ([axis(1, 0), axis(1, 0), axis(0, 1), axis(0, 1)], [True] * 4, 2),
        ([axis(1, 0), axis(1, 0), axis(0, 1), axis(0, 1)], [True, True, False, True], 3),
        ([axis(1, 0), axis(1, 0), axis(0, 1), axis(1, 0)], [False, False, True, True], 3),
        ([axis(1, 0), axis(1, 0), axis(0, 1)], [False, False, True], None),
        ([axis(1, 0), axis(-1, 0), axis(0, 1)], [True, True, True], None),
        ([], [], None),
    ],
    ids=["one topic", "two", "mute", "mute before", "only mute before", "no direction", "nothing"],
)
def test_the_first_telling_message_unlike_the_telling_ones_before_it(
    vectors: list[Vector], telling: list[bool], place: int | None
) -> None:
    assert first_drift(vectors, telling, threshold=0.15, turns_min=2) == place
