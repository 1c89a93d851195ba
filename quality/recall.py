"""What is found for a question, and what is injected although nothing was asked of memory."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from quality.folder import Folder, Row
from quality.gate import SOCIAL, by_intent, general_questions
from quality.library import Library, bfcl_library, first_person_library
from quality.scores import Json, Share, each, hit_at, mean, pooled, recall_at
from quality.wiring import DAY_S, NOW, Semmem

UTILITIES = (
    "timer", "alarm", "calculator", "translate", "definition", "spelling", "measurement_conversion", "roll_dice",
    "flip_coin", "time", "date",
)  # fmt: skip
"""Intents of CLINC150 that a tool or nobody's memory answers."""

Figures = dict[str, float | None]


async def first_person(folder: Folder, semmem: Semmem) -> tuple[Figures, Json]:
    """Facts about the user, asked for by the user; and noise, since it needs the same stores."""
    library = await first_person_library(folder, semmem)
    ranked: list[tuple[float, float]] = []
    injected: list[float] = []
    shown = skipped = 0
    for row in folder.rows("first_person_questions"):
        if gold := library.answerable(row["user"], row["evidence"]):
            user = library.user(row["user"])
            order = library.found(row["user"], await semmem.ranked(row["question"], user))
            ranked.append((recall_at(order, gold, 5), recall_at(order, gold, 10)))
            reason, hits = await semmem.request(row["question"], user)
            injected.append(recall_at(library.found(row["user"], hits), gold, 5))
            shown += len(hits)
            skipped += reason is not None
    figures: Figures = {
        "first_person_r5": mean(five for five, _ in ranked),
        "first_person_r10": mean(ten for _, ten in ranked),
        "injected_r5": mean(injected),
    }
    details: Json = {
        "questions": len(ranked),
        "questions_without_evidence_in_store": len(folder.rows("first_person_questions")) - len(ranked),
        "users": len(library.evidence),
        "skipped": skipped,
        "injected_per_question": shown / len(injected) if injected else None,
    }
    noise, by_kind = await _noise(folder, semmem, library)
    return figures | noise, {"first_person": details, "noise": by_kind}


async def _noise(folder: Folder, semmem: Semmem, library: Library) -> tuple[Figures, Json]:
    """Each message goes to one user's store; the users take turns."""
    users = library.users
    if not users:
        return {"noise": None}, {}
    shares: dict[str, Share] = {}
    for kind, texts in unrelated(folder).items():
        answers = [await semmem.request(text, users[number % len(users)]) for number, text in enumerate(texts)]
        shares[kind] = Share.of(bool(hits) for _, hits in answers)
    return {"noise": pooled(shares.values())}, each(shares)


def unrelated(folder: Folder) -> dict[str, list[str]]:
    """Messages that have nothing to do with anybody's memories, by kind."""
    return {**general_questions(folder), **by_intent(folder, (*SOCIAL, *UTILITIES))}


async def bfcl(folder: Folder, semmem: Semmem) -> tuple[Figures, Json]:
    """Long turns as they were said, and short questions."""
    library = await bfcl_library(folder, semmem)
    hits: dict[str, list[tuple[float, float]]] = {}
    for row in folder.rows("bfcl_questions"):
        if gold := library.answerable(row["scenario"], row["evidence"]):
            order = library.found(row["scenario"], await semmem.ranked(row["question"], library.user(row["scenario"])))
            hits.setdefault(row["scenario"], []).append((hit_at(order, gold, 1), hit_at(order, gold, 5)))
    return _two("bfcl_hit1", "bfcl_hit5", hits)


async def locomo(folder: Folder, semmem: Semmem) -> tuple[Figures, Json]:
    """Turns of two people's long conversations, a second apart in each session, in the order of the file."""
    library = Library("locomo")
    for row in folder.rows("locomo_turns"):
        owner = row["conversation"]
        second = len(library.evidence.get(owner, ()))
        await library.add(semmem, owner, spoken(row), [row["id"]], said_at(row) + second)
    shares: dict[str, list[tuple[float, float]]] = {}
    for row in folder.rows("locomo_questions"):
        owner = row["conversation"]
        if gold := library.answerable(owner, row["evidence"]):
            hits = await semmem.ranked(row["question"], library.user(owner), library.asked_at[owner])
            order = library.found(owner, hits)
            kind = f"category {row.get('category', 'unknown')}"
            shares.setdefault(kind, []).append((recall_at(order, gold, 5), recall_at(order, gold, 10)))
    return _two("locomo_r5", "locomo_r10", shares)


def spoken(row: Row) -> str:
    """A turn as it is stored: with its speaker in front, since the questions ask about one of the two by name."""
    return f"{row['speaker']}: {row['text']}" if row.get("speaker") else str(row["text"])


def said_at(row: Row) -> float:
    """The turn's ``date`` ("1:56 pm on 8 May, 2023") in seconds since the epoch, as if it were UTC."""
    found = re.fullmatch(r"(\d+:\d+ [ap]m) on (\d+ \w+),? (\d{4})", str(row.get("date", "")).strip())
    if found is None:
        return NOW - DAY_S
    when = datetime.strptime(" ".join(found.groups()), "%I:%M %p %d %B %Y")
    return when.replace(tzinfo=UTC).timestamp()


def _two(one: str, other: str, by_group: Mapping[str, Sequence[tuple[float, float]]]) -> tuple[Figures, Json]:
    pairs = [pair for group in by_group.values() for pair in group]
    details = {
        name: {one: mean(a for a, _ in group), other: mean(b for _, b in group), "questions": len(group)}
        for name, group in sorted(by_group.items())
    }
    return {one: mean(a for a, _ in pairs), other: mean(b for _, b in pairs)}, details
