"""Contract of every journal: what a question for former conversations finds."""

from __future__ import annotations

import numpy as np
import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.background.derived import TalkPlacer
from semmem.memory import Role, Scope, Vector
from semmem.ports.conversations import conversation_id
from semmem.ports.errors import EmbedderError
from semmem.ports.talks import Placed
from tests.core.backends.test_journal_conversations import journal, say
from tests.support.fakes import HashEmbedder
from tests.support.journal_samples import ADA, HOSTILE, erase

__all__ = ["journal"]
HOME = Scope("ada", session="home")
TRIP = Scope("ada", session="trip")
BOB = Scope("bob", session="home")
ADAS = Scope("ada")


async def told(journal: SqlJournal) -> None:
    await say(journal, "t_1", "How do I oil the oak table?", "With linseed oil.", scope=HOME, at=100.0)
    await say(journal, "t_2", "And the bench?", "The same way.", scope=HOME, at=200.0)
    await say(journal, "t_3", "Where is a table to be had in Lisbon?", "At Ramiro.", scope=TRIP, at=300.0)
    await say(journal, "t_4", "Is my table oak?", "It is.", scope=BOB, at=400.0)


async def holding(
    journal: SqlJournal, *words: str, scope: Scope = ADAS, messages_max: int = 100, chars_max: int = 99
) -> list[str]:
    return await journal.talks_holding(scope, words, messages_max=messages_max, chars_max=chars_max, limit=5)


async def placed(journal: SqlJournal, scope: Scope = ADAS, embedder: HashEmbedder | None = None) -> list[Placed]:
    maker = embedder or HashEmbedder()
    while await TalkPlacer(journal, maker).some():
        pass
    return await journal.talk_vectors(scope, maker.signature, limit=100)


async def test_those_that_hold_most_of_the_words_come_first(journal: SqlJournal) -> None:
    await told(journal)
    assert await holding(journal, "oak", "linseed", "table") == [conversation_id(HOME), conversation_id(TRIP)]
    assert await holding(journal, "oak", scope=BOB) == [conversation_id(BOB)]
    assert await holding(journal, "oak", scope=TRIP) == []
    assert await holding(journal, "oak", messages_max=2) == []  # the newest two say nothing of it
    assert await holding(journal, "table", chars_max=20) == [conversation_id(TRIP)]  # of a message its beginning


async def test_no_word_is_a_pattern(journal: SqlJournal) -> None:
    await told(journal)
    for hostile in ("%", "_", "!", "o%k", *HOSTILE):
        assert await holding(journal, hostile) == []


async def test_of_a_time_are_those_in_which_anything_was_said_then(journal: SqlJournal) -> None:
    await told(journal)
    found = [
        await journal.talks_of_time(ADAS, since=since, until=until, limit=2)
        for since, until in [(None, None), (150.0, 250.0), (250.0, None), (None, 50.0)]
    ]
    both = [conversation_id(TRIP), conversation_id(HOME)]
    assert found == [both, [both[1]], [both[0]], []]


async def test_it_is_read_from_the_turn_that_is_near_and_then_from_the_beginning(journal: SqlJournal) -> None:
    await told(journal)
    for turn, first in (("", "How do"), ("t_2", "And th"), ("t_9", "How do")):
        (talk,) = await journal.read_talks(ADAS, {conversation_id(HOME): turn}, messages_max=3, chars_max=6)
        assert (talk.session, talk.title, talk.at) == ("home", "How do I oil the oak table?", 201.0)
        assert (talk.said[0].role, talk.said[0].text, len(talk.said)) == (Role.USER, first, 3)
    assert await journal.read_talks(BOB, {conversation_id(HOME): ""}, messages_max=3, chars_max=6) == []


async def test_a_turn_far_behind_is_read_all_the_same(journal: SqlJournal) -> None:
    for number in range(10):
        await say(journal, f"t_{number}", f"Question {number}", scope=HOME, at=100.0 + number)
    (talk,) = await journal.read_talks(ADAS, {conversation_id(HOME): "t_8"}, messages_max=4, chars_max=99)
    assert [said.text for said in talk.said] == ["Question 8", "Question 9", "Question 0", "Question 1"]


async def test_what_users_said_gets_a_vector_once_and_another_one_of_another_model(journal: SqlJournal) -> None:
    await told(journal)
    found = await placed(journal)
    assert [(each.turn, each.talk) for each in found] == [
        ("t_3", conversation_id(TRIP)), ("t_2", conversation_id(HOME)), ("t_1", conversation_id(HOME)),
    ]  # fmt: skip
    expected = await HashEmbedder().embed("And the bench?")
    assert np.allclose(np.frombuffer(found[1].vector, dtype=np.float16), expected, atol=1e-3)
    assert await journal.unplaced(HashEmbedder().signature, limit=9) == []
    assert len(await journal.unplaced("another", limit=9)) == 4


async def test_an_answer_that_is_replaced_leaves_the_vector_and_one_that_is_erased_takes_it_along(
    journal: SqlJournal,
) -> None:
    await told(journal)
    await placed(journal)
    await say(journal, "t_3", "Where is a table to be had in Lisbon?", "At Rosa.", scope=TRIP, at=300.0)
    assert len(await placed(journal)) == 3
    await erase(journal, TRIP, at=1000.0)
    assert [each.turn for each in await placed(journal)] == ["t_2", "t_1"]
    await journal.place(HashEmbedder().signature, {("t_3", "", 0): b"late"})
    assert len(await journal.talk_vectors(ADAS, HashEmbedder().signature, limit=9)) == 2


async def test_words_that_are_none_are_done_without_a_vector(journal: SqlJournal) -> None:
    await say(journal, "t_1", "   ", "Yes?", scope=ADA)
    assert await placed(journal, ADA) == []
    assert await journal.unplaced(HashEmbedder().signature, limit=9) == []


class Choosy(HashEmbedder):
    """Has no vector for some words, or for none."""

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        if self.refuses in text:
            raise EmbedderError("no vector")
        return await super().embed(text, within_s=within_s)

    refuses = "oak table"


async def test_nobody_waits_behind_words_that_the_embedder_refuses_and_none_is_given_up_while_it_is_away(
    journal: SqlJournal,
) -> None:
    await told(journal)
    choosy = Choosy()
    choosy.refuses = ""
    with pytest.raises(EmbedderError):
        await TalkPlacer(journal, choosy).some()
    assert len(await journal.unplaced(choosy.signature, limit=9)) == 4
    choosy.refuses = "oak table"
    assert [each.turn for each in await placed(journal, embedder=choosy)] == ["t_3", "t_2"]
    assert await journal.unplaced(choosy.signature, limit=9) == []
