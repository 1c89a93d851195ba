"""What people tell an assistant over weeks, and what is in the notes when they ask in a new session."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection, Sequence

from quality.folder import Folder, Row
from quality.scores import Json, Share, each, mean, pooled
from quality.telling import Said, tell
from quality.wiring import DAY_S, NOW, Semmem
from semmem.retrieval.context import neutralise

CROWD = 60
"""Memories of other people's preferences among which each story is asked for once more."""
CROWD_DAYS = 120
SEED = 20261122
SPACE_S = 60.0
"""Between two messages of a day."""

Figures = dict[str, float | None]


async def stories(folder: Folder, semmem: Semmem) -> tuple[Figures, Json]:
    """Each story told by a user of its own; then asked for, alone and among a crowd."""
    users = {f"story/{row['id']}": row for row in folder.rows("stories")}
    await tell(semmem, {user: said(row["turns"]) for user, row in users.items()})
    alone = _Asked()
    for user, row in users.items():
        await alone.ask(semmem, user, row)
    figures, details = {"stories_right": alone.percent}, {"alone": alone.json()}
    crowd = sorted({row["preference"] for row in folder.rows("preferences")})
    if not crowd:
        return figures | {"stories_crowded": None}, details
    crowded = _Asked()
    for user, row in users.items():
        others = drawn(crowd, row["id"])
        for number, text in enumerate(others):
            at = NOW - DAY_S * (1 + number * CROWD_DAYS / CROWD)
            await semmem.remember(user, f"mem_crowd_{row['id']}_{number:03d}", text, at=at)
        await crowded.ask(semmem, user, row, not_notes={neutralise(text) for text in others})
    return figures | {"stories_crowded": crowded.percent}, details | {"crowded": crowded.json()}


def said(turns: Sequence[Row]) -> list[Said]:
    """Turns as they were said: ``days_ago`` before NOW, in their order."""
    return [
        Said(turn["text"], NOW - DAY_S * turn["days_ago"] - SPACE_S * (len(turns) - number) - 3600.0, turn["session"])
        for number, turn in enumerate(turns)
    ]


def drawn(crowd: Sequence[str], story: str) -> list[str]:
    """The same memories for the same story and crowd."""
    return random.Random(f"{SEED}/{story}").sample(crowd, min(CROWD, len(crowd)))


def is_served(ask: Row, notes: Sequence[str], shown: int) -> bool:
    """Whether the notes hold one of each group of ``expect`` and nothing of ``must_not``; for an ask that wants nothing
    whether nothing was ``shown``, notes or not. Case does not count."""
    if ask.get("nothing"):
        return not shown
    text = "\n".join(notes).casefold()
    expected = all(any(word.casefold() in text for word in group) for group in ask["expect"])
    return expected and not any(word.casefold() in text for word in ask.get("must_not", ()))


class _Asked:
    """The asks of all stories, by kind of story; those that want nothing are a kind of their own."""

    def __init__(self) -> None:
        self._right: dict[str, list[bool]] = defaultdict(list)
        self._lines: list[int] = []
        self._missed: list[Json] = []

    async def ask(self, semmem: Semmem, user: str, row: Row, *, not_notes: Collection[str] = ()) -> None:
        for ask in row["asks"]:
            lines = await semmem.notes(ask["text"], user)
            notes = [line for line in lines if not any(text in line for text in not_notes)]
            right = is_served(ask, notes, len(lines))
            self._right["asks for nothing" if ask.get("nothing") else row["kind"]].append(right)
            self._lines.append(len(lines))
            if not right:
                self._missed.append({"story": row["id"], **ask, "notes": notes})

    @property
    def percent(self) -> float | None:
        return pooled(Share.of(flags) for flags in self._right.values())

    def json(self) -> Json:
        return {
            "asks": len(self._lines),
            "lines_per_ask": mean(self._lines),
            "by_kind": each({kind: Share.of(flags) for kind, flags in self._right.items()}),
            "missed": self._missed,
        }
