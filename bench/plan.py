"""How much is measured, and how patiently."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """Counts and times of a run. ``requests``: per case and concurrency, in ``rounds`` blocks.

    ``patience``: every deadline is so many times the shipped one.
    """

    seconds_max: float = 160.0
    requests: int = 300
    rounds: int = 10
    concurrency: int = 4
    streams: int = 8
    tokens: int = 50
    token_interval_ms: float = 20.0
    patience: float = 1.0

    @property
    def block(self) -> int:
        return max(1, self.requests // self.rounds)
