"""Which of many memories lie in a scope, are of a type and have not expired, asked of arrays instead of each memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from semmem.memory import Memory, MemoryType, Scope, Standing

Mask = npt.NDArray[np.bool_]


class Membership:
    """Of ``memories``, in their order: until when they may be shown, and where they belong."""

    def __init__(self, memories: Sequence[Memory]) -> None:
        ends = (np.inf if memory.expires_at is None else memory.expires_at for memory in memories)
        self._ends = np.fromiter(ends, np.float64, len(memories))
        self._musts = np.fromiter((memory.standing is Standing.MUST for memory in memories), np.bool_, len(memories))
        self._types = _Names(memory.type for memory in memories)
        self._projects = _Names(memory.project or "" for memory in memories)
        self._agents = _Names(memory.agent or "" for memory in memories)
        self._sessions = _Names(memory.session or "" for memory in memories)

    def within(self, scope: Scope, types: Sequence[MemoryType], now: float) -> Mask:
        """A mask (n,) of the memories that may be recalled in this scope now; ``types`` empty means all."""
        inside: Mask = self._ends > now
        if types:
            inside &= np.logical_or.reduce([self._types.are(one) for one in types])
        if scope.projects is not None:
            here = np.logical_or.reduce([self._projects.are(one) for one in scope.projects])
            inside &= here | self._musts if scope.reads_common else here
        for names, wanted in ((self._agents, scope.agent), (self._sessions, scope.session)):
            if wanted is not None:
                inside &= names.are(wanted)
        return inside

    def same_until(self, now: float) -> float:
        """The first end after ``now``."""
        return float(self._ends.min(initial=np.inf, where=self._ends > now))


class _Names:
    """One name per memory, each different one as a number."""

    def __init__(self, names: Iterable[str]) -> None:
        self._numbers: dict[str, int] = {}
        numbers = [self._numbers.setdefault(name, len(self._numbers)) for name in names]
        self._rows = np.array(numbers, dtype=np.int32)

    def are(self, name: str) -> Mask:
        same: Mask = self._rows == self._numbers.get(name, -1)
        return same
