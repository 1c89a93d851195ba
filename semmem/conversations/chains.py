"""The history of a request that goes on from an answer, for a model that keeps none: as it was recorded, or not at all.

A chain of answers is recorded in steps: what a request added, and what was answered. It is believed where every step is
recorded to the letter, each goes on from the one before it, every call has its result, and the first one began a
history. What was erased, was cut, or never came leaves a gap; then there is no history.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from enum import StrEnum
from typing import Protocol

from semmem.memory import Past, Role, Scope
from semmem.ports.conversations import ConversationRecords, KeptMessage, Whole
from semmem.ports.errors import JournalError

PAUSES_S = (0.0, 0.02, 0.04)
"""Before what waits is written and a chain is looked for again: its answer may be on its way to the journal."""


class Chained(StrEnum):
    """What became of a request that goes on from an answer."""

    ADDED = "added"
    UNKNOWN = "unknown"  # nothing is recorded of that answer
    GAP = "gap"  # something of what led to it is not recorded to the letter, or gone
    TOO_LONG = "too_long"  # more messages, or bytes, than are allowed
    UNFIT = "unfit"  # the request does not go on from it: a result is missing, or it names a conversation too
    LATE = "late"  # the records were slow
    FAILED = "failed"  # or away


class Histories(Protocol):
    """What an exchange asks for histories; see Chains."""

    async def history(self, scope: Scope, answer_id: str, *, until: float | None) -> Sequence[Past] | Chained: ...

    def count(self, word: Chained) -> None: ...


class Chains:
    """``messages_max`` of one history, ``timeout_s`` to find it. ``settle`` writes what waits in this process, and
    ``waiting`` says how much that is. ``counts``: requests by what became of them."""

    def __init__(
        self,
        records: ConversationRecords,
        *,
        settle: Callable[[], Awaitable[object]],
        waiting: Callable[[], int],
        messages_max: int,
        timeout_s: float,
        counts: Counter[str] | None = None,
    ) -> None:
        self._records = records
        self._settle = settle
        self._waiting = waiting
        self._messages_max = messages_max
        self._timeout_s = timeout_s
        self.counts = Counter[str]() if counts is None else counts

    def count(self, word: Chained) -> None:
        self.counts[word.value] += 1

    async def history(self, scope: Scope, answer_id: str, *, until: float | None) -> Sequence[Past] | Chained:
        """All that led to the answer, and the answer, oldest first; or why there is no such history. Never raises.
        ``until``: the end of the request phase, in the event loop's time."""
        late = asyncio.get_running_loop().time() + self._timeout_s
        try:
            async with asyncio.timeout_at(late if until is None else min(late, until)):
                found = await self._found(scope, answer_id)
        except TimeoutError:
            return Chained.LATE
        except JournalError:
            return Chained.FAILED
        if not found:
            return Chained.UNKNOWN
        if len(found) > self._messages_max:
            return Chained.TOO_LONG
        if not is_whole(found, answer_id):
            return Chained.GAP
        return [Past(said.role, said.content, said.answers, said.calls) for said in found]

    async def _found(self, scope: Scope, answer_id: str) -> list[KeptMessage]:
        """A client may go on before the answer is written. Raises JournalError."""
        found = await self._chain(scope, answer_id)
        for pause_s in PAUSES_S:
            if found or not self._waiting():
                break
            await asyncio.sleep(pause_s)
            if await self._settle() is False:
                raise JournalError("what waits could not be written")
            found = await self._chain(scope, answer_id)
        return found

    async def _chain(self, scope: Scope, answer_id: str) -> list[KeptMessage]:
        """One more than is allowed, where there is one. Raises JournalError."""
        return await self._records.chain(scope, answer_id, messages_max=self._messages_max + 1)


def is_whole(messages: Sequence[KeptMessage], answer_id: str) -> bool:
    """Whether these are all that led to the answer of this name, to the letter."""
    before: KeptMessage | None = None
    for step in _steps(messages):
        if not _goes_on(step, before):
            return False
        before = step[-1]
    return before is not None and before.answer_id == answer_id


def _steps(messages: Sequence[KeptMessage]) -> Iterator[Sequence[KeptMessage]]:
    """Each up to its answer; of the last one perhaps no answer."""
    begin = 0
    for at, said in enumerate(messages):
        if said.role is Role.ASSISTANT:
            yield messages[begin : at + 1]
            begin = at + 1
    if begin < len(messages):
        yield messages[begin:]


def _goes_on(step: Sequence[KeptMessage], before: KeptMessage | None) -> bool:
    *brought, answer = step
    if answer.role is not Role.ASSISTANT or not brought or any(said.cut for said in step):
        return False
    calls = [call.id for call in answer.calls]
    if "" in calls or len(set(calls)) < len(calls) or not all(call.name for call in answer.calls):
        return False
    after = {said.after for said in brought if said.after}
    if before is None:
        return answer.whole == Whole.BEGINS and not after and [said.role for said in brought] == [Role.USER]
    if answer.whole != Whole.GOES_ON or after != {before.answer_id}:
        return False
    if before.calls:
        results = sorted(said.answers for said in brought)
        return all(said.role is Role.TOOL for said in brought) and results == sorted(call.id for call in before.calls)
    return [said.role for said in brought] == [Role.USER]
