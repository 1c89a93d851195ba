"""No question for former conversations is shown an answer that was given with what is erased."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from semmem.memory import Memory, Role, Scope, Source
from semmem.passages.pieces import GIST, passage_id
from semmem.ports.conversations import (
    FIRST_ANSWER,
    ConversationLimits,
    Said,
    SaidHalf,
    Step,
    conversation_id,
)
from semmem.ports.session_states import ShownBlock
from semmem.retrieval.past_talks import PastTalks
from semmem.retrieval.query.past_conversations import asked_before
from tests.core.lifecycle.erased_world import ErasedWorld, erased_world

LIMITS = ConversationLimits()
ALICE = Scope("alice")
HOME, GARDEN, NOW_HERE = (Scope("alice", session=name) for name in ("home", "garden", "now"))
WORK = Scope("alice", "work", session="desk")
QUESTION = "What did we say about the colour of the fence?"


class Talker:
    """A user and a model who talk through one semmem, whose conversations are recorded."""

    def __init__(self, world: ErasedWorld) -> None:
        self.world = world
        self._late: list[SaidHalf] = []

    async def say(self, words: str, answer: str, scope: Scope, *shown: str, late: bool = False) -> str:
        """The turn's id. ``late``: the answer comes when all else is done."""
        at = time.time()
        turn = self.world.say(words, scope=scope, opened_at=at, answer=answer)
        await self.world.quiet()
        step = Step("", FIRST_ANSWER, at, shown=shown)
        said = SaidHalf(turn, step, (Said(FIRST_ANSWER, Role.ASSISTANT, answer, at),))
        await self.world.journal.record_said([SaidHalf(turn, step), *([] if late else [said])], LIMITS)
        self._late += [said] if late else []
        return turn

    async def answers_come(self) -> None:
        await self.world.journal.record_said(self._late, LIMITS)

    async def notes(self, question: str = QUESTION) -> str:
        past = PastTalks(self.world.journal, timeout_s=5.0)
        asked = asked_before(question, time.time())
        assert asked is not None
        hits = await past.notes(asked, ALICE, apart_from=NOW_HERE.session, vector=None, until=None)
        return "\n".join(hit.memory.content for hit in hits)

    async def is_told(self) -> bool:
        """Whether a note has the colour."""
        questions = (QUESTION, "Where did we leave off?", "What did we say about ultramarine?")
        return "ltramarine" in "".join([await self.notes(question) for question in questions])

    async def memory(self, content: str, **fields: Any) -> str:
        created = await self.world.create(content, **fields)
        return str(created.json()["id"])


async def test_after_a_memory_is_deleted_no_note_says_it_again_by_an_answer(tmp_path: Path) -> None:
    async with erased_world(tmp_path) as world:
        talker = Talker(world)
        fence = await talker.memory("The fence is ultramarine")
        await talker.say("Which colour has the fence?", "The fence is ultramarine.", HOME, fence)
        await talker.say("Shall I paint it?", "Paint the ultramarine fence in May.", HOME)
        await talker.say("What did we say about the fence?", "Ultramarine.", GARDEN, conversation_id(HOME))
        await talker.say("Which brush for the fence?", "A broad brush for the fence.", Scope("alice", session="x"))
        await talker.say("Is the fence blue?", "Ultramarine is blue.", Scope("alice", session="y"), fence, late=True)
        assert await talker.is_told()
        deleted = await world.delete(f"/{fence}")
        assert deleted.status_code == 200
        await talker.answers_come()
        assert not await talker.is_told()
        assert "A broad brush" in await talker.notes("What did we say about the brush?")
        kept = await world.journal.messages(ALICE, conversation_id(HOME))
        assert "The fence is ultramarine." in [message.content for message in kept]


async def test_after_a_memory_is_deleted_the_rest_of_the_conversation_it_was_told_in_does_not_say_it_again(
    tmp_path: Path,
) -> None:
    async with erased_world(tmp_path) as world:
        talker = Talker(world)
        turn = await talker.say("I prefer ultramarine for the fence.", "Noted: ultramarine.", HOME)
        await talker.say("Shall I paint the fence?", "Paint the ultramarine fence in May.", HOME)
        await talker.say("And the gate of the fence?", "Ultramarine too.", HOME, late=True)
        (told,) = await world.store.list(ALICE)
        assert told.source == Source(role="user", session="home", turn=turn, time=told.source.time)
        deleted = await world.delete(f"/{told.id}")
        assert deleted.status_code == 200
        await talker.answers_come()
        assert not await talker.is_told()
        assert "Shall I paint the fence?" in await talker.notes("Where did we leave off?")


@pytest.mark.parametrize("narrow", [{"project_id": "work"}, {"type": "semantic"}, {}], ids=["project", "type", "user"])
async def test_after_a_project_is_deleted_answers_elsewhere_do_not_say_it_again(
    tmp_path: Path, narrow: dict[str, str]
) -> None:
    async with erased_world(tmp_path) as world:
        talker = Talker(world)
        fence = await talker.memory("The fence is ultramarine", project_id="work")
        await talker.say("Tell of the office fence.", "The office has a fence.", WORK)
        await talker.say("Which colour has the fence?", "The fence is ultramarine.", HOME, fence)
        await talker.say("What did we say at work of the fence?", "Ultramarine.", GARDEN, conversation_id(HOME))
        await talker.say("Is the fence blue?", "Ultramarine is blue.", Scope("alice", session="y"), fence, late=True)
        assert (await world.delete(**narrow)).status_code == 200
        await talker.answers_come()
        assert not await talker.is_told()


@pytest.mark.parametrize("narrow", [{"session_id": "home"}, {}], ids=["session", "user"])
@pytest.mark.parametrize("place", [0, GIST])
async def test_after_a_session_is_deleted_answers_that_were_shown_what_was_said_in_it_do_not_say_it_again(
    tmp_path: Path, narrow: dict[str, str], place: int | str
) -> None:
    async with erased_world(tmp_path, passages=True) as world:
        talker = Talker(world)
        turn = await talker.say("I want the fence in ultramarine.", "An ultramarine fence suits a garden.", HOME)
        said = passage_id(turn, place)
        assert await world.store.get(ALICE, said) is not None
        await talker.say("Which colour has the fence?", "The fence is ultramarine.", GARDEN, said)
        await talker.say("Is the fence blue?", "Ultramarine is blue.", Scope("alice", session="y"), said, late=True)
        world.raw.down = True
        assert (await world.delete(**narrow)).status_code == 503
        world.raw.down = False
        assert await world.erasing.erasure.finish_pending() == 0
        await talker.answers_come()
        assert not await talker.is_told()


async def test_an_erasure_that_breaks_off_is_tried_again_and_withholds_what_was_answered_meanwhile(
    tmp_path: Path,
) -> None:
    async with erased_world(tmp_path) as world:
        talker = Talker(world)
        fence = await talker.memory("The fence is ultramarine")
        await talker.say("Which colour has the fence?", "The fence is ultramarine.", HOME, fence)
        world.raw.down = True
        assert (await world.delete(f"/{fence}")).status_code == 503
        assert world.erasing.erasure.pending == 1
        await talker.say("What did we say about the fence?", "Ultramarine.", GARDEN, conversation_id(HOME))
        world.raw.down = False
        assert await world.erasing.erasure.finish_pending() == 0
        assert not await talker.is_told()


async def test_a_block_that_was_made_while_the_record_still_had_it_is_repeated_to_no_loop(tmp_path: Path) -> None:
    async with erased_world(tmp_path) as world:
        fence = await Talker(world).memory("The fence is ultramarine")
        ledger = world.erasing.shown
        marks = world.journal.mark_memories

        async def in_between(memories: list[Memory], **times: float) -> int:
            page = await ledger.page("alice", "session", (), held=False, now=time.time())
            told = ((conversation_id(HOME), 1),)
            ledger.add(page, ShownBlock("message", "the answer was: ultramarine", told, 9, "t_1", "turn", time.time()))
            assert page.blocks
            return await marks(memories, **times)

        world.journal.mark_memories = in_between  # type: ignore[method-assign,assignment]
        await world.delete(f"/{fence}")
        assert not ledger.has_any("alice")
