"""What the journal keeps for a ledger, in a dictionary, and what may go wrong with it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from semmem.memory import Memory, Scope
from semmem.ports.errors import JournalError
from semmem.ports.events import Event, PromptPrefix
from semmem.ports.session_states import ShownBlock, ShownRow


@dataclass
class Records:
    """``delay_s``: what each call takes; ``broken``: each fails. ``reads`` and ``writes``: what was asked so far.
    ``gate``: what is read comes when this is set."""

    delay_s: float = 0.0
    broken: bool = False
    kept: dict[tuple[str, str], dict[str, ShownBlock]] = field(default_factory=dict)
    past: dict[str, list[Memory]] = field(default_factory=dict)
    reads: list[tuple[str, str]] = field(default_factory=list)
    writes: list[list[ShownRow]] = field(default_factory=list)
    gate: asyncio.Event | None = None

    async def shown_blocks(self, user: str, session: str, *, now: float) -> list[ShownBlock]:
        self.reads.append((user, session))
        found = [each for each in self.kept.get((user, session), {}).values() if each.expires_at > now]
        if self.gate is not None:
            await self.gate.wait()
        await self._answer()
        return sorted(found, key=lambda block: block.shown_at)

    async def keep_shown(self, rows: Sequence[ShownRow], *, per_user: int) -> None:
        self.writes.append(list(rows))
        await self._answer()
        for user, session, block in rows:
            if block is None:
                self.kept.pop((user, session), None)
            else:
                self.kept.setdefault((user, session), {})[block.anchor] = block

    async def versions(self, scope: Scope, memory_id: str) -> list[Memory]:
        await self._answer()
        return self.past.get(memory_id, [])

    async def _answer(self) -> None:
        await asyncio.sleep(self.delay_s)
        if self.broken:
            raise JournalError("down")


class Heard(list[Event]):
    """Everything that was announced."""

    @property
    def words(self) -> list[str]:
        """Of what became of earlier blocks."""
        return [event.result for event in self if isinstance(event, PromptPrefix)]
