"""Whether a block that was shown may be shown again, and what has to be said beside it because it has changed since.

A memory that was superseded stays in its old block, and the new block says what holds now. One that nobody may see any
more takes the block along. A memory that is not in the store was either withdrawn by the batch that says it in better
words, and is then in its history, or was erased, and is nowhere."""

from collections.abc import Iterable, Iterator, Sequence
from weakref import ref

from cachetools import LRUCache

from semmem.memory import (
    ASKED_TO_FORGET,
    CONTRADICTED,
    SUPERSEDED_BY,
    SUPERSEDED_WHY,
    UNDONE,
    UNFOUNDED,
    UPDATED,
    Hit,
    Memory,
    MemoryStatus,
)
from semmem.passages.pieces import PREFIX
from semmem.ports.session_states import ShownBlock
from semmem.ports.talks import TALK_ID
from semmem.retrieval.context import says
from semmem.retrieval.index.memory_index import MemoryIndex
from semmem.retrieval.ledger.ledger import ERASED, Fit, Page
from semmem.retrieval.search import ResolvedQuery
from semmem.text.screening import readable

EXPIRED, QUARANTINED = "expired", "quarantined"
CORRECTIONS_MAX = 3
"""In one block, the newest."""
STEPS_MAX = 10
"""From a memory to what took its place, to what took the place of that, and so on."""
SAID_BACK_S = 7 * 86_400.0
"""A change that was told longer ago is known by now."""
SAID_BACK_MAX = 10_000
"""So many versions of memories are remembered as said back, by this process alone: another one says them once more."""
CHANGES_MAX = 3
"""In one block, the newest."""


def not_looked_at(page: Page, index: MemoryIndex, now: float) -> list[ShownBlock]:
    """Those of the page's blocks of which is not known yet that they may be shown beside these memories: a session of
    fifty turns has fifty blocks."""
    fit = page.fit
    if fit.index() is not index or now >= fit.until:
        return list(page.blocks.values())
    return [block for anchor, block in page.blocks.items() if fit.blocks.get(anchor) is not block]


def note_fit(page: Page, blocks: Iterable[ShownBlock], index: MemoryIndex, now: float) -> None:
    """These were looked at, and may be shown: as long as the index is the same object, no memory in them has
    expired, and they are the same objects."""
    if page.fit.index() is not index or now >= page.fit.until:
        page.fit = Fit(ref(index))
    for block in (each for each in blocks if page.blocks.get(each.anchor) is each):  # others have gone meanwhile
        page.fit.blocks[block.anchor] = block
        memories = (index.of(memory_id) for memory_id, _ in block.memories)
        ends = (memory.expires_at for memory in memories if memory is not None and memory.expires_at is not None)
        page.fit.until = min(page.fit.until, block.expires_at, *ends)


def unfit(block: ShownBlock, index: MemoryIndex, now: float) -> str | None:
    """Why the block may not be shown, as far as the memories that are there say it: a word, None for nothing."""
    if now >= block.expires_at:
        return EXPIRED
    for memory_id, _ in block.memories:
        memory = index.of(memory_id)
        if memory is None:
            continue
        if memory.created_at > block.shown_at:
            return ERASED  # what was shown was, and this is another one of its name
        if memory.expires_at is not None and now >= memory.expires_at:
            return EXPIRED
        if memory.status is MemoryStatus.QUARANTINED:
            return QUARANTINED
        why, is_active = memory.metadata.get(SUPERSEDED_WHY), memory.status is MemoryStatus.ACTIVE
        if why in (ASKED_TO_FORGET, UNDONE):  # what an undone one had taken the place of must not stand before it
            return str(why)
        if (is_active and not index.is_live(memory_id)) or why == UNFOUNDED:
            return UNFOUNDED  # a reflection, and what it rests on may be erased
        if is_active and readable(memory) is not None:
            return QUARANTINED
    return None


def absent(blocks: Iterable[ShownBlock], index: MemoryIndex) -> set[str]:
    """The ids of memories in these blocks that the user does not have, in whatever state. Of passages and former
    conversations no index knows: whatever is erased of the user takes all blocks along."""
    ids = {memory_id for block in blocks for memory_id, _ in block.memories}
    elsewhere = (TALK_ID, PREFIX)
    return {memory_id for memory_id in ids if not memory_id.startswith(elsewhere) and index.of(memory_id) is None}


def corrections(
    blocks: Iterable[ShownBlock], index: MemoryIndex, now: float, *, apart_from: Iterable[Hit]
) -> list[Hit]:
    """What holds now in place of what these blocks say, and stands in none of them; newest first."""
    shown = {pair: block.text for block in blocks for pair in block.memories}
    found = {
        after.id: after
        for (memory_id, version), text in shown.items()
        if (after := _after(memory_id, version, text, index)) is not None
        and (after.id, after.version) not in shown
        and all(hit.memory.id != after.id for hit in apart_from)
        and readable(after) is None
        and (after.expires_at is None or now < after.expires_at)
    }
    newest = sorted(found.values(), key=lambda memory: -memory.said_at)
    return [Hit(memory, 0.0, 0.0) for memory in newest[:CORRECTIONS_MAX]]


def _after(memory_id: str, version: int, text: str, index: MemoryIndex) -> Memory | None:
    """What took the memory's place, where that says something else."""
    chain = _successors(memory_id, index)
    after = next((memory for memory in chain if memory.status is MemoryStatus.ACTIVE), None)
    if after is None or not index.is_live(after.id):
        return None
    if (after.id, after.version) == (memory_id, version) or says(text, after):
        return None
    return after


def _successors(memory_id: str, index: MemoryIndex) -> Iterator[Memory]:
    memory = index.of(memory_id)
    for _ in range(STEPS_MAX):
        if memory is None:
            return
        yield memory
        if memory.metadata.get(SUPERSEDED_WHY) not in (CONTRADICTED, UPDATED):
            return
        memory = index.of(str(memory.metadata.get(SUPERSEDED_BY)))


class Changes:
    """What always matters and has ended or changed is said back in the next block, whatever is asked, so that the model
    can ask whether it is so, and the user sees at once what was understood. Remembers, for as long as the process
    lives, which changes were shown."""

    def __init__(self) -> None:
        self._said: LRUCache[tuple[str, int], bool] = LRUCache(SAID_BACK_MAX)

    def to_say_back(self, index: MemoryIndex | None, query: ResolvedQuery, kept: Sequence[Hit]) -> list[Hit]:
        """Those changes that no block has shown yet and ``kept`` does not hold, newest first. None where the user's
        index was not there in time: the next request says them."""
        if index is None or not index.changing:
            return []
        members = index.members(query.scope, query.types, query.now)
        shown = {hit.memory.id for hit in kept}
        found = [index.memories[place] for place in index.changing if members[place]]
        told = [memory for memory in found if (memory.id, memory.version) not in self._said and memory.id not in shown]
        fresh = (memory for memory in told if 0 <= query.now - memory.said_at < SAID_BACK_S)
        news = [memory for memory in fresh if readable(memory) is None]
        news.sort(key=lambda memory: -memory.said_at)
        return [Hit(memory, 0.0, 0.0) for memory in news[:CHANGES_MAX]]

    def said_back(self, shown: Sequence[Hit]) -> None:
        """These stand in a block."""
        for hit in shown:
            if hit.memory.changes_standing:
                self._said[hit.memory.id, hit.memory.version] = True
