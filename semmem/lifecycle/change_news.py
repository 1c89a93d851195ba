"""Whose memories this process changed, told to the other replicas; and what they tell, obeyed here.

A word names users by keyed digests: who reads the bus learns nobody's name. Who hears a digest knows it again where he
read that user's memories before. For a while the store may show what was there before the change. So the user's next
reading is as of now where nobody waits for it; else it is as it is, and soon done again.

News are no promise. What could not be told is told as "everything may have changed" as soon as that is possible, and
so is understood every gap in what is heard. Whatever is lost shows when copies reach their staleness."""

import asyncio
import math
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum, auto
from hashlib import blake2b
from itertools import islice
from typing import Protocol

from cachetools import TTLCache

from semmem.memory import Memory, Scope, Types
from semmem.ports.errors import NewsError
from semmem.ports.events import Announce, ChangesTold, NewsBack, NewsLost, nobody_listens
from semmem.ports.store import Lagging, Store, StoreWrapper

CHANGED, EVERYTHING = "changed", "everything"
"""How a word begins that speaks of changes, and what stands in it in place of digests."""
DIGEST_BYTES = 16
USERS_PER_WORD = 200
"""Of 33 characters each: PostgreSQL takes 7,999 bytes."""
WORD_CHARS_MAX = 8000
KNOWN_LEAST = 10_000
"""Users whose digests are kept before it is looked whether anything is kept of them here; about 150 bytes each."""
RECENT_MAX = 20_000
"""Digests that are read as of now; of more, the oldest are read as any other."""
AGAIN_S = 0.25
"""After so long memories are read again that somebody waited for: the time tick of a Milvus server is 0.2 s."""
BACK_S = 10.0
"""So long after an outage, changes elsewhere are not known here: others may not yet have told what they could not, of
which they try for RETRY_MAX_S at the longest."""
FOREIGN_S = 60.0
"""So long after a word under another key, changes elsewhere are not known here: the key is being turned."""
RETRY_S, RETRY_MAX_S = 0.2, 5.0
"""First and longest pause before a bus is tried again that failed."""

_TELLING, _HEARING = "telling", "hearing"


class NewsBus(Protocol):
    """Words to all who listen, this process among them, and words from them. What is said while nobody listens, or
    while a listener's connection is broken, is lost."""

    async def say(self, word: str) -> None:
        """Raises NewsError when it is not known to be said."""


class ListeningBus(NewsBus, Protocol):
    """A bus with a connection of its own for what it hears."""

    async def listen(self, heard: Callable[[str], None], connected: Callable[[], None]) -> None:
        """Calls ``connected`` once, then ``heard`` with each word. Raises NewsError when the connection is lost."""

    async def close(self) -> None:
        """Release everything. Idempotent."""


class Copies(Protocol):
    """What this process keeps of users' memories."""

    def holds(self, user: str) -> bool:
        """Whether anything is kept of the user, or being read."""

    def changed_elsewhere(self, user: str) -> bool:
        """Another process changed the user's memories: whether they are read anew at once, and nobody waits for it."""

    def all_changed_elsewhere(self) -> None:
        """It may have changed anybody's."""


class Reading(Enum):
    """How memories are to be read: as the store shows them; as of now; or as it shows them, and soon again."""

    ANYHOW = auto()
    AS_OF_NOW = auto()
    TWICE = auto()


@dataclass(eq=False, repr=False)
class ChangeNews:
    """``changed`` is told of every write to the store. What changes within ``interval_s`` after the last word is told
    together; above ``users_max`` users as "everything". ``key``: the same on all replicas. ``settle_s``: how long a
    store may show what was there before; ``again_s``: after how long what was read meanwhile is read again.
    ``retry_s``: first pause after a failure. Nothing here is waited for by a request, and nothing raises."""

    bus: NewsBus
    key: bytes
    _: KW_ONLY
    interval_s: float = 0.1
    users_max: int = 2000
    settle_s: float = 5.0
    again_s: float = AGAIN_S
    retry_s: float = RETRY_S
    announce: Announce = nobody_listens
    clock: Callable[[], float] = time.monotonic
    _origin: str = field(init=False, default_factory=lambda: secrets.token_hex(8))
    _copies: Copies | None = field(init=False, default=None)
    _changed: set[str] = field(init=False, default_factory=set)
    _everything: bool = field(init=False, default=False)
    _waiting: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    _known: dict[str, str] = field(init=False, default_factory=dict)
    _known_max: int = field(init=False, default=KNOWN_LEAST)
    _away: set[str] = field(init=False, default_factory=lambda: {_HEARING})
    _is_lost: bool = field(init=False, default=False)
    _incomplete_until: float = field(init=False, default=-math.inf)

    def __post_init__(self) -> None:
        self._key_id = self._digest("")[:8]
        self._recent: TTLCache[str, Reading, float] = TTLCache(RECENT_MAX, self.settle_s, timer=self.clock)

    @property
    def is_up(self) -> bool:
        """Whether others are told and heard, as far as is known."""
        return not self._away

    @property
    def is_complete(self) -> bool:
        """Whether every change that another process tells is heard and understood here, as far as is known."""
        return not self._away and self.clock() >= self._incomplete_until

    def of(self, copies: Copies) -> None:
        """What has to be told when another process changes something."""
        self._copies = copies

    def changed(self, user: str, memory_id: str | None = None) -> None:
        if not self._everything:
            self._changed.add(user)
        if len(self._changed) > self.users_max:
            self.everything()
        self._waiting.set()

    def everything(self) -> None:
        """Another process is gone that may have changed anybody's memories and not told of it."""
        self._everything = True
        self._changed.clear()
        self._waiting.set()

    async def run(self) -> None:
        """Tell what changes, until cancelled: at once, unless something was told a moment ago."""
        pause_s, loop, told_at = self.retry_s, asyncio.get_running_loop(), -math.inf
        while True:
            await self._waiting.wait()
            await asyncio.sleep(max(0.0, told_at + self.interval_s - loop.time()))
            told_at = loop.time()
            if await self.tell():
                pause_s = self.retry_s
            else:
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, RETRY_MAX_S)

    async def tell(self) -> bool:
        """Tell at once what waits; whether that could be done."""
        self._waiting.clear()
        told, words = f"told_{EVERYTHING}" if self._everything else "told", list(self._words())
        try:
            for word, users in words:
                await self.bus.say(word)
                self.announce(ChangesTold(told, users))
        except NewsError as error:
            self.everything()
            self.announce(ChangesTold("untold"))
            self._gone(_TELLING, str(error))
            return False
        self._back(_TELLING)
        return True

    def _words(self) -> Iterator[tuple[str, int]]:
        """What waits, with how many users each names; nothing waits any more."""
        everything, changed = self._everything, self._changed
        self._everything, self._changed = False, set()
        if everything:
            yield self._word(EVERYTHING), 1
        digests = map(self._digest, changed)
        while some := [*islice(digests, USERS_PER_WORD)]:
            yield self._word(*some), len(some)

    def _word(self, *what: str) -> str:
        return " ".join((CHANGED, self._origin, self._key_id, *what))

    def connected(self) -> None:
        """From here on every word is heard; what was said before may have been missed."""
        self._all_doubted()
        self._back(_HEARING)

    def lost(self, why: str) -> None:
        """Words may be missed until ``connected``."""
        self._gone(_HEARING, why)

    def heard(self, word: str) -> None:
        """A word of somebody's. What is no word of this kind is passed over."""
        kind, *rest = word.split(" ") if len(word) <= WORD_CHARS_MAX else [""]
        if kind != CHANGED or len(rest) < 3 or rest[0] == self._origin:
            return
        _, key_id, *what = rest
        if key_id != self._key_id:
            self._not_complete_for(FOREIGN_S)
            self.announce(ChangesTold("foreign"))
        elif what == [EVERYTHING]:
            self.announce(ChangesTold("heard_everything"))
            self._all_doubted()
        else:
            self.announce(ChangesTold("heard", len(what)))
            self._doubted(what)

    async def listen(self, listening: Callable[[], Awaitable[None]]) -> None:
        """``listening`` again and again, until cancelled, with longer and longer pauses while it fails."""
        pause_s = self.retry_s
        while True:
            try:
                await listening()
            except NewsError as error:
                if _HEARING not in self._away:  # it went well until now
                    pause_s = self.retry_s
                self.lost(str(error))
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, RETRY_MAX_S)

    def _doubted(self, digests: Sequence[str]) -> None:
        for digest in digests:
            self._recent[digest] = Reading.TWICE
            user = self._known.get(digest)
            if user is not None and self._copies is not None and self._copies.changed_elsewhere(user):
                self._recent[digest] = Reading.AS_OF_NOW

    def _all_doubted(self) -> None:
        if self._copies is not None:
            self._copies.all_changed_elsewhere()

    def reading(self, user: str) -> Reading:
        """The user's memories are about to be read, and may be kept: how. After that, the news are known."""
        digest = self._digest(user)
        self._known[digest] = user
        if len(self._known) > self._known_max:
            self._forget_unheld()
        how = self._recent.pop(digest, Reading.ANYHOW)
        if how is Reading.TWICE and not self._is_held(user):  # nothing of it is kept, and no request waits for it
            return Reading.AS_OF_NOW
        return how

    def read_again(self, user: str) -> None:
        """What was read just now may miss what changed."""
        if self._copies is not None:
            asyncio.get_running_loop().call_later(self.again_s, self._copies.changed_elsewhere, user)

    def _is_held(self, user: str) -> bool:
        return self._copies is not None and self._copies.holds(user)

    def _forget_unheld(self) -> None:
        self._known = {digest: user for digest, user in self._known.items() if self._is_held(user)}
        self._known_max = max(KNOWN_LEAST, 2 * len(self._known))

    def _digest(self, user: str) -> str:
        name = user.encode("utf-8", "surrogatepass")
        return blake2b(name, key=self.key, digest_size=DIGEST_BYTES).hexdigest()

    def _gone(self, way: str, why: str) -> None:
        self._away.add(way)
        if not self._is_lost:
            self._is_lost = True
            self.announce(NewsLost(why))

    def _back(self, way: str) -> None:
        self._away.discard(way)
        if self._is_lost and not self._away:
            self._is_lost = False
            self._not_complete_for(BACK_S)
            self.announce(NewsBack())

    def _not_complete_for(self, seconds: float) -> None:
        self._incomplete_until = max(self._incomplete_until, self.clock() + seconds)


class AttentiveStore(StoreWrapper):
    """A Store around ``store``. Whose memories others have changed just now is read as of now, where the store would
    lag, or again when it does not lag any more; and whoever is read is known to ``news`` from here on."""

    def __init__(self, store: Store, news: ChangeNews) -> None:
        super().__init__(store)
        self._news = news
        self._lagging = store if isinstance(store, Lagging) else None

    async def get(self, scope: Scope, memory_id: str) -> Memory | None:
        self._as_of_now(self._news.reading(scope.user), scope.user)
        return await super().get(scope, memory_id)

    async def list(
        self, scope: Scope, *, types: Types = (), limit: int = 100, offset: int = 0, vectors: bool = True
    ) -> list[Memory]:
        how = self._news.reading(scope.user)
        if how is not Reading.TWICE:
            self._as_of_now(how, scope.user)
            return await super().list(scope, types=types, limit=limit, offset=offset, vectors=vectors)
        try:
            return await super().list(scope, types=types, limit=limit, offset=offset, vectors=vectors)
        finally:
            self._as_of_now(how, scope.user)
            self._news.read_again(scope.user)

    async def count(self, scope: Scope, *, types: Types = ()) -> int:
        self._as_of_now(self._news.reading(scope.user), scope.user)
        return await super().count(scope, types=types)

    def _as_of_now(self, how: Reading, user: str) -> None:
        """From here on, where there are news of the user."""
        if self._lagging is not None and how is not Reading.ANYHOW:
            self._lagging.written_elsewhere(user)
