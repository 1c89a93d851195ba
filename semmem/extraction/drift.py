"""A session that turned to another topic: what was said before is complete, and may be learnt from at once.

Looked for behind the requests, in what waits in the journal. Two processes that look at once cut at the same place or
one a little later; either way every turn is learnt from once, only in other batches."""

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Protocol

import numpy as np

from semmem.memory import Turn, Vector
from semmem.ports.embedder import Embedder
from semmem.ports.learning import WaitingSession
from semmem.text.grounding import content_words

CONTENT_WORDS_MIN = 3
"""A message with fewer ("How much?", "Are they always real?") goes on with whatever the topic is."""
TEXT_CHARS_MAX = 1000
"""Of a message, as much is embedded; the model reads about that much."""
REST_S = 60.0
"""How long nobody looks again where nothing was written, as far as is known."""


class TopicRecords(Protocol):
    """The turns that wait, for whoever looks for changes of topic. Raises JournalError."""

    async def waiting_sessions(self, *, turns_min: int, opened_after: float) -> list[WaitingSession]:
        """Sessions with at least ``turns_min`` waiting turns since they were last cut, the newest of them opened after
        then. A bounded number, those with the newest turns."""

    async def waiting_turns(self, user: str, session: str) -> list[Turn]:
        """The waiting turns of a session since it was last cut, oldest first. A bounded number, the newest."""

    async def cut_session(self, user: str, session: str, *, before: float) -> None:
        """The session's turns opened before then make a batch of their own (trigger ``drift``) as soon as they are
        ready. Idempotent."""


@dataclass(eq=False, repr=False)
class DriftWatch:
    """Cuts sessions where a message's cosine with the mean of the waiting ones before it is below ``threshold``. A
    message is compared with at least ``turns_min`` earlier ones. Only sessions with a turn of the last ``look_back_s``
    seconds are looked at, once per new turn, at most ``sessions_max`` at a time, those first that wait longest.
    ``strip_block`` removes semmem's own block from a text. ``last_write`` is another value after each write to the
    journal; by default it always is."""

    journal: TopicRecords
    embedder: Embedder
    _: KW_ONLY
    threshold: float = 0.12
    turns_min: int = 3
    look_back_s: float = 300.0
    sessions_max: int = 20
    strip_block: Callable[[str], str] = str
    last_write: Callable[[], object] = object

    def __post_init__(self) -> None:
        self._seen: dict[tuple[str, str], float] = {}
        self._all_seen: object = None
        self._rests_until = -math.inf

    async def look(self, now: float) -> int:
        """How many sessions were cut. Raises JournalError and EmbedderError."""
        written = self.last_write()
        if written == self._all_seen and now < self._rests_until:
            return 0
        after = now - self.look_back_s
        sessions = await self.journal.waiting_sessions(turns_min=self.turns_min + 1, opened_after=after)
        newest = {(session.user, session.session): session.newest_at for session in sessions}
        self._seen = {key: at for key, at in self._seen.items() if key in newest}
        unseen = sorted((key for key in newest if self._seen.get(key) != newest[key]), key=lambda key: newest[key])
        cuts = 0
        for key in unseen[: self.sessions_max]:
            cuts += await self._cut(await self.journal.waiting_turns(*key))
            self._seen[key] = newest[key]
        if len(unseen) <= self.sessions_max:
            self._all_seen, self._rests_until = written, now + REST_S
        return cuts

    async def _cut(self, turns: Sequence[Turn]) -> bool:
        """Whether there was a place to cut."""
        texts = [self.strip_block(turn.user_text)[:TEXT_CHARS_MAX] for turn in turns]
        vectors = [await self.embedder.embed(text) for text in texts]
        telling = [len(content_words(text)) >= CONTENT_WORDS_MIN for text in texts]
        place = first_drift(vectors, telling, threshold=self.threshold, turns_min=self.turns_min)
        if place is None:
            return False
        scope = turns[place].scope
        await self.journal.cut_session(scope.user, scope.session or "", before=turns[place].opened_at)
        return True


def first_drift(vectors: Sequence[Vector], telling: Sequence[bool], *, threshold: float, turns_min: int) -> int | None:
    """The place of the first message with content that is about something else than those before it, or None.
    ``vectors`` have length 1; messages that are not ``telling`` neither drift nor say what the topic is."""
    for place in range(turns_min, len(vectors)):
        earlier = [vector for vector, tells in zip(vectors[:place], telling, strict=False) if tells]
        if not telling[place] or not earlier:
            continue
        total = np.sum(earlier, axis=0)
        length = float(np.linalg.norm(total))
        if length and float(vectors[place] @ total) / length < threshold:
            return place
    return None
