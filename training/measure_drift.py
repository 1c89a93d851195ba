"""How well a change of topic is seen at several thresholds, on own_conversations.jsonl beside this file.

    python -m training.measure_drift

Each line of the file is what one user said in a conversation about one topic. ``false`` counts conversations that are
cut although nothing changed. Then every ordered pair of conversations is one session, the first four messages of one
and all of the other: ``at`` is the share that is cut where the topic changes, ``later`` after that, ``early`` before.
"""

from __future__ import annotations

import asyncio
import json
import sys
from itertools import permutations
from pathlib import Path

from semmem.config.backends_section import EmbeddingSection
from semmem.extraction.drift import CONTENT_WORDS_MIN, first_drift
from semmem.memory import Vector
from semmem.text.grounding import content_words
from semmem.wiring.models import chosen

OWN_FILE = Path(__file__).with_name("own_conversations.jsonl")
THRESHOLDS = (0.05, 0.10, 0.12, 0.15, 0.18, 0.20, 0.25)
TURNS_MIN = 3
FIRST_PART = 4

Talk = list[tuple[Vector, bool]]
"""Each message's vector, and whether it tells what it is about."""


async def talks() -> list[Talk]:
    embedder = chosen(EmbeddingSection(), queue_max=1_000_000)
    await embedder.open()
    lines = OWN_FILE.read_text().splitlines()
    found = [
        [
            (await embedder.embed(text), len(content_words(text)) >= CONTENT_WORDS_MIN)
            for text in json.loads(line)["said"]
        ]
        for line in lines
    ]
    await embedder.close()
    return found


def place(talk: Talk, threshold: float) -> int | None:
    vectors, telling = zip(*talk, strict=True)
    return first_drift(vectors, telling, threshold=threshold, turns_min=TURNS_MIN)


def figures(found: list[Talk], threshold: float) -> str:
    false = sum(place(talk, threshold) is not None for talk in found)
    places = [place([*one[:FIRST_PART], *other], threshold) for one, other in permutations(found, 2)]
    at = sum(cut == FIRST_PART for cut in places) / len(places)
    later = sum(cut is not None and cut > FIRST_PART for cut in places) / len(places)
    early = sum(cut is not None and cut < FIRST_PART for cut in places) / len(places)
    return f"{threshold:.2f}  false {false}/{len(found)}  at {at:.2f}  later {later:.2f}  early {early:.2f}"


async def main() -> None:
    found = await talks()
    sys.stdout.writelines(f"{figures(found, threshold)}\n" for threshold in THRESHOLDS)


if __name__ == "__main__":
    asyncio.run(main())
