"""``semmem calibrate``: the decision's numbers for another embedding model, from our own labelled requests."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from semmem.config.settings import Settings
from semmem.ports.embedder import Embedder
from semmem.retrieval.decide.trained import Floats, Trained
from semmem.wiring.models import embedder

if TYPE_CHECKING:
    from semmem.retrieval.decide.fitting import Material

EMBEDDED_AT_ONCE = 64
TOLD_EVERY = 20
"""Batches between two lines of progress."""
NO_LEARNER = "calibrating needs scikit-learn: pip install scikit-learn"

Say = Callable[[str], None]


class NotCalibrated(Exception):
    """Nothing was written; the message is for the person at the terminal."""


async def calibrate(settings: Settings, out: Path, say: Say) -> None:
    """Write weights for the configured embedding model. Minutes of one core. Raises EmbedderError, NotCalibrated."""
    scenes = _learner(out)
    model = await asyncio.to_thread(embedder, settings)
    try:
        await model.open()
        trained = await learnt(await asyncio.to_thread(scenes), model, say)
        await asyncio.to_thread(trained.save, out)
    except OSError as error:
        raise NotCalibrated(f"{out}: {error.strerror or error}") from error
    finally:
        await model.close()
    say(f"{out}: written for {trained.signature}")


def _learner(out: Path) -> Callable[[], Material]:
    """What reads our own labelled requests; before minutes are spent in vain. Raises NotCalibrated."""
    if not out.absolute().parent.is_dir():
        raise NotCalibrated(f"{out}: there is no such folder")
    try:
        from semmem.retrieval.decide import scenes
    except ImportError as missing:
        raise NotCalibrated(NO_LEARNER) from missing
    return scenes.material


async def learnt(material: Material, model: Embedder, say: Say) -> Trained:
    """What can be learnt from the material of an open model's vectors. Raises EmbedderError."""
    from semmem.retrieval.decide import fitting

    known = await _vectors(list(dict.fromkeys(fitting.texts_of(material))), model, say)

    def embed(texts: Sequence[str]) -> Floats:
        return np.stack([known[text] for text in texts])

    say(f"learning from {len(material.scenes)} scenes")
    return await asyncio.to_thread(fitting.fit, material, embed, model.signature)


async def _vectors(texts: Sequence[str], model: Embedder, say: Say) -> dict[str, Floats]:
    known: dict[str, Floats] = {}
    for batch, start in enumerate(range(0, len(texts), EMBEDDED_AT_ONCE)):
        some = texts[start : start + EMBEDDED_AT_ONCE]
        known |= dict(
            zip(some, await asyncio.gather(*(model.embed(text, within_s=math.inf) for text in some)), strict=True)
        )
        if batch % TOLD_EVERY == 0:
            say(f"{len(known)} of {len(texts)} texts embedded")
    return known
