"""How much is measured, and how patiently."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

SERVER_SETTLE_S = 16.0
"""Longer than RecentWrites of the Milvus backend remembers a write: five seconds and memory.milvus.call_timeout_s."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Counts and times of a run, by part.

    All: ``patience``: every deadline is so many times the shipped one; ``milvus``: host:port of a server to keep
    memories in, empty for Milvus Lite; ``settle_s``: pause after memories were written, since Milvus Lite makes a
    segment of them some seconds later, and is faster from then on. ``warm_up`` requests of each kind are sent before
    anything is measured.

    Requests: ``levels`` of connections; in a round ``block`` requests of a case, but at least two on each connection
    where there are several, and ``cheap_factor`` times as many of cases that embed nothing; at most ``rounds`` rounds
    and ``seconds_max`` seconds.

    Streams: ``stream_levels`` at a time in ``stream_rounds`` rounds, ``tokens`` each, one every ``token_interval_ms``.

    Process: ``starts``, ``users`` with ``memories`` each, ``requests``, then ``idle_s`` seconds of nothing.

    Saturation: ``step_s`` seconds at each rate, from ``share_first`` of what bare forwards reach, ``rate_growth`` times
    as many in the next step, at most ``steps``.

    Cores: ``cores_s`` seconds of each layout and case in ``cores_rounds`` rounds.

    Scale: ``scale_memories`` of as many users as ``scale_users`` says, size by size; ``scale_calls`` searches of each
    kind and size in ``scale_rounds`` rounds, none of which begins after ``scale_seconds_max``.

    Misses: users of ``miss_memories`` each, ``miss_calls`` of each kind and size in ``miss_rounds`` rounds.

    mem0: ``mem0_questions`` about ``mem0_facts`` in ``mem0_rounds`` rounds, and at most ``mem0_noise`` of each kind
    that nothing answers.

    Prompt cache: ``cache_pairs`` of sessions of ``cache_turns`` each.

    Learning: ``journalled`` turns are written as fast as can be; ``sessions`` of ten turns are learnt from in batches;
    ``turns_alone`` at once, one after another, and ``turns_burst`` of as many users all together.
    """

    patience: float = 1.0
    milvus: str = ""
    settle_s: float = 5.0
    warm_up: int = 64

    levels: tuple[int, ...] = (1, 8, 32)
    block: int = 24
    cheap_factor: int = 4
    rounds: int = 16
    seconds_max: float = 420.0

    stream_levels: tuple[int, ...] = (1, 32, 128)
    stream_rounds: int = 4
    tokens: int = 100
    token_interval_ms: float = 50.0

    starts: int = 5
    users: int = 10
    memories: int = 100
    requests: int = 1000
    idle_s: float = 20.0

    step_s: float = 10.0
    share_first: float = 0.2
    rate_growth: float = 1.15
    steps: int = 20

    cores_s: float = 4.0
    cores_rounds: int = 3

    scale_memories: tuple[int, ...] = (1_000, 10_000, 100_000, 100_000)
    scale_users: tuple[int, ...] = (10, 1_000, 1_000, 10_000)
    scale_calls: int = 200
    scale_rounds: int = 20
    scale_seconds_max: float = 180.0

    miss_memories: tuple[int, ...] = (10, 100, 1_000)
    miss_calls: int = 16
    miss_rounds: int = 10

    mem0_facts: int = 1_200
    mem0_questions: int = 400
    mem0_rounds: int = 10
    mem0_noise: int = 100

    cache_pairs: int = 5
    cache_turns: int = 10

    journalled: int = 5_000
    sessions: int = 60
    turns_alone: int = 60
    turns_burst: int = 120

    @property
    def connections(self) -> int:
        """The most that are needed at a time for requests."""
        return max(self.levels)

    @property
    def pause_s(self) -> float:
        """After memories were written. On a server, until semmem's reads no longer wait for its time tick (0.2 s): so
        it reads whom it has written for, as long as a write may still be under way."""
        return max(self.settle_s, SERVER_SETTLE_S) if self.milvus else self.settle_s

    def requests_in(self, level: int, *, cheap: bool) -> int:
        """Of one case at one level in one round; a multiple of ``level``."""
        each = self.block * (self.cheap_factor if cheap else 1)
        wanted = each if level == 1 else max(each, 2 * level)
        return level * max(1, wanted // level)


FULL = Plan()
QUICK = Plan(
    block=16,
    rounds=6,
    seconds_max=60.0,
    stream_levels=(1, 32),
    stream_rounds=2,
    tokens=40,
    starts=2,
    idle_s=5.0,
    scale_memories=(1_000, 10_000),
    scale_users=(10, 1_000),
    scale_calls=50,
    scale_rounds=5,
    scale_seconds_max=20.0,
    cache_pairs=2,
    journalled=2_000,
    sessions=10,
    turns_alone=10,
    turns_burst=20,
)
"""Under five minutes, with the parts that are not long by nature."""


def changed(plan: Plan, settings: Iterable[str]) -> Plan:
    """The plan with ``name=value`` put in place, several values with commas. Raises ValueError naming what is wrong."""
    known = {field.name: getattr(plan, field.name) for field in fields(plan)}
    values: dict[str, Any] = {}
    for setting in settings:
        name, _, text = setting.partition("=")
        if name not in known:
            raise ValueError(f"{name}: not one of {', '.join(known)}")
        values[name] = _read(name, text, known[name])
    return replace(plan, **values)


def _read(name: str, text: str, like: object) -> object:
    try:
        if isinstance(like, str):
            return text
        if isinstance(like, tuple):
            return tuple(_positive(int(part)) for part in text.split(","))
        return _positive(int(text) if isinstance(like, int) else float(text))
    except ValueError:
        raise ValueError(f"{name}={text}: a number above 0 is wanted, or several with commas") from None


def _positive(number: float) -> float:
    if not 0 < number <= 1_000_000:
        raise ValueError(number)
    return number


@dataclass(frozen=True, slots=True)
class Place:
    """Where a part runs: Envoy's binary, and an empty folder of its own."""

    envoy: Path
    folder: Path


Say = Callable[[str], None]
"""Tells whoever waits how far a part is."""
