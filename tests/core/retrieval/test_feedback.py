"""What votes add to a memory's log-odds: smoothed, bounded, and nothing for whoever did not vote."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from semmem.memory import Memory, Standing, Vector
from semmem.ports.memory_records import VoteRow
from semmem.retrieval.decide.decision import Decision, Verdict
from semmem.retrieval.feedback import DOWN_MOST, UP_MOST, Votes
from semmem.retrieval.index.memory_index import MemoryIndex
from tests.core.retrieval.decide.test_decision import ASKED, made, memory, topics, vector


def said(memory_id: str, *, up: int = 0, down: int = 0, user: str = "ada", number: int = 1, at: float = 1.0) -> VoteRow:
    return VoteRow(user, memory_id, up, down, at, number)


def shift(row: VoteRow, of: Memory) -> float:
    votes = Votes([row]).of("ada")
    assert votes is not None
    return votes.shift(of)


def judged(decision: Decision, memories: list[Memory], asked: Vector = ASKED) -> Verdict:
    index, mask = MemoryIndex(memories), np.ones(len(memories), dtype=np.bool_)
    return decision.verdict("so what", asked, index, index.scores("so what", asked, mask), mask)


@pytest.mark.parametrize(
    ("up", "down", "expected"),
    [(0, 1, -1.466), (0, 4, -2.663), (1, 1, 0.0), (0, 1000, -DOWN_MOST), (1, 0, UP_MOST), (1000, 0, UP_MOST)],
)
def test_votes_are_smoothed_and_bounded(up: int, down: int, expected: float) -> None:
    assert shift(said("mem_0", up=up, down=down), memory(0, None)) == pytest.approx(expected, abs=0.001)


def test_a_memory_that_was_said_again_after_the_vote_is_judged_anew() -> None:
    again = replace(memory(0, None), updated_at=2.0)
    assert shift(said("mem_0", down=9, at=1.0), again) == 0.0
    assert shift(said("mem_0", down=9, at=2.0), again) < 0


def test_what_did_not_help_is_not_shown_where_it_hardly_fits_and_still_where_it_is_asked_for() -> None:
    decision = Decision(made(), Votes([said("mem_0", down=9, number=1), said("mem_1", down=9, number=2)]))
    verdict = judged(decision, topics(0.6, 0.4, 0.4))  # log-odds 6, 4 and 4; the cut is at 3
    assert verdict.shown.tolist() == [True, False, True]


def test_what_helped_is_not_shown_where_it_does_not_fit() -> None:
    assert not judged(Decision(made(), Votes([said("mem_0", up=20)])), topics(0.2)).shown.any()


def test_what_is_decided_of_the_request_stays() -> None:
    without, with_votes = (
        judged(Decision(made()), topics(0.4)),
        judged(Decision(made(), Votes([said("mem_0", down=20)])), topics(0.4)),
    )
    assert without.request == with_votes.request


def test_what_a_user_must_not_is_not_voted_away() -> None:
    must = [memory(0, vector(topic=0.5, kind=0.5), Standing.MUST)]
    without = judged(Decision(made()), must).logits
    with_votes = judged(Decision(made(), Votes([said("mem_0", down=20)])), must).logits
    assert without is not None
    assert with_votes is not None
    assert with_votes == pytest.approx(without, abs=0.1 * DOWN_MOST)


def test_another_users_votes_change_nothing() -> None:
    votes = Votes([said("mem_0", down=20, user="bea")])
    assert judged(Decision(made(), votes), topics(0.4)).shown.all()


def test_a_vote_counts_from_the_next_question_on_and_is_taken_back_by_others() -> None:
    votes = Votes()
    decision, memories = Decision(made(), votes), topics(0.4)
    index, mask = MemoryIndex(memories), np.ones(1, dtype=np.bool_)

    def shown() -> bool:
        return bool(decision.verdict("so what", ASKED, index, index.scores("so what", ASKED, mask), mask).shown[0])

    stamps = [decision.feedback_stamp("ada")]
    assert shown()
    votes.take([said("mem_0", down=9, number=1)])
    stamps.append(decision.feedback_stamp("ada"))
    assert not shown()
    votes.take([said("mem_0", up=9, down=9, number=2)])
    stamps.append(decision.feedback_stamp("ada"))
    assert shown()
    assert stamps[0] == 0
    assert len(set(stamps)) == 3


def test_of_what_is_erased_nothing_is_known() -> None:
    votes = Votes([said("mem_0"), said("mem_1", number=2), said("mem_9", user="bea", number=3)])
    votes.forget("ada", ["mem_0"])
    assert len(votes) == 2
    votes.forget("ada")
    assert (votes.of("ada"), len(votes)) == (None, 1)


def test_all_of_them_read_again_take_the_place_of_what_was_known() -> None:
    votes = Votes([said("mem_0", number=4)])
    votes.take([said("mem_9", user="bea", number=3)], whole=True)
    assert (votes.of("ada"), len(votes)) == (None, 1)
