"""The history of a request that goes on from an answer, for a model that keeps none: as it was recorded, or not at all.

A chain of answers is recorded in steps: what a request added, and what was answered. It is believed where every step is
recorded to the letter, each goes on from the one before it, every call has its result, and the first one began a
history. What was erased, was cut, or never came leaves a gap; then there is no history.

A conversation of the API that began here is the chain of its last answer. Which one that is, is known as long as one
request after another claims the conversation (semmem.ports.continuing).
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from functools import partial
from typing import Protocol, TypeVar

from semmem.memory import Past, Role, Scope
from semmem.ports.continuing import Continued
from semmem.ports.conversations import ConversationRecords, KeptMessage, Whole
from semmem.ports.errors import JournalError

T = TypeVar("T")

PAUSES_S = (0.0, 0.02, 0.04)
"""Before what waits is written and a chain is looked for again: its answer may be on its way to the journal."""


class Records(ConversationRecords, Protocol):
    """What histories are taken from. Every call is bound to a scope, whose session is the API's name of the
    conversation. Raises JournalError."""

    async def continued(self, scope: Scope) -> Continued | None:
        """None where nothing of this name is recorded of the user."""

    async def claim_conversation(
        self, scope: Scope, seen: Continued | None, claim: str, *, now: float, per_user_max: int
    ) -> bool:
        """Whether the conversation, which is as it was ``seen`` (None: it begins), is this request's from here on."""


class Chained(StrEnum):
    """What became of a request that goes on from an answer, or with a conversation."""

    ADDED = "added"
    BEGUN = "begun"  # the first one of a conversation: there is nothing to add
    UNKNOWN = "unknown"  # nothing is recorded of that answer
    GAP = "gap"  # something of what led to it is not recorded to the letter, or gone
    TOO_LONG = "too_long"  # more messages, or bytes, than are allowed
    UNFIT = "unfit"  # the request does not go on from it: a result is missing, or it names a conversation too
    LATE = "late"  # the records were slow
    FAILED = "failed"  # or away


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation of the API as the next request finds it: its history, oldest first, the name of the last answer
    in it and the turn that this belongs to (both empty at the beginning). ``seen``: None where it begins now."""

    history: Sequence[Past] = ()
    last_answer: str = ""
    turn: str = ""
    seen: Continued | None = None


@dataclass(eq=False, repr=False)
class Chains:
    """``messages_max`` of one history, ``timeout_s`` to find it. ``settle`` writes what waits in this process, and
    ``waiting`` says how much that is. ``begin_unknown``: a conversation of which nothing is recorded begins here, and
    the user has at most ``per_user_max``. ``counts``: requests by what became of them."""

    records: Records
    _: KW_ONLY
    settle: Callable[[], Awaitable[object]]
    waiting: Callable[[], int]
    messages_max: int
    timeout_s: float
    begin_unknown: bool = False
    per_user_max: int = 1000
    counts: Counter[str] = field(default_factory=Counter)

    def count(self, word: Chained) -> None:
        self.counts[word.value] += 1

    async def history(self, scope: Scope, answer_id: str, *, until: float | None) -> Sequence[Past] | Chained:
        """All that led to the answer, and the answer, oldest first; or why there is no such history. Never raises.
        ``until``: the end of the request phase, in the event loop's time."""
        looking = self._settled(partial(self._chain, scope, answer_id), bool)
        found = await self._in_time(looking, until)
        if isinstance(found, Chained):
            return found
        return self._judged(found, answer_id) if found else Chained.UNKNOWN

    async def talk(self, scope: Scope, *, until: float | None) -> Talk | Chained:
        """The conversation that the API calls like this session; or why there is no history of it. Never raises."""
        return await self._in_time(self._talk(scope), until)

    async def claim(self, scope: Scope, talk: Talk, claim: str, *, now: float, until: float | None) -> Chained | None:
        """Whether it is this request's to go on with it; why not. Never raises. What is late may be claimed all the
        same."""
        limit = self.per_user_max
        claiming = self.records.claim_conversation(scope, talk.seen, claim, now=now, per_user_max=limit)
        taken = await self._in_time(claiming, until)
        if isinstance(taken, Chained):
            return taken
        return None if taken else Chained.GAP

    async def _in_time(self, work: Awaitable[T], until: float | None) -> T | Chained:
        late = asyncio.get_running_loop().time() + self.timeout_s
        try:
            async with asyncio.timeout_at(late if until is None else min(late, until)):
                return await work
        except TimeoutError:
            return Chained.LATE
        except JournalError:
            return Chained.FAILED

    async def _talk(self, scope: Scope) -> Talk | Chained:
        """Raises JournalError."""
        look = partial(self.records.continued, scope)
        seen = await self._settled(look, lambda seen: not (seen and seen.is_open))
        if seen is None and self.begin_unknown and self.waiting():
            seen = await self._written(look)
        if seen is None:
            return Talk() if self.begin_unknown else Chained.UNKNOWN
        if not seen.progress:
            return Chained.UNKNOWN
        if not seen.is_free:
            return Chained.GAP
        if not seen.last_answer:
            return Talk(seen=seen)
        chain = await self._chain(scope, seen.last_answer)
        history = self._judged(chain, seen.last_answer)
        return history if isinstance(history, Chained) else Talk(history, seen.last_answer, chain[-1].turn, seen)

    def _judged(self, chain: Sequence[KeptMessage], answer_id: str) -> Sequence[Past] | Chained:
        if len(chain) > self.messages_max:
            return Chained.TOO_LONG
        if not is_whole(chain, answer_id):
            return Chained.GAP
        return [Past(said.role, said.content, said.answers, said.calls) for said in chain]

    async def _settled(self, look: Callable[[], Awaitable[T]], suffices: Callable[[T], bool]) -> T:
        """A client may go on before the answer is written. Raises JournalError."""
        found = await look()
        for pause_s in PAUSES_S:
            if suffices(found) or not self.waiting():
                break
            await asyncio.sleep(pause_s)
            found = await self._written(look)
        return found

    async def _written(self, look: Callable[[], Awaitable[T]]) -> T:
        """What there is to see when all that waits here is written. Raises JournalError."""
        if await self.settle() is False:
            raise JournalError("what waits could not be written")
        return await look()

    async def _chain(self, scope: Scope, answer_id: str) -> list[KeptMessage]:
        """One more than is allowed, where there is one. Raises JournalError."""
        return await self.records.chain(scope, answer_id, messages_max=self.messages_max + 1)


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
