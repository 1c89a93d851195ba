"""Questions for former conversations: whether they are known for such, and what is shown of which conversation.

Conversations and questions are this project's own and lie beside this file, so the figures need no folder of data. The
questions were written without a look at what finds them; those of the fold ``held`` were looked at once.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from quality.folder import Folder
from quality.scores import Json, mean
from quality.wiring import Semmem
from semmem.backends.sql.journal import SqlJournal
from semmem.background.derived import TalkPlacer
from semmem.memory import Role, Scope, Turn
from semmem.ports.conversations import FIRST_ANSWER, ConversationLimits, Said, SaidHalf, Step, conversation_id
from semmem.ports.embedder import shipped_for
from semmem.retrieval.past_talks import PastTalks
from semmem.retrieval.query.past_conversations import SHIPPED, LooksBack

FILE = Path(__file__).with_name("conversations.jsonl")
USER = "past/user"
NOW = datetime.fromisoformat("2026-11-22T12:00:00+00:00").timestamp()
ANSWERED_AFTER_S = 5.0
SPOKEN_EVERY_S = 60.0
ALL_S = 30.0
"""No question waits in vain here."""

Figures = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Asked:
    """``wants``: the conversations asked for, none where none is; ``answer``: what a note of them has to say."""

    text: str
    wants: frozenset[str]
    answer: str
    is_held: bool


def rows() -> tuple[dict[str, list[tuple[str, str, float]]], list[Asked]]:
    """Conversations by name, as what was said, what was answered and when; and the questions."""
    talks: dict[str, list[tuple[str, str, float]]] = {}
    asked: list[Asked] = []
    for row in map(json.loads, FILE.read_text(encoding="utf-8").splitlines()):
        if row["kind"] == "conversation":
            at = datetime.fromisoformat(row["at"]).timestamp()
            said = [message["content"] for message in row["messages"]]
            turns = zip(said[::2], said[1::2], strict=True)
            talks[row["id"]] = [(*turn, at + SPOKEN_EVERY_S * place) for place, turn in enumerate(turns)]
        else:
            wants = frozenset(row.get("wants", ()))
            asked.append(Asked(row["text"], wants, row.get("answer", ""), row["fold"] == "held"))
    return talks, asked


async def past(_folder: Folder, semmem: Semmem) -> tuple[Figures, Json]:
    """``past_found``: of questions for conversations, those that are shown every one they ask for; ``past_answered``:
    those whose answer is in what is shown; ``past_false``: of near misses, those that are shown any."""
    talks, asked = rows()
    async with _recorded(talks, semmem) as journal:
        looking = _past_talks(journal, semmem)
        folds = {"all": asked, "held": [one for one in asked if one.is_held]}
        known = {one.text: await _shown(looking, semmem, one.text) for one in asked}
        details: Json = {fold: _figures(some, known) for fold, some in folds.items()}
    return dict(details["all"]), {**details, "conversations": len(talks), "questions": len(asked)}


def _past_talks(journal: SqlJournal, semmem: Semmem) -> PastTalks:
    learnt = LooksBack.load(shipped_for(SHIPPED, semmem.embedder.signature))
    fits = learnt.signature == semmem.embedder.signature
    return PastTalks(journal, timeout_s=ALL_S, model=learnt.signature if fits else "", learnt=learnt if fits else None)


@asynccontextmanager
async def _recorded(talks: dict[str, list[tuple[str, str, float]]], semmem: Semmem) -> AsyncIterator[SqlJournal]:
    with tempfile.TemporaryDirectory(prefix="semmem-quality-") as scratch:
        journal = SqlJournal(Path(scratch) / "journal.db")
        await journal.open()
        try:
            for name, turns in talks.items():
                await _record(journal, name, turns)
            placer = TalkPlacer(journal, semmem.embedder)
            while await placer.some():
                pass
            yield journal
        finally:
            await journal.close()


async def _record(journal: SqlJournal, name: str, turns: Sequence[tuple[str, str, float]]) -> None:
    scope = Scope(USER, session=name)
    for number, (text, answer, at) in enumerate(turns, start=1):
        turn = Turn(f"{name}-{number}", scope, number, text, at)
        await journal.record([turn], [])
        step = Step("", FIRST_ANSWER, at)
        said = Said(FIRST_ANSWER, Role.ASSISTANT, answer, at + ANSWERED_AFTER_S)
        await journal.record_said([SaidHalf(turn.id, step, (said,))], ConversationLimits())


async def _shown(looking: PastTalks, semmem: Semmem, question: str) -> list[tuple[str, str]]:
    """The conversations that are shown, and what is told of each."""
    vector = await semmem.embedder.embed(question)
    wanted = looking.asked(question, vector, NOW)
    if wanted is None:
        return []
    hits = await looking.notes(wanted, Scope(USER), apart_from=None, vector=vector, until=None)
    return [(hit.memory.id, hit.memory.content) for hit in hits]


def _figures(asked: Sequence[Asked], known: dict[str, list[tuple[str, str]]]) -> Figures:
    questions = [one for one in asked if one.wants]
    others = [one for one in asked if not one.wants]
    return {
        "past_found": mean([100.0 * (_ids(one.wants) <= {name for name, _ in known[one.text]}) for one in questions]),
        "past_answered": mean([100.0 * any(one.answer in told for _, told in known[one.text]) for one in questions]),
        "past_false": mean([100.0 * bool(known[one.text]) for one in others]),
    }


def _ids(names: frozenset[str]) -> set[str]:
    return {conversation_id(Scope(USER, session=name)) for name in names}
