"""What a read must wait for or add, so that it shows what this process wrote, on a server that shows writes later.

A Milvus server shows a write with its next time tick, 200 ms later or more. A Strong read waits for that: with one
before each comparison and each write, learning twenty facts took twelve seconds. Here, what was written a moment ago is
added to the answers of reads that do not wait (Bounded), and rows that were deleted are taken out of them. Only what
others may have written needs a Strong read, one for each user and batch: reads behind it show no less than it did. A
row older than ``SHOW_S`` is no longer added, since somebody else may have deleted it: one Strong read settles all that
was written before it.

Milvus Lite shows every write at once and needs none of this."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from cachetools import LRUCache, TTLCache

from semmem.backends.milvus.rows import Row

Consistency = Literal["Bounded", "Strong"]
"""A Strong read on a server waits for the next time tick, and then shows every write."""
SHOW_S = 2.0
"""So long a row of our own is added to answers: ten time ticks."""
CAUGHT_UP_S = 10.0
"""A put looks at rows no older than this, and at all that this process wrote. Whoever changes a memory has read it."""
USERS_MAX = 10_000
"""Of so many users it is known when they were last read with Strong; the others are read so again."""


@dataclass(slots=True)
class Written:
    """A row as it was inserted, None once it was deleted; when; and since when every read shows it."""

    row: Row | None
    at: float
    settled: float = math.inf


class OwnWrites:
    """The writes of the last ``settle_s`` seconds, after which every read of a server shows them. Times are
    ``clock``'s; ``began`` is ``now()`` when the read began. ``lags`` is False for a store that shows writes at once:
    nothing is kept."""

    def __init__(self, *, settle_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.lags = True
        self.now = clock
        self._settle_s = settle_s
        self._written: dict[str, dict[str, Written]] = {}
        self._order: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._unsure: TTLCache[str, float] = TTLCache(math.inf, settle_s, clock)
        self._caught_up: LRUCache[str, float] = LRUCache(USERS_MAX)

    def inserted(self, row: Row) -> None:
        self._note(row["user_id"], row["id"], row)

    def deleted(self, user: str, row_ids: Iterable[str]) -> None:
        for row_id in row_ids:
            self._note(user, row_id, None)

    def unsure(self, user: str) -> None:
        """What was written is not known row by row: it failed half-way, or was too much to keep."""
        if not self.lags:
            return
        self._unsure[user] = self.now()
        self._caught_up.pop(user, None)

    def level(self, user: str, began: float, as_of: float = -math.inf) -> Consistency:
        """How the user must be read to see what this process wrote, and what anybody wrote until ``as_of``."""
        if not self.lags:
            return "Bounded"
        self._let_go()
        if user in self._unsure or self._caught_up.get(user, -math.inf) < as_of:
            return "Strong"
        late = (each for each in self._of(user) if each.settled >= began and each.at < began - SHOW_S)
        return "Strong" if any(each.row is not None for each in late) else "Bounded"

    def settled(self, user: str, began: float) -> None:
        """A Strong read of the user was answered: reads that begin now show what was written before it began."""
        self._caught_up[user] = began
        if self._unsure.get(user, began) < began:
            del self._unsure[user]
        for each in self._of(user):
            if each.at < began:
                each.settled = min(each.settled, self.now())

    def alive(self, user: str, rows: Iterable[Row], began: float) -> list[Row]:
        """Without those that were deleted."""
        own = self._written.get(user, {})
        gone = {row_id for row_id, each in own.items() if each.row is None and each.settled >= began}
        return [row for row in rows if row["id"] not in gone]

    def rows(self, user: str, began: float) -> list[Row]:
        """What was inserted a moment ago, and what the answer of a read may lack."""
        return [
            each.row
            for each in self._of(user)
            if each.row is not None and each.settled >= began and each.at >= began - SHOW_S
        ]

    def _of(self, user: str) -> Iterable[Written]:
        return self._written.get(user, {}).values()

    def _note(self, user: str, row_id: str, row: Row | None) -> None:
        if not self.lags:
            return
        self._let_go()
        self._written.setdefault(user, {})[row_id] = Written(row, self.now())
        self._order[user, row_id] = self.now()
        self._order.move_to_end((user, row_id))

    def _let_go(self) -> None:
        """Of what every read shows by now, whoever's it is."""
        until = self.now() - self._settle_s
        while self._order and next(iter(self._order.values())) < until:
            (user, row_id), _ = self._order.popitem(last=False)
            own = self._written[user]
            del own[row_id]
            if not own:
                del self._written[user]
