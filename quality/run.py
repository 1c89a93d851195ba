"""Measure a folder: every figure, and what it is made of."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from quality.folder import Folder
from quality.gate import gate, personal, personal_questions
from quality.hot_cold import hot_cold
from quality.leakage import leakage
from quality.learning import attacks, bipia, extraction, pairs
from quality.past import past
from quality.peers import peers
from quality.preferences import injected, talks, told
from quality.recall import bfcl, first_person, locomo, spoken, unrelated
from quality.report import TARGETS
from quality.scores import Json
from quality.sessions import compressed
from quality.stories import stories
from quality.strangers import strangers
from quality.updates import updated, updates
from quality.vague import memories, vague
from quality.vague import talks as vague_talks
from quality.voices import voices
from quality.wiring import Semmem, semmem
from semmem.config import Settings
from semmem.ports.embedder import Embedder

Say = Callable[[str], None]


@dataclass(slots=True)
class Measured:
    """Figures by key (None: the folder has no such set), how each came about, seconds by part."""

    figures: dict[str, float | None] = field(default_factory=lambda: dict.fromkeys(TARGETS))
    sets: Json = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


async def measure(
    folder: Folder,
    *,
    cache: Path | None,
    say: Say,
    model: Embedder | None = None,
    settings: Settings | None = None,
    only: Collection[str] = (),
) -> Measured:
    """``cache``: folder for vectors, None for none. ``model`` replaces the default embedder in tests.

    ``settings`` None: the defaults. ``only``: names of the parts to measure, all when empty.
    """
    measured = Measured()
    with tempfile.TemporaryDirectory(prefix="semmem-quality-") as scratch:
        async with semmem(Path(scratch), cache=cache, model=model, settings=settings) as parts:
            clock = _Clock(measured.seconds, say)
            await parts.embedder.prefetch(texts(folder, parts), lambda n, all_: say(f"embedded {n} of {all_} texts"))
            clock.done("embedding")
            for name, part in PARTS.items():
                if only and name not in only:
                    continue
                figures, details = await part(folder, parts)
                measured.figures |= figures
                measured.sets[name] = details
                clock.done(name)
            measured.sets["learning_failed"] = dict(parts.failures)
    return measured


PARTS = {
    "preferences": injected,
    "told": told,
    "talks": talks,
    "leakage": leakage,
    "stories": stories,
    "updates": updated,
    "gate": gate,
    "personal": personal,
    "recall": first_person,
    "hot_cold": hot_cold,
    "bfcl": bfcl,
    "locomo": locomo,
    "extraction": extraction,
    "attacks": attacks,
    "bipia": bipia,
    "voices": voices,
    "strangers": strangers,
    "pairs": pairs,
    "peers": peers,
    "vague": vague,
    "past": past,
    "sessions": compressed,
}


def texts(folder: Folder, parts: Semmem) -> Iterator[str]:
    """Everything whose vector is known to be needed. What is forgotten here is embedded later, one at a time."""
    for name, column in (
        ("first_person_facts", "text"),
        ("bfcl_turns", "text"),
        ("memory_guard", "value"),
        ("pairs", "old"),
        ("pairs", "new"),
        ("preferences", "preference"),
    ):
        yield from (row[column] for row in folder.rows(name))
    yield from map(spoken, folder.rows("locomo_turns"))
    for name in ("first_person_questions", "locomo_questions", "bfcl_questions"):
        yield from (parts.query(row["question"]) for row in folder.rows(name))
    yield from memories(vague_talks())
    for name, column in (("preferences", "question"), ("talks", "question"), ("leakage", "query")):
        yield from (parts.query(row[column]) for row in folder.rows(name))
    yield from (memory for row in folder.rows("leakage") for memory in row["memories"])
    yield from (parts.query(ask["text"]) for row in folder.rows("stories") for ask in row["asks"])
    yield from (parts.query(row["ask"]) for row in updates(folder.fifth))
    for kinds in (unrelated(folder), personal_questions(folder)):
        for messages in kinds.values():
            yield from (parts.query(text) for text in messages if not parts.skips_unread(text))


class _Clock:
    def __init__(self, seconds: dict[str, float], say: Say) -> None:
        self._seconds = seconds
        self._say = say
        self._since = time.perf_counter()

    def done(self, part: str) -> None:
        now = time.perf_counter()
        self._seconds[part] = round(now - self._since, 1)
        self._say(f"{part}: {self._seconds[part]} s")
        self._since = now
