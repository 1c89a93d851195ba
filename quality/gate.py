"""Who is shown nothing: greetings and general questions should be, questions about the user should not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import cycle

from quality.folder import Folder
from quality.library import bfcl_library, first_person_library
from quality.scores import Json, Share, each, highest, lowest, pooled
from quality.wiring import NOBODY, NOT_SEARCHED, Semmem
from semmem.request.outcome import Outcome

SOCIAL = ("greeting", "goodbye", "thank_you")
"""Intents of CLINC150 that no memory helps with."""


async def gate(folder: Folder, semmem: Semmem) -> tuple[dict[str, float | None], Json]:
    """Figures, and each set's share, asked of the first-person set's users in turn.

    A courtesy or a general question is skipped when nothing is injected, for whatever reason; a question that only a
    memory can answer when the decision says that none can: whether one can is not known of every set.
    """
    users = (await first_person_library(folder, semmem)).users or [NOBODY]
    social = {name: await _nothing(semmem, users, texts) for name, texts in by_intent(folder, SOCIAL).items()}
    general = {name: await _nothing(semmem, users, texts) for name, texts in general_questions(folder).items()}
    reasons = {name: await _reasons(semmem, users, texts) for name, texts in personal_questions(folder).items()}
    personal = {name: Share.of(reason in NOT_SEARCHED for reason in found) for name, found in reasons.items()}
    figures = {
        "gate_social_skipped": pooled(social.values()),
        "gate_personal_skipped": pooled(personal.values()),
        "gate_personal_worst": highest(personal),
        "gate_general_skipped": pooled(general.values()),
        "gate_general_worst": lowest(general),
    }
    return figures, {
        "social_skipped": each(social),
        "personal_skipped": each(personal),
        "personal_outcomes": dict(Counter(reason.value for found in reasons.values() for reason in found)),
        "general_skipped": each(general),
    }


async def personal(folder: Folder, semmem: Semmem) -> tuple[dict[str, float | None], Json]:
    """Questions in the first person whose answer is stored: of how many is nothing shown at all?"""
    unserved: dict[str, Share] = {}
    outcomes: Counter[str] = Counter()
    libraries = {
        "first_person_questions": (await first_person_library(folder, semmem), "user"),
        "bfcl_questions": (await bfcl_library(folder, semmem), "scenario"),
    }
    for name, (library, owner) in libraries.items():
        stored = [row for row in folder.rows(name) if library.answerable(row[owner], row["evidence"])]
        found = [await semmem.recalled(row["question"], library.user(row[owner])) for row in stored]
        unserved[name] = Share.of(not one.hits for one in found)
        outcomes.update(f"{name}: {one.outcome}" for one in found)
    return {"personal_unserved": pooled(unserved.values())}, {"unserved": each(unserved), "outcomes": dict(outcomes)}


def by_intent(folder: Folder, intents: Iterable[str]) -> dict[str, list[str]]:
    rows = folder.rows("clinc")
    found = {intent: [row["text"] for row in rows if row["intent"] == intent] for intent in intents}
    return {intent: texts for intent, texts in found.items() if texts}


def general_questions(folder: Folder) -> dict[str, list[str]]:
    return {name: [row["text"] for row in rows] for name, rows in folder.files("general").items()}


def personal_questions(folder: Folder) -> dict[str, list[str]]:
    """Questions that only a memory can answer: those collected as such, and those of the retrieval sets that are in
    the first person."""
    found = {name: [row["text"] for row in rows] for name, rows in folder.files("personal").items()}
    for name in ("first_person_questions", "bfcl_questions"):
        if rows := folder.rows(name):
            found[name] = [row["question"] for row in rows]
    return found


async def _nothing(semmem: Semmem, users: Sequence[str], texts: Iterable[str]) -> Share:
    """How many are shown nothing."""
    return Share.of([not (await semmem.recalled(text, user)).hits for user, text in zip(cycle(users), texts)])


async def _reasons(semmem: Semmem, users: Sequence[str], texts: Iterable[str]) -> list[Outcome]:
    return [(await semmem.recalled(text, user)).outcome for user, text in zip(cycle(users), texts)]
