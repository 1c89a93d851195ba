"""Which messages were seen before, and whether they may be kept.

The most recent ones are remembered in this process, all of them in the journal, as digests: no text and no user's
name. What only this process has to recognise is remembered by the interpreter's own hash, which is keyed anew in each.
"""

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from semmem.ports.errors import JournalError
from semmem.ports.recording import SaidBefore
from semmem.turns.recent import Recent
from semmem.turns.user_messages import UserMessage

PLACES_MAX = 16
"""How many places of the same words in one conversation are remembered in process: "yes" may be said all day."""

SHARED = -1
"""In place of a user: several have said it. No text's hash is -1."""


class MessageRecords(Protocol):
    """What is left of messages when their turns are gone: bare ids. Raises JournalError."""

    async def said_before(self, message_ids: Sequence[str]) -> Sequence[SaidBefore]:
        """Where and when these messages were journalled or declined; nothing of those that never were, or so long ago
        that turns of then would be pruned. A bounded number, declined ones first."""

    async def forgotten_at(self, user: str) -> float | None:
        """When anything that the user had said was last erased as a whole (all of it, or of a project, an agent, a
        session): what was said then or before may be erased. None when nothing was, or too long ago to matter."""


class Unread(Exception):
    """The journal does not say."""


class Known(Struct, frozen=True):
    """What is known of some words in a conversation: at which ordinals they were journalled or declined, and when.
    ``passed``: they stood in a history and were left alone there."""

    journalled: Mapping[int, float] = field(default_factory=dict)
    declined: Mapping[int, float] = field(default_factory=dict)
    passed: bool = False

    def is_declined(self, ordinal: int) -> bool:
        """Whether the last that was heard of these words, here or else anywhere, is that they are not to be kept."""
        if ordinal in self.journalled:
            return self.declined.get(ordinal, -math.inf) >= self.journalled[ordinal]
        return bool(self.declined)


UNSEEN = Known()


class SeenMessages:
    """Remembers ``messages_max`` messages in process; beyond that it asks the journal, for ``lookup_timeout_s`` at
    most. Without ``records`` nothing is known beyond this process."""

    def __init__(
        self, records: MessageRecords | None = None, *, messages_max: int = 20_000, lookup_timeout_s: float = 0.1
    ) -> None:
        self._records = records
        self._lookup_timeout_s = lookup_timeout_s
        self._known = Recent[str, Known](messages_max)
        self.settled = Recent[str, str](messages_max)
        """By the key of a conversation the place of the last words up to which everything in it was dealt with."""
        self._anonymous = Recent[int, bool](messages_max)
        self._tellers = Recent[int, int](messages_max)

    def here(self, said: UserMessage) -> Known:
        return self._known.get(said.id) or UNSEEN

    def journalled(self, said: UserMessage, at: float) -> None:
        """The journal has taken it. The first time counts."""
        known = self.here(said)
        first = known.journalled.get(said.ordinal)
        if first is not None and len(known.journalled) == 1:
            return
        places = _with(known.journalled, said.ordinal, at if first is None else first)
        self._known.put(said.id, Known(places, known.declined, known.passed))

    def declined(self, said: UserMessage, at: float) -> bool:
        """It is not to be kept; whether that is news. The last time counts."""
        known = self.here(said)
        self._known.put(said.id, replace(known, declined=_with(known.declined, said.ordinal, at)))
        return said.ordinal not in known.declined or not known.is_declined(said.ordinal)

    def passed(self, left: Iterable[UserMessage]) -> int:
        """Messages of a history that were left alone; how many of them were not known yet."""
        unseen = {said.id for said in left if self.here(said) is UNSEEN}
        for each in unseen:
            self._known.put(each, Known(passed=True))
        return len(unseen)

    def declined_anonymously(self, texts: Iterable[str]) -> None:
        """Not to be kept: nobody is known to have said it."""
        for text in texts:
            self._anonymous.put(hash(text), True)

    def was_declined_anonymously(self, said: UserMessage) -> bool:
        return self._anonymous.get(hash(said.text)) is not None

    def is_shared(self, said: UserMessage, user: str) -> bool:
        """Whether another user's history held the same words: what an application puts in front of its prompts, or
        what everybody says and nobody needs to have remembered."""
        words, new = hash(said.text), hash(user)
        teller = self._tellers.get(words)
        if teller not in (new, SHARED):
            self._tellers.put(words, new if teller is None else SHARED)
        return teller not in (None, new)

    async def look_up(self, asked: Sequence[UserMessage], *, first: bool = False) -> dict[str, Known]:
        """What is known of each message, by its id. Raises Unread when the journal has to be asked and does not say. It
        is asked about those that this process never saw; ``first``: about all of them, since it may know that they were
        journalled earlier than this process heard of them."""
        known = {said.id: self.here(said) for said in asked}
        unseen = [each for each, what in known.items() if first or what is UNSEEN]
        if not unseen or self._records is None:
            return known
        try:
            async with asyncio.timeout(self._lookup_timeout_s):
                rows = await self._records.said_before(unseen)
        except (TimeoutError, JournalError):
            raise Unread from None
        for row in rows:
            what = known[row.message_id]
            if row.declined:
                what = replace(what, declined={**what.declined, row.ordinal: row.at})
            else:
                earliest = min(row.at, what.journalled.get(row.ordinal, row.at))
                what = replace(what, journalled={**what.journalled, row.ordinal: earliest})
            known[row.message_id] = what
            self._known.put(row.message_id, what)
        return known

    async def forgotten_at(self, user: str) -> float | None:
        """When anything the user had said was last erased. Raises Unread."""
        if self._records is None:
            return None
        try:
            async with asyncio.timeout(self._lookup_timeout_s):
                return await self._records.forgotten_at(user)
        except (TimeoutError, JournalError):
            raise Unread from None


def _with(places: Mapping[int, float], ordinal: int, at: float) -> dict[int, float]:
    """The newest PLACES_MAX of them."""
    if not places:
        return {ordinal: at}
    others = [(other, then) for other, then in places.items() if other != ordinal]
    return dict([*others, (ordinal, at)][-PLACES_MAX:])
