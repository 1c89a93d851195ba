"""What the journal's own erasures leave of a conversation, when a client goes on with it at another replica."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec import structs

from semmem.background.writers import JournalWriter
from semmem.memory import Forgetting, Scope
from tests.core.turns.talk import ReticentJournal, Talk
from tests.support.empty_journal import empty_journal

TEA, MILK, SUGAR, CAKE = "I like tea", "I drink milk", "I take sugar", "I eat cake"


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[ReticentJournal]:
    opened = ReticentJournal(empty_journal(tmp_path / "journal.db"))
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def talk(journal: ReticentJournal) -> Talk:
    return Talk(journal)


async def erase(talk: Talk, writer: JournalWriter | None = None, **scope: str) -> None:
    """As the owner of erasures does: what waits goes, then what is in the journal."""
    what = Forgetting(structs.replace(Scope("alice"), **scope), talk.now)
    turned_away = writer.forget(what)[1] if writer is not None else []
    hold, _ = await talk.journal.begin_erasure(what, now=talk.now, turned_away=turned_away)
    await talk.journal.finish_erasure(what, hold)


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("restarted", [False, True])
async def test_unanswered_words_that_were_erased_do_not_come_back_with_the_next_ones(
    talk: Talk, restarted: bool, silent: bool
) -> None:
    await talk.ask(TEA, session="s")
    await erase(talk)
    if restarted:
        talk.restart()
    talk.journal.silent = silent
    await talk.ask(TEA, MILK, session="s")
    assert await talk.learn() == {MILK: 1}


async def test_the_same_words_said_again_after_the_erasure_are_learnt(talk: Talk) -> None:
    await talk.ask(TEA, session="s")
    await erase(talk)
    await talk.ask(TEA, session="s")
    assert await talk.learn() == {TEA: 1}


@pytest.mark.parametrize("asked_before", [(TEA,), (TEA, MILK)])
async def test_what_never_left_the_queue_is_known_to_the_others_after_its_erasure(
    talk: Talk, asked_before: tuple[str, ...]
) -> None:
    """The journal was locked while it was said. Another replica is asked next, in the same conversation."""
    there = Talk(talk.journal)
    writer = JournalWriter(talk.journal, interval_s=0.0)
    talk.queue.offer = writer.offer  # type: ignore[method-assign]
    await talk.ask(*asked_before, session="s")
    await erase(talk, writer)
    await writer.flush()
    there.now = talk.now
    await there.ask(*asked_before, SUGAR, session="s")
    assert await there.learn() == {SUGAR: 1}
