"""What a memory is worth keeping, as one number: what it matters, faded by the time since anybody needed it.

    value = importance * (floor + (1 - floor) * 2 ** (-age / strength))
    strength = half_life * (1 + ln(1 + uses))

Age is counted from when the memory was last said or last put into a prompt. This is the forgetting curve of
Ebbinghaus (Über das Gedächtnis, 1885), R = e^(-t/S), written with a half-life: a memory that was used 1, 10 and 100
times fades 1.7, 3.4 and 5.6 times as slowly as one that never was. ``floor`` is the share that never fades, so that
what matters most outlasts what is merely new.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from semmem.memory import Memory
from semmem.ports.memory_records import Uses


@dataclass(frozen=True, slots=True)
class Decay:
    """``half_life_s`` in seconds, of a memory that was never used; ``floor`` a share of 1."""

    half_life_s: float = 30 * 86_400.0
    floor: float = 0.1

    def __post_init__(self) -> None:
        if self.half_life_s <= 0 or not 0 <= self.floor <= 1:
            raise ValueError("half_life_s must be above 0, floor between 0 and 1")


def value(memory: Memory, uses: Uses, now: float, decay: Decay) -> float:
    """What the memory is worth at ``now``, in [0, 1]."""
    age_s = max(0.0, now - max(memory.updated_at, uses.last_at))
    strength_s = decay.half_life_s * (1.0 + math.log1p(uses.count))
    kept = math.pow(2.0, -age_s / strength_s)
    return min(max(memory.importance, 0.0), 1.0) * (decay.floor + (1.0 - decay.floor) * kept)
