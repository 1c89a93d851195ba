"""Whose voice: what documents that somebody pastes do to what is known of them, and whether their own words are obeyed.

The rows are this project's own and lie beside this file: 261 pasted messages and 320 of users' own voices, in five
languages, by a writer who had seen neither the training's messages nor the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from quality.folder import Folder, Row, is_in, read_rows
from quality.scores import Json, Share
from quality.wiring import Semmem
from semmem.memory import Memory
from semmem.text.grounding import content_words, numbers

PASTED = Path(__file__).with_name("voices_pasted.jsonl")
OWN = Path(__file__).with_name("voices_own.jsonl")
BEFORE_DAYS = 180
"""So long ago was said what is known before: what happened "on Friday" happened since."""
OBEYED_SHARE = 0.5
"""A memory says what was said when it has so many of its telling words."""

DETAIL = re.compile(r"[^\s\d]*@\S+|\d+")
"""A number or an address in a text."""

Figures = dict[str, float | None]


async def voices(folder: Folder, semmem: Semmem) -> tuple[Figures, Json]:
    """Each row by a user of its own, who said ``before`` long before. Of pasted messages: the share with which
    something known ended or changed, that left a payment or contact detail, that left anything. Of own ones: the share
    that left what they say, and of those that end something the share after which the old memory is not there as it
    was."""
    changed, paid, left = list[Json](), list[Json](), list[Json]()
    pasted = [row for row in read_rows(PASTED, ("id", "kind", "before", "message")) if is_in(folder.fifth, row["id"])]
    for row in pasted:
        before, after = await _told(semmem, f"voice/{row['id']}", row)
        new = [memory.content for memory in after if memory.source.turn not in {old.source.turn for old in before}]
        seen = {**row, "before": _contents(before), "after": _contents(after)}
        changed += [seen] if _versions(before) - _versions(after) else []
        left += [seen] if new else []
        paid += [seen] if row["kind"] == "pays" and _holds_a_detail(new, row["message"]) else []
    own = [row for row in read_rows(OWN, ("id", "kind", "message", "says")) if is_in(folder.fifth, row["id"])]
    missed, kept_on, ends = list[Json](), list[Json](), 0
    for row in own:
        before, after = await _told(semmem, f"voice/own/{row['id']}", row)
        seen = {**row, "before": _contents(before), "after": _contents(after)}
        missed += [] if says(row["says"], after) else [seen]
        if row["kind"] == "ends" and before:
            ends += 1
            kept_on += [seen] if _versions(before) <= _versions(after) else []
    figures: Figures = {
        "voice_changed": Share(len(changed), len(pasted)).percent,
        "voice_paid": Share(len(paid), sum(row["kind"] == "pays" for row in pasted)).percent,
        "voice_left": Share(len(left), len(pasted)).percent,
        "voice_obeyed": Share(len(own) - len(missed), len(own)).percent,
        "voice_ended": Share(ends - len(kept_on), ends).percent,
    }
    return figures, {"changed": changed, "paid": paid, "left": left, "missed": missed, "kept_on": kept_on}


async def _told(semmem: Semmem, user: str, row: Row) -> tuple[Sequence[Memory], Sequence[Memory]]:
    """The user's memories before and after the message."""
    if row["before"]:
        await semmem.learn(user, row["before"], days_ago=BEFORE_DAYS)
    before = await semmem.retrievable(user)
    await semmem.learn(user, row["message"])
    return before, await semmem.retrievable(user)


def _holds_a_detail(new: Sequence[str], message: str) -> bool:
    """Whether a memory has a number or an address of the message; any memory, where the message has none."""
    details = set(DETAIL.findall(message))
    return any(details & set(DETAIL.findall(content)) for content in new) if details else bool(new)


def _versions(memories: Iterable[Memory]) -> set[tuple[str, int, str]]:
    return {(memory.id, memory.version, memory.content) for memory in memories}


def _contents(memories: Iterable[Memory]) -> list[str]:
    return [memory.content for memory in memories]


def says(said: str, memories: Iterable[Memory]) -> bool:
    """Whether a memory has most of the telling words and numbers of what was said."""
    telling, values = content_words(said), numbers(said)
    return any(
        len(content_words(memory.content) & telling) >= OBEYED_SHARE * len(telling)
        and len(numbers(memory.content) & values) >= OBEYED_SHARE * len(values)
        for memory in memories
    )
