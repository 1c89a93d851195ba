"""A journal with history in memory, and an extractor with given facts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from semmem.memory import Fact, Memory, Scope, Turn
from semmem.ports.history import Dropped
from semmem.ports.journal import TurnClosed
from semmem.ports.learning import Batch, BatchRules


@dataclass
class _Entry:
    turn: Turn
    closed: TurnClosed | None = None
    batch: str = ""
    done_at: float | None = None

    def ready(self, rules: BatchRules, now: float) -> bool:
        return self.closed is not None or now - self.turn.opened_at >= rules.answer_wait_s

    @property
    def waiting(self) -> bool:
        refused = self.closed is not None and self.closed.status == "refused"
        return not self.batch and self.done_at is None and not refused


@dataclass
class _Lease:
    batch: Batch
    until: float = 0.0
    status: str = ""


class InMemoryJournal:
    """Implements Journal and History for one process, without durability. ``statuses`` lists batches that ended."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._early: dict[str, TurnClosed] = {}
        self._answers: dict[str, str] = {}
        self._leases: dict[str, _Lease] = {}
        self._ended: set[tuple[str, str]] = set()
        self._versions: dict[tuple[str, str], dict[int, Memory]] = {}
        self._dropped: dict[tuple[str, str], dict[str, Dropped]] = {}
        self.statuses: list[tuple[str, str]] = []

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def health(self) -> None:
        pass

    async def record(self, opened: Sequence[Turn], closed: Sequence[TurnClosed]) -> None:
        for turn in opened:
            self._entries.setdefault(turn.id, _Entry(turn, self._early.pop(turn.id, None)))
        for end in closed:
            if end.answer_id:
                self._answers[end.answer_id] = end.turn_id
            if end.status == "continues":
                continue
            entry = self._entries.get(end.turn_id)
            if entry is None:
                self._early[end.turn_id] = end
            elif entry.closed is None or (end.status == "answered" and entry.closed.status != "answered"):
                entry.closed = end

    async def turn_of_answer(self, user: str, answer_id: str) -> tuple[str, str] | None:
        entry = self._entries.get(self._answers.get(answer_id, ""))
        if entry is None or entry.turn.scope.user != user:
            return None
        return entry.turn.id, entry.turn.scope.session or ""

    async def session_start(self, user: str, session_key: str, *, seen_since: float) -> float | None:
        starts = [
            float(entry.turn.scope.session.rpartition(".")[2])
            for entry in self._entries.values()
            if entry.turn.scope.user == user
            and entry.turn.scope.session is not None
            and entry.turn.scope.session.startswith(f"{session_key}.")
            and entry.turn.opened_at >= seen_since
        ]
        return max(starts, default=None)

    async def claim(self, rules: BatchRules, *, now: float) -> Batch | None:
        for lease in self._leases.values():
            if not lease.status and lease.until <= now:
                lease.batch = replace(lease.batch, attempt=lease.batch.attempt + 1)
                lease.until = now + rules.lease_s
                return lease.batch
        busy = {lease.batch.scope.user for lease in self._leases.values() if not lease.status}
        for scope in dict.fromkeys(entry.turn.scope for entry in self._entries.values() if entry.waiting):
            trigger = self._trigger(scope, rules, now)
            if trigger and scope.user not in busy:
                return self._lease(scope, trigger, rules, now)
        return None

    def _of(self, scope: Scope) -> list[_Entry]:
        entries = [entry for entry in self._entries.values() if entry.turn.scope == scope]
        return sorted(entries, key=lambda entry: entry.turn.ordinal)

    def _trigger(self, scope: Scope, rules: BatchRules, now: float) -> str:
        waiting = [entry for entry in self._of(scope) if entry.waiting]
        ready = [entry for entry in waiting if entry.ready(rules, now)]
        if (scope.user, scope.session or "") in self._ended:
            return "end"
        if len(ready) >= rules.size:
            return "size"
        idle = now - max(entry.turn.opened_at for entry in waiting) >= rules.idle_s
        return "idle" if idle and len(ready) == len(waiting) else ""

    def _lease(self, scope: Scope, trigger: str, rules: BatchRules, now: float) -> Batch:
        taken = [entry for entry in self._of(scope) if entry.waiting][: rules.size]
        before = [entry for entry in self._of(scope) if entry.turn.ordinal < taken[0].turn.ordinal]
        batch = Batch(
            id=f"batch-{len(self._leases) + 1}",
            scope=scope,
            turns=tuple(_answered(entry) for entry in taken),
            context=tuple(_answered(entry) for entry in before[-rules.context_turns :]),
            trigger=trigger,
            attempt=1,
        )
        for entry in taken:
            entry.batch = batch.id
        self._leases[batch.id] = _Lease(batch, now + rules.lease_s)
        return batch

    async def save_facts(self, batch_id: str, facts: Sequence[Fact]) -> None:
        lease = self._leases[batch_id]
        lease.batch = replace(lease.batch, facts=tuple(facts))

    def saved(self, batch_id: str) -> tuple[Fact, ...] | None:
        """What was saved of a batch, done or not."""
        return self._leases[batch_id].batch.facts

    async def mark_applied(self, batch_id: str, count: int) -> None:
        lease = self._leases[batch_id]
        lease.batch = replace(lease.batch, applied=count)

    async def finish(self, batch_id: str, status: str, *, now: float) -> None:
        self._leases[batch_id].status = status
        self.statuses.append((batch_id, status))
        for entry in self._entries.values():
            if entry.batch == batch_id:
                entry.done_at = now

    async def postpone(self, batch_id: str, *, until: float) -> None:
        self._leases[batch_id].until = until

    async def end_session(self, user: str, session: str, *, now: float) -> int:
        self._ended.add((user, session))
        return sum(
            entry.waiting and entry.turn.scope.user == user and entry.turn.scope.session == session
            for entry in self._entries.values()
        )

    async def session_turns(self, last: Turn, *, limit: int) -> list[Turn]:
        before = [entry for entry in self._of(last.scope) if entry.turn.ordinal < last.ordinal]
        return [*(_answered(entry) for entry in before), last][-limit:]

    async def forget_turns(self, scope: Scope) -> int:
        doomed = [key for key, entry in self._entries.items() if entry.turn.scope.user == scope.user]
        for key in doomed:
            del self._entries[key]
        self._leases = {key: lease for key, lease in self._leases.items() if lease.batch.scope.user != scope.user}
        self._versions = {key: kept for key, kept in self._versions.items() if key[0] != scope.user}
        return len(doomed)

    async def prune(self, *, done_before: float) -> int:
        doomed = [key for key, entry in self._entries.items() if (entry.done_at or done_before) < done_before]
        for key in doomed:
            del self._entries[key]
        return len(doomed)

    async def counts(self) -> dict[str, int]:
        waiting = sum(entry.waiting for entry in self._entries.values())
        return {"waiting": waiting, "done": sum(entry.done_at is not None for entry in self._entries.values())}

    async def keep_version(self, memory: Memory) -> None:
        self._versions.setdefault((memory.user, memory.id), {}).setdefault(
            memory.version, replace(memory, embedding=None)
        )

    async def versions(self, scope: Scope, memory_id: str) -> list[Memory]:
        return [memory for _, memory in sorted(self._versions.get((scope.user, memory_id), {}).items())]

    async def note_dropped(
        self, scope: Scope, memory_id: str, reason: str, *, now: float, batch: str | None = None
    ) -> None:
        rows = self._dropped.setdefault((scope.user, memory_id), {})
        rows[reason] = Dropped(reason, rows[reason].times + 1 if reason in rows else 1, now)

    async def dropped(self, scope: Scope, memory_id: str) -> list[Dropped]:
        return [row for _, row in sorted(self._dropped.get((scope.user, memory_id), {}).items())]

    async def forget_versions(self, scope: Scope, memory_id: str) -> int:
        self._dropped.pop((scope.user, memory_id), None)
        return len(self._versions.pop((scope.user, memory_id), {}))


def _answered(entry: _Entry) -> Turn:
    return entry.turn if entry.closed is None else replace(entry.turn, answer=entry.closed.answer)


class GivenFacts:
    """An extractor that gives what a function makes of the batch."""

    def __init__(self, name: str, facts: Callable[[Batch], list[Fact]]) -> None:
        self.name = name
        self._facts = facts
        self.batches: list[Batch] = []

    async def extract(self, batch: Batch) -> list[Fact]:
        self.batches.append(batch)
        return self._facts(batch)
