"""What an erasure takes along and does not mean: what a memory said elsewhere before, and what it had replaced. Pure.

A memory that is told another value goes with what was said last. Erasing that alone leaves what it said before, in
another session perhaps, as a memory of its own; and what it was that replaced another one no longer stands in its way.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from semmem.memory import (
    CONTRADICTED,
    PROVISIONAL,
    REPEATED,
    SUPERSEDED_BY,
    SUPERSEDED_WHY,
    Forgetting,
    Memory,
    MemoryStatus,
)

ROOT_BYTES_MAX = 1000
"""Of a memory's id, within that of what is left of it: a store takes 1,024 bytes."""

Successor = tuple[str, str]
"""The id of the memory that took another one's place, and a reason word."""


@dataclass(frozen=True, slots=True)
class Spared:
    """What is left of a memory that goes: ``memory``, and what it had said before, newest first. What was replaced
    ``before`` then (seconds) was replaced by that."""

    memory: Memory
    history: tuple[Memory, ...]
    before: float


def means(what: Forgetting, version: Memory) -> bool:
    """Whether an erasure means this version of a memory that it takes: by where and when it was said. What a memory
    said is of one type, though an earlier version was of another."""
    return replace(what, types=()).covers(version)


def said_elsewhere(what: Forgetting, memory: Memory, versions: Sequence[Memory]) -> list[Memory]:
    """The earlier versions (oldest first) that are not meant, newest first. Not what was taken back: after that the
    memory said again what was said before it."""
    found, said_at = [], memory.said_at
    for version in reversed(versions):
        if version.said_at > said_at:
            continue
        said_at = version.said_at
        if not means(what, version):
            found.append(version)
    return found


def spared_id(memory_id: str, version: int) -> str:
    """Of a version that becomes a memory of its own; the same whether it is spared at once or after a later one, and
    never that of the memory it was a version of."""
    root, _, number = memory_id.rpartition("_v")
    root = root if root and number.isdecimal() else memory_id
    if len(root.encode("utf-8", "surrogatepass")) > ROOT_BYTES_MAX:
        root = hashlib.sha256(root.encode("utf-8", "surrogatepass")).hexdigest()
    made = f"{root}_v{version}"
    return made if made != memory_id else f"{memory_id}_v{version}"


def is_spared(memory: Memory) -> bool:
    """Whether its id is one that ``spared_id`` gives."""
    root, _, number = memory.id.rpartition("_v")
    return bool(root) and number.isdecimal()


def as_own(version: Memory) -> Memory:
    """The version as a memory of its own, which no batch has to confirm."""
    return as_settled(replace(version, id=spared_id(version.id, version.version)))


def replaced_before(version: Memory, known: Iterable[Memory]) -> float:
    """Until when (seconds) what was replaced was replaced by this version, of all that are known of a memory."""
    following = [each.updated_at for each in known if each.version == version.version + 1]
    return following[0] if following else math.nextafter(version.updated_at, math.inf)


def as_settled(memory: Memory) -> Memory:
    return without(memory, PROVISIONAL)


def reinstated(old: Memory, now: float) -> Memory:
    """The version of a superseded memory that is retrieved again, since what took its place went."""
    told = without(old, SUPERSEDED_BY, SUPERSEDED_WHY)
    return replace(told, version=old.version + 1, status=MemoryStatus.ACTIVE, updated_at=now)


def replaced_by(memory: Memory, successor: Successor | None) -> Memory:
    """The same memory in the shade of another one, or of none."""
    if successor is None:
        return replace(without(memory, SUPERSEDED_BY, SUPERSEDED_WHY), status=MemoryStatus.ACTIVE)
    by, why = successor
    metadata = {**memory.metadata, SUPERSEDED_BY: by, SUPERSEDED_WHY: why}
    return replace(memory, status=MemoryStatus.SUPERSEDED, metadata=metadata)


def superseded(old: Memory, by: str, now: float, why: str = CONTRADICTED) -> Memory:
    """The version of a memory that is no longer retrieved; ``by`` is the memory that took its place, ``why`` a word."""
    return replace(replaced_by(old, (by, why)), version=old.version + 1, updated_at=now)


def successor_of(memory: Memory) -> Successor | None:
    """What took its place, as far as it says so."""
    by, why = memory.metadata.get(SUPERSEDED_BY), memory.metadata.get(SUPERSEDED_WHY)
    is_told = memory.status is MemoryStatus.SUPERSEDED and isinstance(by, str)
    return (str(by), str(why)) if is_told else None


class Heirs:
    """Who has replaced a memory, when those that are ``going`` are gone; ``left`` of some of them, by the same id."""

    def __init__(self, going: Mapping[str, Memory], left: Mapping[str, Spared]) -> None:
        self._going = going
        self._left = left

    def of(self, successor: Successor, at: float, *, but: str = "") -> Successor | None:
        """Whoever stays of those that replaced each other since ``at``; None where none of them does. ``but``: not what
        is left of this one."""
        by, why = successor
        seen = {but}
        while by in self._going and by not in seen:
            seen.add(by)
            left, gone = self._left.get(by), self._going[by]
            if left is not None and at < left.before:
                return left.memory.id, why
            following = successor_of(gone)
            if following is None:
                return None
            by, at = following[0], gone.updated_at
            why = CONTRADICTED if following[1] == CONTRADICTED else why
        return None if by in self._going else (by, why)

    def of_left(self, spared: Spared, gone: Memory) -> Successor | None:
        """Who has replaced what is left of ``gone``: whoever replaced all of that memory says otherwise."""
        if (own := successor_of(spared.memory)) is not None:
            return self.of(own, spared.memory.updated_at, but=gone.id)
        later = successor_of(gone)
        return None if later is None else self.of((later[0], CONTRADICTED), gone.updated_at, but=gone.id)


class Said:
    """What is retrieved, word for word: what is said already needs no second memory."""

    def __init__(self, memories: Iterable[Memory]) -> None:
        active = [memory for memory in memories if memory.status is MemoryStatus.ACTIVE]
        self._ids = {_statement(memory): memory.id for memory in active}

    def again(self, memory: Memory) -> Successor | None:
        """The memory that says the same; otherwise it is this one from here on."""
        by = self._ids.setdefault(_statement(memory), memory.id)
        return None if by == memory.id else (by, REPEATED)


def _statement(memory: Memory) -> tuple[str, str]:
    return memory.project or "", " ".join(memory.content.casefold().split())


def without(memory: Memory, *names: str) -> Memory:
    return replace(memory, metadata={name: value for name, value in memory.metadata.items() if name not in names})
