"""Trains the decision and writes semmem/retrieval/decide/decision.npz.

    DATA=folder [VECTORS=cache.npz] python -m training.train_decision [--without SET] [--out FILE]

``MODEL``: the embedding model that it is learnt for, multilingual or all-MiniLM-L6-v2. ``folder`` holds
signals/clinc150.jsonl, signals/general_facts_*.jsonl and retrieval/bfcl_memory_*.jsonl; our own scenes and sentences
are part of the package. ``--without clinc | nq | trivia | bfcl`` leaves a set out, so that what is measured on it was
learnt without it. docs/decision.md says what the figures are.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from semmem.config.backends_section import MULTILINGUAL, EmbeddingSection
from semmem.ports.embedder import Embedder, learnt_for
from semmem.retrieval.decide import fitting, scenes
from semmem.retrieval.decide.fitting import Material
from semmem.retrieval.decide.trained import SHIPPED, Floats
from semmem.wiring.models import chosen

SETS = ("clinc", "nq", "trivia", "bfcl")
GENERAL = {"nq": ("nq",), "trivia": ("geography", "history")}
SOCIAL = ("greeting", "goodbye", "thank_you")
TOOLS = (
    "timer", "alarm", "calculator", "translate", "definition", "spelling", "measurement_conversion", "roll_dice",
    "flip_coin", "time", "date",
)  # fmt: skip
"""Intents of CLINC150 that want nothing of anybody's memories, as the social ones."""
INTENTS: dict[str, tuple[str, ...]] = {
    "courtesy": (
        *SOCIAL, "are_you_a_bot", "what_is_your_name", "how_old_are_you", "fun_fact", "tell_joke", "who_made_you",
        "where_are_you_from", "what_are_your_hobbies", "do_you_have_pets", "who_do_you_work_for", "meaning_of_life",
        "what_can_i_ask_you",
    ),
    "task": (
        *TOOLS, "weather", "shopping_list_update", "todo_list_update", "play_music", "next_song", "smart_home", "text",
        "make_call", "change_volume", "change_speed", "reminder_update", "calendar_update", "distance", "traffic",
        "exchange_rate", "share_location", "find_phone", "whisper_mode", "repeat", "cancel",
    ),
    "advice": (
        "restaurant_suggestion", "travel_suggestion", "recipe", "meal_suggestion", "what_song",
        "ingredient_substitution", "how_busy", "travel_alert", "vaccines", "improve_credit_score", "food_last",
    ),
    "recall": (
        "user_name", "meeting_schedule", "reminder", "calendar", "todo_list", "shopping_list", "pto_balance",
        "bill_due", "balance", "payday", "order_status", "last_maintenance", "current_location",
    ),
}  # fmt: skip
"""Class of request -> intents of CLINC150."""
ROWS_OF_INTENT, ROWS_OF_GENERAL, LOOSE_OF_GENERAL = 100, 1000, 2000

Row = dict[str, Any]


def material(folder: Path, without: str | None) -> Material:
    """Everything to learn from, but for one set."""
    found = scenes.material()
    for name, files in GENERAL.items():
        if name != without:
            for file in files:
                _add_general(found, [row["text"] for row in _rows(folder / f"signals/general_facts_{file}.jsonl")])
    if without != "clinc":
        _add_intents(found, _rows(folder / "signals/clinc150.jsonl"))
    if without != "bfcl":
        _add_answered(found, folder)
    found.asking += [(text, False, 0.5) for text in found.loose]
    return found


def _add_general(found: Material, texts: Sequence[str]) -> None:
    found.classes += [(text, "knowledge", 0.5) for text in texts[:ROWS_OF_GENERAL]]
    found.loose += texts[:LOOSE_OF_GENERAL]


def _add_intents(found: Material, rows: Sequence[Row]) -> None:
    names = {intent: name for name, intents in INTENTS.items() for intent in intents}
    seen: Counter[str] = Counter()
    for row in rows:
        name, intent = names.get(row["intent"]), row["intent"]
        seen[intent] += 1
        if name is not None and seen[intent] <= ROWS_OF_INTENT:
            found.classes.append((row["text"], name, 0.5))
        if intent in SOCIAL + TOOLS:
            found.loose.append(row["text"])
        elif name in ("advice", "recall") and seen[intent] % 3 == 0:
            found.asking.append((row["text"], True, 0.5))


def _add_answered(found: Material, folder: Path) -> None:
    turns, questions = (_rows(folder / f"retrieval/bfcl_memory_{name}.jsonl") for name in ("turns", "questions"))
    for scenario in dict.fromkeys(row["scenario"] for row in turns):
        held = [row for row in turns if row["scenario"] == scenario]
        asked = [row for row in questions if row["scenario"] == scenario]
        found.classes += [(row["question"], "recall", 2.0) for row in asked]
        found.asking += [(row["question"], True, 3.0) for row in asked]
        places = {turn["id"]: place for place, turn in enumerate(held)}
        answers = [(row["question"], {places[one] for one in row["evidence"] if one in places}) for row in asked]
        found.answered.append(([row["text"] for row in held], answers))


def _rows(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def embedder() -> Embedder:
    """The model that is named by ``MODEL``."""
    rules = EmbeddingSection(model=os.environ.get("MODEL", MULTILINGUAL))
    return chosen(rules, queue_max=1_000_000, background_batch_max=64)


class Vectors:
    """Embeds texts once, and keeps them in a file where one is named."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self.signature = embedder().signature
        self._known: dict[str, Floats] = {}
        if file is not None and file.exists():
            with np.load(file) as kept:
                self._known = dict(zip(kept["texts"].tolist(), kept["vectors"], strict=True))

    def __call__(self, texts: Sequence[str]) -> Floats:
        new = sorted({text for text in texts if text not in self._known}, key=lambda text: (len(text), text))
        if new:
            asyncio.run(self._add(new))
        return np.stack([self._known[text] for text in texts])

    async def _add(self, texts: Sequence[str]) -> None:
        model = embedder()
        await model.open()
        try:
            for start in range(0, len(texts), 64):
                some = texts[start : start + 64]
                self._known |= dict(zip(some, await asyncio.gather(*map(model.embed, some)), strict=True))
        finally:
            await model.close()
        if self._file is not None:
            np.savez(self._file, texts=np.array(list(self._known)), vectors=np.stack(list(self._known.values())))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="train_decision", description=__doc__)
    parser.add_argument("--without", choices=SETS)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args(argv)
    file = os.environ.get("VECTORS")
    vectors = Vectors(Path(file) if file else None)
    found = material(Path(os.environ["DATA"]), arguments.without)
    sys.stderr.write(f"{len(found.scenes)} scenes, {len(found.loose)} loose requests\n")
    out = arguments.out or learnt_for(SHIPPED, vectors.signature)
    fitting.fit(found, vectors, vectors.signature).save(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
