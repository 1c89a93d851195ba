"""What several memories of a user show together: patterns that a language model sees, each with what it rests on.

A reflection adds to its memories and takes no one's place. It is a guess: it has to name the memories it rests on,
bring no name and no number that they have not, and pass the screens; and it goes when any of them goes. No reflection
is ever reflected on.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from semmem.lifecycle.reflected import bases, rests_on, stands
from semmem.lifecycle.writes import Writes
from semmem.memory import REFLECTION_OF, SUPERSEDED_WHY, UNFOUNDED, Memory, MemoryStatus, MemoryType, Scope
from semmem.ports.errors import ModelRefused
from semmem.ports.memory_records import WriteRecords
from semmem.ports.models import exactly
from semmem.ports.store import Store
from semmem.upkeep.model_writing import ModelWriting, WritingRules, Written, made_id, one_line

_RULES = Path(__file__).with_suffix(".txt").read_text("utf-8").rstrip("\n")
_NUMBERS = {"type": "array", "items": {"type": "integer"}}
_SCHEMA = exactly(patterns={"type": "array", "items": exactly(content={"type": "string"}, notes=_NUMBERS)})


@dataclass(frozen=True, slots=True)
class ReflectionRules(WritingRules):
    """Of each project the newest ``memories_max`` memories are looked at, of at most ``projects_max`` projects, each
    for one call of the model; at most ``patterns_max`` patterns each, which rest on ``size_min`` memories or more."""

    grounded_share_min: float = 0.3
    memories_max: int = 100
    projects_max: int = 5
    patterns_max: int = 5
    size_min: int = 3


class Reflector(ModelWriting[ReflectionRules]):
    """Finds patterns in one user's memories, and keeps them."""

    def material(self, memories: Iterable[Memory], now: float) -> list[tuple[Memory, ...]]:
        """What is looked at together: of one project, newest first, no reflections."""
        projects: dict[str, list[Memory]] = {}
        for memory in sorted(memories, key=lambda memory: (-memory.updated_at, memory.id)):
            if memory.is_retrievable(now) and memory.type is not MemoryType.REFLECTIVE:
                projects.setdefault(memory.project or "", []).append(memory)
        enough = [group for group in projects.values() if len(group) >= self.rules.size_min]
        return [tuple(group[: self.rules.memories_max]) for group in enough[: self.rules.projects_max]]

    async def reflect(self, memories: tuple[Memory, ...]) -> list[Written]:
        """Ask the model, and look at what it says. Raises ModelUnavailable."""
        rules = self.rules
        told = _RULES.format(patterns_max=rules.patterns_max, size_min=rules.size_min, chars_max=rules.chars_max)
        notes = ({"number": place, "note": memory.content} for place, memory in enumerate(memories, 1))
        try:
            items = await self._items(told, notes, _SCHEMA)
        except ModelRefused:
            return []
        patterns = [
            self._judged(content, item["notes"], memories)
            for item in items
            if (content := one_line(item.get("content"))) is not None and isinstance(item.get("notes"), list)
        ]
        return patterns[: rules.patterns_max]

    async def keep(self, reflection: Written, *, hold_id: str, now: float) -> Memory | None:
        """Remember it, under a hold of its user. None where it is known already, or one of its memories is another by
        now. Raises StoreError, JournalError and EmbedderError."""
        user = reflection.of[0].user
        found = [await self.store.get(Scope(user), memory.id) for memory in reflection.of]
        made = await self._memory(reflection, now)
        before = await self.store.get(Scope(user), made.id)
        if before is not None and before.status is not MemoryStatus.SUPERSEDED:
            return None
        if not stands(made, {memory.id: memory for memory in found if memory is not None}):
            return None
        if before is not None:
            made = replace(made, version=before.version + 1, created_at=before.created_at)
        return made if await self._put(made, reflection.of, hold_id, before) else None

    def _judged(self, content: str, notes: Sequence[object], memories: Sequence[Memory]) -> Written:
        """``too_few``: memories that it rests on."""
        places = dict.fromkeys(each for each in notes if type(each) is int and 1 <= each <= len(memories))
        of = tuple(memories[place - 1] for place in places)
        too_few = content and len(of) < self.rules.size_min
        return Written(of, content, "too_few" if too_few else self._unfit(content, of))

    async def _memory(self, reflection: Written, now: float) -> Memory:
        return await self._written(
            reflection.content,
            reflection.of,
            "reflection",
            now,
            id=made_id(["reflection", *sorted(memory.id for memory in reflection.of)]),
            type=MemoryType.REFLECTIVE,
            metadata={REFLECTION_OF: rests_on(reflection.of)},
            importance=sum(memory.importance for memory in reflection.of) / len(reflection.of),
        )


async def withdraw(store: Store, records: WriteRecords, memories: Sequence[Memory], *, hold_id: str, now: float) -> int:
    """End the reflections among all of a user's memories that do not stand any more; how many. Under a hold.

    Where a memory is gone for good its reflection is, too, since that may say what it said; otherwise it is superseded.
    Raises StoreError and JournalError.
    """
    everything = {memory.id: memory for memory in memories}
    writes, ended = Writes(store, records, hold_id), 0
    for memory in memories:
        if memory.status is not MemoryStatus.ACTIVE or stands(memory, everything):
            continue
        if bases(memory).keys() <= everything.keys():
            ended += await writes.replace(memory, _unfounded(memory, now))
        else:
            await writes.retract(memory)
            ended += 1
    return ended


def _unfounded(old: Memory, now: float) -> Memory:
    metadata = {**old.metadata, SUPERSEDED_WHY: UNFOUNDED}
    return replace(old, version=old.version + 1, status=MemoryStatus.SUPERSEDED, updated_at=now, metadata=metadata)
