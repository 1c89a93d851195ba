"""Who is searched for: greetings and general questions should not be, questions about the user must be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from quality.folder import Folder
from quality.scores import Json, Share, each, highest, lowest, pooled
from quality.wiring import Semmem

SOCIAL = ("greeting", "goodbye", "thank_you")
"""Intents of CLINC150 that no memory helps with."""


async def gate(folder: Folder, semmem: Semmem) -> tuple[dict[str, float | None], Json]:
    """Figures, and the share that is skipped in each set."""
    social = {name: await _skipped(semmem, texts) for name, texts in by_intent(folder, SOCIAL).items()}
    personal = {name: await _skipped(semmem, texts) for name, texts in personal_questions(folder).items()}
    general = {name: await _skipped(semmem, texts) for name, texts in general_questions(folder).items()}
    figures = {
        "gate_social_skipped": pooled(social.values()),
        "gate_personal_skipped": pooled(personal.values()),
        "gate_personal_worst": highest(personal),
        "gate_general_skipped": pooled(general.values()),
        "gate_general_worst": lowest(general),
    }
    everything = [text for texts in personal_questions(folder).values() for text in texts]
    reasons = Counter([reason for text in everything if (reason := await semmem.skips(text))])
    return figures, {
        "social_skipped": each(social),
        "personal_skipped": each(personal),
        "personal_skipped_reasons": dict(reasons),
        "general_skipped": each(general),
    }


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


async def _skipped(semmem: Semmem, texts: Iterable[str]) -> Share:
    return Share.of([await semmem.skips(text) is not None for text in texts])
