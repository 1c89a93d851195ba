"""What the closed forms leave open, judged by the trained model: from the two texts, their vectors, and the vectors of
what is left of each without the words that they share.

Reading is text work and embedding is the embedder's, so that nothing holds up the loop. Whoever cannot be asked has no
say: both statements stay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from semmem.extraction.contradiction.pair_model import nameless, parts, trained_for
from semmem.extraction.contradiction.verdict import Judged, Verdict, apart, bars_for, decided
from semmem.memory import Vector
from semmem.ports.embedder import Embedder
from semmem.ports.errors import EmbedderError, WorkLost, WorkTooSlow
from semmem.ports.text_work import TextWork


@dataclass(frozen=True, slots=True)
class Open:
    """A memory that may be repeated or contradicted. ``corrects``: what is said now follows right upon it."""

    content: str
    vector: Vector
    corrects: bool = False


@dataclass(frozen=True, slots=True)
class PairJudge:
    """Judges the nearest ``pairs_max`` memories of a fact, each of which costs up to two embeddings; further ones stay.
    Before one is retired, the two cost two more.

    For an ``embedder`` that no weights were trained for it calls every pair different.
    """

    embedder: Embedder
    text_work: TextWork
    budget_s: float = 1.0
    pairs_max: int = 8

    @property
    def is_trained(self) -> bool:
        return trained_for(self.embedder.signature) is not None

    async def judged(self, said: str, vector: Vector, memories: Sequence[Open]) -> list[Judged]:
        """In the order of the memories, nearest first."""
        asked = list(memories[: self.pairs_max]) if self.is_trained else []
        beside = [Judged(Verdict.DIFFERENT)] * (len(memories) - len(asked))
        try:
            return [*await self._judged(said, vector, asked), *beside] if asked else beside
        except (EmbedderError, WorkTooSlow, WorkLost):
            return [Judged(Verdict.DIFFERENT)] * len(memories)

    async def _judged(self, said: str, vector: Vector, asked: list[Open]) -> list[Judged]:
        left = await self.text_work.run(_parts, [old.content for old in asked], said, budget_s=self.budget_s)
        embedded = await self._embedded({text for pair in left for text in pair})
        nothing = np.zeros_like(vector)
        told = [(embedded.get(one, nothing), embedded.get(other, nothing)) for one, other in left]
        judged = await self.text_work.run(
            _decided, self.embedder.signature, asked, told, said, vector, budget_s=self.budget_s
        )
        for place, each in enumerate(judged):
            if each.verdict is Verdict.CONTRADICTION and await self._is_apart(asked[place], said, vector):
                judged[place] = Judged(Verdict.DIFFERENT, unsettled=True)
        return judged

    async def _is_apart(self, old: Open, said: str, vector: Vector) -> bool:
        """Names are values: they hide what a short statement is about ("I live in Ulm", "I have moved to Jena")."""
        one, other = await self.text_work.run(_nameless, old.content, said, budget_s=self.budget_s)
        embedded = await self._embedded({one, other})
        alike = float(embedded[one] @ embedded[other]) if one and other else None
        cosine = float(old.vector @ vector)
        bars = bars_for(self.embedder.signature)
        return await self.text_work.run(
            apart, old.content, said, cosine, alike, old.corrects, bars, budget_s=self.budget_s
        )

    async def _embedded(self, texts: set[str]) -> dict[str, Vector]:
        """The vector of each that is not empty."""
        some = sorted(text for text in texts if text)
        return dict(zip(some, await asyncio.gather(*map(self.embedder.embed, some)), strict=True))


def _parts(olds: list[str], said: str) -> list[tuple[str, str]]:
    return [parts(old, said) for old in olds]


def _nameless(old: str, said: str) -> tuple[str, str]:
    return nameless(old), nameless(said)


def _decided(
    signature: str, olds: list[Open], told: list[tuple[Vector, Vector]], said: str, vector: Vector
) -> list[Judged]:
    model = trained_for(signature)
    if model is None:
        return [Judged(Verdict.DIFFERENT)] * len(olds)
    return [
        decided(old.content, said, model.likelihoods(old.content, said, (old.vector, vector, *left)), old.corrects)
        for old, left in zip(olds, told, strict=True)
    ]
