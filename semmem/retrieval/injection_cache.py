"""The blocks that running tool loops were given, so that a loop has the same bytes in each of its requests.

An agent's loop is one turn in many requests: each resends what was said so far and adds what the tools said. A block
that stood in the first request and not in the next would take the memories from the model in mid-loop, and would
change the beginning of the prompt, which providers cache.

A block is dropped as soon as one of its memories changes, expires or goes. What is kept here is of this process only.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice

from semmem.memory import Conversation, Role, Scope
from semmem.retrieval.block import Block
from semmem.text.digest import digest

_USER, _TOOL = Role.USER, Role.TOOL
"""Looked up once: each look costs more than comparing."""


@dataclass(frozen=True, slots=True)
class Loop:
    """Which loop: the user, and the turn with all that its block depends on, hashed: a client chose their length."""

    user: str
    name: str


def loop_of(scope: Scope, turn_id: str, conversation: Conversation) -> Loop:
    """Other projects and controls would have found other memories, and another model may refuse the block's role."""
    terms = (scope.project or "", turn_id, conversation.model, repr(conversation.controls))
    return Loop(scope.user, digest(*terms))


def goes_on(conversation: Conversation) -> bool:
    """Whether tools spoke last, apart from instructions and the model's own words: the same turn goes on."""
    for message in reversed(conversation.messages):
        if message.role is _USER or message.role is _TOOL:
            return message.role is _TOOL
    return False


class InjectionCache:
    """The most recently used ``entries_max`` blocks (0: none is kept), each until it is not used for ``ttl_s`` seconds.

    ``changed`` is to be told of every change of a memory once the store has it, or may have it. A block whose memories
    were read before a change and is put afterwards is not kept: the last ``changes_max`` changes are remembered for
    that, and whoever took longer than these is not believed.
    """

    def __init__(self, *, entries_max: int, ttl_s: float, changes_max: int = 1000) -> None:
        self._entries_max = entries_max
        self._ttl_s = ttl_s
        # no cachetools here: an entry's time begins anew with each use, and one that goes leaves the index by user, too
        self._entries: OrderedDict[Loop, tuple[Block, float]] = OrderedDict()
        self._of_user: dict[str, set[Loop]] = {}
        self._changes: deque[tuple[str, str | None]] = deque(maxlen=changes_max)
        self._changed = 0

    def __len__(self) -> int:
        return len(self._entries)

    def mark(self) -> int:
        """To be taken before memories are read, and given to ``put``."""
        return self._changed

    def has_any(self, user: str) -> bool:
        """Whether a block of the user's is kept."""
        return user in self._of_user

    def put(self, loop: Loop, block: Block | None, *, mark: int, now: float) -> None:
        """Keep a loop's block in place of what it had. ``now`` in seconds since the epoch, as in ``get``."""
        self._drop(loop)
        if block is None or not self._entries_max or self._changed_since(mark, loop.user, block.memories):
            return
        self._entries[loop] = (block, now)
        self._of_user.setdefault(loop.user, set()).add(loop)
        while self._entries and (len(self._entries) > self._entries_max or self._is_over(self._oldest(), now)):
            self._drop(self._oldest())

    def get(self, loop: Loop, *, now: float) -> Block | None:
        """The loop's block, if it may still be shown."""
        if loop not in self._entries:
            return None
        if self._is_over(loop, now):
            self._drop(loop)
            return None
        block, _ = self._entries[loop]
        self._entries[loop] = (block, now)
        self._entries.move_to_end(loop)
        return block

    def _oldest(self) -> Loop:
        return next(iter(self._entries))

    def _drop(self, loop: Loop) -> None:
        if self._entries.pop(loop, None) is None:
            return
        loops = self._of_user[loop.user]
        loops.discard(loop)
        if not loops:
            del self._of_user[loop.user]

    def changed(self, user: str, memory_id: str | None) -> None:
        """A memory of the user was written or removed; None: any number of them."""
        self._changes.append((user, memory_id))
        self._changed += 1
        for loop in tuple(self._of_user.get(user, ())):
            block, _ = self._entries[loop]
            if memory_id is None or memory_id in block.memories:
                self._drop(loop)

    def everything_changed(self) -> None:
        """Any memory of any user may have been written or removed."""
        self._entries.clear()
        self._of_user.clear()
        self._changes.clear()  # nobody who read before this is believed
        self._changed += 1

    def _changed_since(self, mark: int, user: str, memories: Collection[str]) -> bool:
        since = self._changed - mark
        if since > len(self._changes):
            return True
        recent = islice(reversed(self._changes), since)
        return any(who == user and (what is None or what in memories) for who, what in recent)

    def _is_over(self, loop: Loop, now: float) -> bool:
        block, used_at = self._entries[loop]
        return now - used_at > self._ttl_s or (block.expires_at is not None and now >= block.expires_at)
