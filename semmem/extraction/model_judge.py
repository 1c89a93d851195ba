"""A language model's opinion on what the rules can only guess: does a new statement replace or repeat an old one?

All doubtful pairs of a batch are one question. Whatever goes wrong with it, the rules' judgement stands, so an answer
is taken apart with suspicion: numbers of no pair, pairs with two verdicts and things that are no numbers count for
nothing, and no opinion is kept by which something said would be lost."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from semmem.extraction.answers import AskingModel, as_line, json_values, within
from semmem.extraction.candidate import Action, Placed, Removal, settled
from semmem.extraction.contradiction.verdict import Verdict, may
from semmem.lifecycle.spared import replaced_by
from semmem.lifecycle.writes import Writes
from semmem.memory import CONTRADICTED, REPEATED, Memory, MemoryStatus, Scope, Turn
from semmem.ports.errors import ModelRefused
from semmem.ports.memory_records import WriteRecords
from semmem.ports.models import exactly
from semmem.ports.store import Store

Opinions = Mapping[tuple[str, str], Verdict]
"""Verdicts by (old text, new text). A pair that is not in it was not judged."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Two statements about one user that may exclude each other; ``cosine`` is that of their embeddings."""

    old: str
    new: str
    cosine: float


_RULES = Path(__file__).with_suffix(".txt").read_text("utf-8").rstrip("\n")
_NUMBERS = {"type": "array", "items": {"type": "integer"}}
SCHEMA = exactly(replaces=_NUMBERS, repeats=_NUMBERS)


@dataclass(eq=False, repr=False)
class ModelJudge(AskingModel):
    """Asks about at most ``pairs_max`` pairs, in one call."""

    _: KW_ONLY
    pairs_max: int = 40

    async def opinions(self, doubts: Sequence[Doubt], turns: Sequence[Turn] = ()) -> Opinions:
        """What the model makes of the doubts, the most alike first where there are too many; ``turns`` are those that
        the new statements come from. Raises ModelError."""
        shown = sorted(doubts, key=lambda doubt: -doubt.cosine)[: self.pairs_max]
        if not shown:
            return {}
        pairs = enumerate(shown, start=1)
        lines = (as_line({"pair": number, "old": each.old, "new": each.new}) for number, each in pairs)
        answer = await self._answer(_RULES, within("pairs", lines), SCHEMA, turns)
        verdicts = parse_verdicts(answer, len(shown))
        return {
            (doubt.old, doubt.new): verdict
            for number, doubt in enumerate(shown, start=1)
            if (verdict := verdicts.get(number)) and may(verdict, doubt.old, doubt.new)
        }


def parse_verdicts(answer: str, pairs: int) -> dict[int, Verdict]:
    """Verdicts by pair number, 1 to ``pairs``; a pair that is listed twice has none. Raises ModelRefused when the
    answer holds no such JSON."""
    for value in json_values(answer):
        listed = [value.get(word) for word in ("replaces", "repeats")] if isinstance(value, dict) else []
        if not any(isinstance(some, list) for some in listed):
            continue
        replaced, repeated = map(_numbers, listed)
        found = dict.fromkeys(range(1, pairs + 1), Verdict.DIFFERENT)
        found |= dict.fromkeys(found.keys() & replaced, Verdict.CONTRADICTION)
        found |= dict.fromkeys(found.keys() & repeated, Verdict.SAME)
        return {number: verdict for number, verdict in found.items() if number not in replaced & repeated}
    raise ModelRefused("no verdicts in the answer")


def _numbers(value: object) -> set[int]:
    items = value if isinstance(value, list) else []
    return {item for item in items if isinstance(item, int) and not isinstance(item, bool)}


MEMORIES_MAX = 200
"""Of a user, so many of the newest memories are looked at."""
PAIRS_MAX = 10
"""So many pairs are asked about at a time, those said last."""
KEPT = "kept"
"""Of a pair that a model has settled: both may stand."""
_REMOVES = {Verdict.CONTRADICTION: CONTRADICTED, Verdict.SAME: REPEATED}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two memories of one user, ``newer`` said after ``older``."""

    older: Memory
    newer: Memory

    @property
    def doubt(self) -> Doubt:
        """What a judge is asked."""
        one, other = self.older.embedding, self.newer.embedding
        cosine = float(one @ other) if one is not None and other is not None else 0.0
        return Doubt(self.older.content, self.newer.content, cosine)


@dataclass(eq=False, repr=False)
class Unsettled:
    """Memories that may contradict each other, which nobody has settled: finds such pairs in the store, and writes down
    how they were settled. Each of the two carries the other's id in its metadata. A language model is asked about such
    pairs together with a batch's own doubts, so that it costs no call; a person may settle them as well."""

    store: Store
    records: WriteRecords

    async def pairs(self, user: str) -> list[Pair]:
        """The pairs of which both are still retrieved, those said last first. Raises StoreError."""
        listed = await self.store.list(Scope(user), limit=MEMORIES_MAX)
        active = {memory.id: memory for memory in listed if memory.status is MemoryStatus.ACTIVE}
        found = {frozenset((memory.id, other)) for memory in active.values() for other in memory.unsettled}
        both = [[active[one] for one in ids] for ids in found if len(ids) == 2 and ids <= active.keys()]
        pairs = [Pair(*sorted(ids, key=lambda memory: (memory.said_at, memory.id))) for ids in both]
        return sorted(pairs, key=lambda pair: (-pair.newer.said_at, pair.older.id))[:PAIRS_MAX]

    async def settle(self, pairs: Sequence[Pair], opinions: Opinions, *, batch: str, now: float) -> Placed:
        """Write what the opinions say of the pairs; what was retired, and a word for each pair that was settled:
        ``contradicted``, ``repeated`` or ``kept``. A pair without one stays as it is. Raises StoreError and
        JournalError."""
        words: list[str] = []
        gone: list[Removal] = []
        for pair in pairs:
            verdict = opinions.get((pair.older.content, pair.newer.content))
            if verdict is None or not await self._settle(pair, verdict, batch, now):
                continue
            why = _REMOVES.get(verdict)
            words.append(why or KEPT)
            if why is not None:
                gone.append(Removal(why, pair.older.id, pair.newer.id))
        return Placed(Action.UNCHANGED, tuple(gone), pairs=tuple(words))

    async def _settle(self, pair: Pair, verdict: Verdict, batch: str, now: float) -> bool:
        """Whether it is settled. Both are read again: an earlier pair may have changed them, or somebody else."""
        older, newer = await self._now(pair.older), await self._now(pair.newer)
        if older is None or newer is None:
            return False
        writes = Writes(self.store, self.records, batch)
        why, apart = _REMOVES.get(verdict), settled(older, (newer.id,), now)
        written = await writes.replace(older, apart if why is None else replaced_by(apart, (newer.id, why)))
        if older.id in newer.unsettled:
            await writes.replace(newer, settled(newer, (older.id,), now))
        return written

    async def _now(self, memory: Memory) -> Memory | None:
        """The memory as it is, with its vector, if it is still retrieved and says what was judged."""
        found = await self.store.get(Scope(memory.user), memory.id)
        same = found is not None and found.status is MemoryStatus.ACTIVE and found.content == memory.content
        return found if same else None
