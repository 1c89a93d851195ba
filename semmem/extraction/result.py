"""The result of a batch, counted on the way."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from semmem.extraction.candidate import Action, Placed, Removal
from semmem.extraction.screen import Screened
from semmem.memory import Fact, Memory
from semmem.ports.events import Event


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of a batch.

    ``status`` is terminal (``stored``, ``nothing``, ``rejected``, ``unchanged``, ``extraction_failed``, ``gave_up``) or
    ``postponed``. ``stored`` counts memories created or changed, by type; ``actions`` counts facts by what storing them
    did; ``rejected`` and ``quarantined`` count facts by reason; ``removals`` are what was dropped or replaced.
    ``pairs`` counts pairs of memories that may contradict each other, by what became of them; ``ignored`` counts
    provisional memories that a model named as wrong in vain, by reason; ``passages`` counts those that were kept and
    those that were left out, by reason. Only this try's work is counted. ``cause`` is the name of the error class of a
    failure, ``engine`` the extractor that was asked, empty when facts of an earlier try were used."""

    status: str
    stored: Mapping[str, int] = field(default_factory=dict)
    actions: Mapping[str, int] = field(default_factory=dict)
    rejected: Mapping[str, int] = field(default_factory=dict)
    engine: str = ""
    cause: str = ""
    quarantined: Mapping[str, int] = field(default_factory=dict)
    removals: tuple[Removal, ...] = ()
    pairs: Mapping[str, int] = field(default_factory=dict)
    ignored: Mapping[str, int] = field(default_factory=dict)
    passages: Mapping[str, int] = field(default_factory=dict)


class BatchLearnt(Event, frozen=True):
    """One try at a batch of so many turns ended with this result, after so many seconds."""

    batch_id: str
    trigger: str
    turns: int
    result: BatchResult
    seconds: float


class TurnLearnt(Event, frozen=True):
    """A turn was learnt from at once, or left to its batch; so many seconds after its answer had ended.
    ``result.status`` is that of a batch, or ``late`` (nothing was to be learnt any more), ``left``, ``failed``,
    ``overflow``, or ``refused``: what was learnt from it was taken back."""

    result: BatchResult
    seconds: float


class Tally:
    """Counts of one try, under the names of the result. ``engine`` is the extractor that was asked."""

    def __init__(self) -> None:
        self.engine = ""
        self.removals: list[Removal] = []
        self.stored, self.actions, self.rejected, self.quarantined = (Counter[str]() for _ in range(4))
        self.pairs, self.ignored, self.passages = (Counter[str]() for _ in range(3))

    def count(self, placed: Placed, fact: Fact, verdict: Screened) -> None:
        action = placed.action
        self.actions[action.value] += 1
        self.went(placed)
        if action is Action.QUARANTINED:
            self.quarantined[verdict.reason] += 1
        elif action not in (Action.UNCHANGED, Action.OUTDATED, Action.FORGOTTEN):
            self.stored[fact.type.value] += 1

    def settle(self, placed: Placed, memory: Memory) -> None:
        """What became of a provisional memory that no fact of the batch was."""
        self.went(placed)
        if placed.action is Action.CONFIRMED:
            self.actions[placed.action.value] += 1
            self.stored[memory.type.value] += 1

    def went(self, done: Placed) -> None:
        """What was dropped or replaced, and pairs that were noted or settled."""
        self.removals += done.removals
        self.pairs.update(done.pairs)

    def result(self, *, earlier: int) -> BatchResult:
        """``earlier``: how many facts were stored by tries before this one."""
        counted: dict[str, Any] = {name: dict(some) for name, some in vars(self).items() if isinstance(some, Counter)}
        return BatchResult(self._status(earlier), engine=self.engine, removals=tuple(self.removals), **counted)

    def _status(self, earlier: int) -> str:
        if self.stored or earlier:
            return "stored"
        if self.actions[Action.UNCHANGED.value] or self.actions[Action.OUTDATED.value]:
            return "unchanged"
        return "rejected" if self.rejected or self.quarantined else "nothing"
