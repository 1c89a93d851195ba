"""What a run consists of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench import cores, learning, mem0_part, misses, process, prompt_cache, requests, saturation, scale, streams
from bench.plan import Place, Plan, Say

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """``measure`` gives figures that JSON can hold; under ``keys`` those of bench.keys that it has measured, each
    ``{"value": ..., "quartiles": [low, high] or None}``. ``table`` shows them to people. ``quick``: also a part of
    ``make bench-quick``. Raises Failed, TimeoutError or OSError."""

    name: str
    measure: Callable[[Plan, Place, Say], Json]
    table: Callable[[Json], str] | None = None
    quick: bool = True


PARTS = (
    Part("requests", requests.measure, requests.table),
    Part("streams", streams.measure, streams.table),
    Part("process", process.measure, process.table),
    Part("saturation", saturation.measure, saturation.table, quick=False),
    Part("cores", cores.measure, cores.table, quick=False),
    Part("scale", scale.measure, scale.table, quick=False),
    Part("misses", misses.measure, misses.table, quick=False),
    Part("mem0", mem0_part.measure, mem0_part.table, quick=False),
    Part("prompt_cache", prompt_cache.measure, prompt_cache.table, quick=False),
    Part("learning", learning.measure, learning.table, quick=False),
)
"""In the order in which they run. A further one is a module with such a function, and a row here."""
