"""Whether what somebody prefers is shown when a question calls for it that shares few words with it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from quality.folder import Folder, Row
from quality.scores import Json, Share, each, mean, pooled
from quality.telling import Said, tell
from quality.wiring import DAY_S, NOT_SEARCHED, NOW, Semmem
from semmem.text import stop_words

HOUR_S = 3600.0
SHARED_WORDS_MIN = 2
"""Content words of a preference that a note must hold to be taken for it."""
_LONGER = re.compile(r"[^\W\d_]{4,}")

Figures = dict[str, float | None]


async def injected(folder: Folder, semmem: Semmem) -> tuple[Figures, Json]:
    """Each preference a memory of its user's, put straight into the store."""
    rows = folder.rows("preferences")
    for number, row in enumerate(rows):
        await semmem.remember(_user(row, "injected"), _memory_id(number), row["preference"], at=NOW - DAY_S + number)
    shown = _Shown()
    for number, row in enumerate(rows):
        found = await semmem.recalled(row["question"], _user(row, "injected"))
        ids = [hit.memory.id for hit in found.hits]
        shown.note(row, _memory_id(number) in ids, len(ids), skipped=found.outcome in NOT_SEARCHED)
    return {"preference_injected": shown.percent}, shown.json()


async def told(folder: Folder, semmem: Semmem) -> tuple[Figures, Json]:
    """Each preference a message of its user's, in a session of its own, an hour after the one before."""
    rows = folder.rows("preferences")
    said: dict[str, list[Said]] = defaultdict(list)
    for number, row in enumerate(rows):
        theirs = said[_user(row, "told")]
        theirs.append(Said(row["preference"], NOW - DAY_S + HOUR_S * len(theirs), f"session-{number}"))
    turns = await tell(semmem, said)
    shown, stored = _Shown(), 0
    taken: dict[str, int] = defaultdict(int)
    for row in rows:
        user = _user(row, "told")
        turn = turns[user][taken[user]]
        taken[user] += 1
        stored += any(memory.source.turn == turn for memory in await semmem.retrievable(user))
        found = await semmem.recalled(row["question"], user)
        sources = [hit.memory.source.turn for hit in found.hits]
        shown.note(row, turn in sources, len(sources), skipped=found.outcome in NOT_SEARCHED)
    return {"preference_told": shown.percent}, {"stored": Share(stored, len(rows)).json(), **shown.json()}


async def talks(folder: Folder, semmem: Semmem) -> tuple[Figures, Json]:
    """The preference said in passing, in one session of a user's own; it is known again by its content words."""
    rows = folder.rows("talks")
    users = {f"talk/{number}": row for number, row in enumerate(rows)}
    await tell(semmem, {user: _talk(row["turns"]) for user, row in users.items()})
    shown, stored = _Shown(), []
    for user, row in users.items():
        wanted = content_words(row["preference"])
        stored.append(any(_is_about(memory.content, wanted) for memory in await semmem.retrievable(user)))
        notes = await semmem.notes(row["question"], user)
        shown.note(row, any(_is_about(note, wanted) for note in notes), len(notes))
    figures = {"talk_injected": shown.percent, "talk_stored": Share.of(stored).percent}
    return figures, shown.json()


def content_words(text: str) -> set[str]:
    """Its words as they stand, without short ones and those of grammar."""
    return set(_LONGER.findall(text.casefold())) - stop_words.ENGLISH


def _is_about(note: str, wanted: set[str]) -> bool:
    return len(wanted & content_words(note)) >= min(SHARED_WORDS_MIN, len(wanted))


class _Shown:
    """What the questions were shown, by topic where they have one."""

    def __init__(self) -> None:
        self._right: dict[str, list[bool]] = defaultdict(list)
        self._lines: list[int] = []
        self._skipped = 0
        self._missed: list[str] = []

    def note(self, row: Row, right: bool, lines: int, *, skipped: bool = False) -> None:
        self._right[row.get("topic") or str(row.get("id", "")).partition(":")[0]].append(right)
        self._lines.append(lines)
        self._skipped += skipped
        if not right:
            self._missed.append(f"{row['question']} / {row['preference']}")

    @property
    def percent(self) -> float | None:
        return pooled(self._shares.values())

    @property
    def _shares(self) -> dict[str, Share]:
        return {topic: Share.of(flags) for topic, flags in self._right.items()}

    def json(self) -> Json:
        return {
            "questions": len(self._lines),
            "lines_per_question": mean(self._lines),
            "nothing_shown": sum(not lines for lines in self._lines),
            "skipped": self._skipped,
            "by_topic": each(self._shares),
            "missed": self._missed,
        }


def _talk(turns: Iterable[str]) -> list[Said]:
    return [Said(text, NOW - DAY_S + 60.0 * number, "talk") for number, text in enumerate(turns)]


def _user(row: Row, way: str) -> str:
    return f"preferences-{way}/{row['user']}"


def _memory_id(number: int) -> str:
    return f"mem_preference_{number:06d}"
