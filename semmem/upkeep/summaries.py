"""Several old memories become one, in a language model's words, when these are all the user's own.

A summary is a claim about what the memories say, and it takes their place. So it must be made of their words, keep
every number and name of them, and pass the screen; else the memories stay as they are."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from semmem.lifecycle.spared import superseded
from semmem.lifecycle.writes import Writes
from semmem.memory import SUMMARISED, SUMMARY_OF, Memory, MemoryType
from semmem.ports.errors import ModelRefused
from semmem.ports.models import exactly
from semmem.text.grounding import SourceText, names, numbers
from semmem.upkeep.consolidation import cosines, unchanged
from semmem.upkeep.model_writing import ModelWriting, WritingRules, Written, made_id, one_line

_RULES = Path(__file__).with_suffix(".txt").read_text("utf-8").rstrip("\n")
_SCHEMA = exactly(content={"type": "string"})


@dataclass(frozen=True, slots=True)
class SummaryRules(WritingRules):
    """Related means a cosine of ``cosine_min`` with the oldest of them; ``size_min`` to ``size_max`` memories become
    one. ``groups_max`` groups are looked at in one call, each for one call of the model."""

    cosine_min: float = 0.5
    size_min: int = 3
    size_max: int = 8
    groups_max: int = 5


class Summariser(ModelWriting[SummaryRules]):
    """Finds related old memories of one user, and replaces them by a summary."""

    async def related(self, memories: Iterable[Memory], *, older_than: float, now: float) -> list[tuple[Memory, ...]]:
        """Groups of related memories last said before ``older_than`` (seconds), oldest first; no summaries of such."""
        old = [m for m in memories if m.is_retrievable(now) and m.updated_at < older_than and not _is_made(m)]
        return await asyncio.to_thread(self._related, old)

    async def summarise(self, memories: tuple[Memory, ...]) -> Written:
        """Ask the model, and look at what it says. Raises ModelUnavailable."""
        told = _RULES.format(chars_max=self.rules.chars_max)
        try:
            items = await self._items(told, (memory.content for memory in memories), _SCHEMA)
        except ModelRefused:
            return Written(memories, reason="refused")
        content = next((text for item in items if (text := one_line(item.get("content"))) is not None), "")
        return Written(memories, content, self.refusal(content, memories))

    def refusal(self, content: str, memories: Sequence[Memory]) -> str:
        """Why a text may not take the place of these memories, in one word; empty when it may. Beside what makes any
        text unfit ``incomplete``: it lost a word, number or name of theirs, or turned one of them into its opposite."""
        if unfit := self._unfit(content, memories):
            return unfit
        lost = any(numbers(memory.content) - numbers(content) for memory in memories)
        named = {name for memory in memories for name in names(memory.content)}
        told = SourceText(content)
        kept = all(told.grounds(memory.content, share_min=1.0) for memory in memories)
        return "" if kept and not lost and named <= _names_of(content) else "incomplete"

    async def replace(self, summary: Written, *, hold_id: str, now: float) -> Memory | None:
        """Put the summary in its memories' place, under a hold of their user. None when any of them changed meanwhile.
        Raises StoreError, JournalError and EmbedderError."""
        originals = [await unchanged(self.store, memory) for memory in summary.of]
        found = [memory for memory in originals if memory is not None]
        if len(found) < len(originals):
            return None
        written = await self._memory(summary, now)
        # First what stays: a crash then leaves doubles, not holes.
        if not await self._put(written, found, hold_id):
            return None
        writes = Writes(self.store, self.records, hold_id)
        for old in found:
            await writes.replace(old, superseded(old, written.id, now, SUMMARISED))
        return written

    def _related(self, memories: Sequence[Memory]) -> list[tuple[Memory, ...]]:
        buckets: dict[tuple[str, str], list[Memory]] = {}
        for memory in sorted(memories, key=lambda memory: (memory.updated_at, memory.id)):
            buckets.setdefault((memory.type, memory.project or ""), []).append(memory)
        found = [group for bucket in buckets.values() for group in self._bucket(bucket)]
        return found[: self.rules.groups_max]

    def _bucket(self, memories: list[Memory]) -> Iterable[tuple[Memory, ...]]:
        alike = cosines(memories)
        free = np.ones(len(memories), dtype=bool)
        for place in range(len(memories)):
            near = np.flatnonzero((alike[place] >= self.rules.cosine_min) & free)
            nearest = sorted(near.tolist(), key=lambda other: -alike[place, other])[: self.rules.size_max]
            if free[place] and len(nearest) >= self.rules.size_min:
                free[nearest] = False
                yield tuple(memories[other] for other in sorted(nearest))

    async def _memory(self, summary: Written, now: float) -> Memory:
        agents, sessions = ({getattr(memory, name) for memory in summary.of} for name in ("agent", "session"))
        return await self._written(
            summary.content,
            summary.of,
            "summary",
            now,
            id=made_id(sorted(f"{memory.id}:{memory.version}" for memory in summary.of)),
            type=summary.of[0].type,
            agent=agents.pop() if len(agents) == 1 else None,
            session=sessions.pop() if len(sessions) == 1 else None,
            metadata={SUMMARY_OF: [memory.id for memory in summary.of]},
            importance=max(memory.importance for memory in summary.of),
            updated_at=max(memory.updated_at for memory in summary.of),
        )


def _is_made(memory: Memory) -> bool:
    """Whether it is a summary, or a reflection, which would lose what it rests on."""
    return SUMMARY_OF in memory.metadata or memory.type is MemoryType.REFLECTIVE


def _names_of(content: str) -> set[str]:
    """Also a name at the beginning of a sentence, where any word has a capital."""
    return names(content) | names("x " + content.replace(". ", " "))
