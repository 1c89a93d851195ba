"""Follow-ups that mean nothing alone ("How much?"): what the words of earlier messages are worth to them.

The talks are this project's own and lie beside this file, so the figure needs no folder of data. All memories, right
and wrong ones of every talk, are one user's: a question competes with what the other questions are about.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from quality.folder import Folder
from quality.scores import Json, hit_at, mean
from quality.wiring import DAY_S, NOW, Semmem, asked
from semmem.memory import Conversation, Message, Role
from semmem.retrieval.query.build import is_vague

TALKS = Path(__file__).with_name("vague.jsonl")
USER = "vague/user"
AT = 5
ANSWER = "All right."
"""What the assistant says after each message: nothing that a search could profit from."""

Figures = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Talk:
    """What was ``said`` before, the ``question``, the memory that answers it, and memories that resemble an answer."""

    said: tuple[str, ...]
    question: str
    memory: str
    distractors: tuple[str, ...]

    @property
    def conversation(self) -> Conversation:
        before = [m for text in self.said for m in (Message(Role.USER, text), Message(Role.ASSISTANT, ANSWER))]
        return Conversation((*before, Message(Role.USER, self.question)))


def talks() -> list[Talk]:
    rows = map(json.loads, TALKS.read_text(encoding="utf-8").splitlines())
    return [Talk(tuple(row["said"]), row["question"], row["memory"], tuple(row["distractors"])) for row in rows]


async def vague(_folder: Folder, semmem: Semmem) -> tuple[Figures, Json]:
    """Recall of the one right memory at 5, with the query as a request has it; beside it the question alone."""
    everything = talks()
    for number, text in enumerate(memories(everything)):
        await semmem.remember(USER, f"mem_vague_{number:03d}", text, at=NOW - DAY_S)
    ways: Mapping[str, list[float]] = {"alone": [], "prepend": []}
    missed: list[str] = []
    for talk in everything:
        ways["alone"].append(await _found(semmem, talk, asked(talk.question)))
        ways["prepend"].append(await _found(semmem, talk, talk.conversation))
        if not ways["prepend"][-1]:
            missed.append(f"{' / '.join(talk.said)} / {talk.question}")
    details: Json = {f"{way}_r{AT}": mean(found) for way, found in ways.items()}
    details |= {"talks": len(everything), "known_to_be_vague": sum(is_vague(t.question) for t in everything)}
    return {"vague_r5": mean(ways["prepend"])}, {**details, "missed": missed}


def memories(everything: list[Talk]) -> Iterator[str]:
    for talk in everything:
        yield talk.memory
        yield from talk.distractors


async def _found(semmem: Semmem, talk: Talk, conversation: Conversation) -> float:
    hits = await semmem.rank(conversation, USER)
    return hit_at([(hit.memory.content,) for hit in hits], {talk.memory}, AT)
