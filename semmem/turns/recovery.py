"""Which messages of a request become turns: the new ones, and of its history those that semmem never saw.

A request that passed without semmem (it was down, or too slow) shows up in the history of the next one. But not all
that a history holds was said by its user: applications put examples in front of their prompts, agents hand transcripts
on, and some of it was said not to be kept. So a message of the history is taken for the user's own only where the words
before it are known to have been journalled: what follows them in the same conversation was said after them. What was
declined ends that: what follows it unseen counts as declined too, until the next words that were journalled."""

import asyncio
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import islice

from msgspec import Struct

from semmem.memory import Conversation, Forgetting, Turn
from semmem.ports.events import Announce, HistoryRead, nobody_listens
from semmem.turns.recent import Recent
from semmem.turns.seen import UNSEEN, Known, SeenMessages, Unread
from semmem.turns.sessions import session_start
from semmem.turns.user_messages import UserMessage, UserMessages

EXAMINED_MAX = 10
"""So many times as many messages as may be recovered are looked at, for known ones among and before them."""

BEGINNING_MAX = 5
"""More user messages than these are no conversation that has just begun."""

SAME_REQUEST_S = 0.1
"""More than what the turns of one request are opened apart, less than any pause between two sessions."""
_NONE = frozenset[str]()


@dataclass(frozen=True, slots=True)
class RecoveryRules:
    """``mode``: ``known_sessions``; ``always``: also where nothing of the conversation is known; or ``never``. With
    ``known_sessions`` a conversation of which nothing is known is believed until ``away_until`` (seconds), since it may
    have begun while semmem was away. Of one request at most ``history_turns_max`` messages of its history and
    ``new_turns_max`` new ones, the newest. Words that were journalled ``kept_s`` seconds ago or longer prove nothing
    any more: what was declined after them, or that they were erased, may be forgotten by then."""

    mode: str = "known_sessions"
    away_until: float = -math.inf
    history_turns_max: int = 50
    new_turns_max: int = 32
    kept_s: float = 7 * 86_400.0


class Chosen(Struct, frozen=True):
    """What of a request becomes turns, oldest first. ``again``: places of current messages that are journalled already,
    or may be. ``complete``: no later request needs to look at what stands before the last of them. ``unread``: the
    journal did not say what it knows of the history."""

    recovered: tuple[UserMessage, ...]
    current: tuple[UserMessage, ...]
    again: frozenset[str]
    complete: bool
    unread: bool = False


@dataclass(eq=False)
class Recovery:
    """Chooses. HistoryRead is announced: how many messages were recovered, or left alone, and why."""

    seen: SeenMessages = field(default_factory=SeenMessages)
    rules: RecoveryRules = RecoveryRules()
    _: KW_ONLY
    announce: Announce = nobody_listens

    def declines(self, messages: UserMessages, now: float) -> list[UserMessage]:
        """The current messages that were not known to be declined. Oldest first: what follows the first of them
        unseen is not recovered either."""
        oldest = islice(messages.current(), self.rules.new_turns_max)
        news = [said for said in oldest if self.seen.declined(said, now)]
        self._count("declined", len(news))
        return news

    def passes_over(self, messages: UserMessages) -> None:
        """Count the current messages of other speakers, unless an earlier request has brought them."""
        if not messages.tool_spoke:
            self._count("other_speaker", messages.of_others)

    async def choose(
        self, messages: UserMessages, *, user: str, session: str, now: float, history: bool = True
    ) -> Chosen:
        """Never raises. ``history``: whether the client keeps the history, and resends it."""
        newest = self.rules.new_turns_max
        current = [*islice(messages.current_backwards(), newest)][::-1]
        if messages.current_count > newest:
            self._count("over_limit", messages.current_count - newest)
        past = self._unsettled(messages, self.seen.settled.get(messages.key)) if history else []
        doubtful = current if messages.answered else current[:-1]
        complete = read = True
        asked = bool(past)
        try:
            known = await self.seen.look_up([*past, *doubtful])
        except Unread:
            self._count("unread", len(past))
            known, past, complete, read = {said.id: self.seen.here(said) for said in doubtful}, [], False, False
        again = _NONE
        if doubtful:
            # Where nobody says: perhaps it was, and is erased since.
            again = frozenset(said.place for said in doubtful if not read or said.ordinal in known[said.id].journalled)
            began = session_start(session)
            current = [said for said in current if said not in doubtful or _is_wanted(said, known[said.id], began)]
        shared = {said.id for said in past if self.seen.is_shared(said, user)}
        if not any(known[said.id] is UNSEEN for said in past):  # nothing that could be recovered, as nearly always
            return Chosen((), tuple(current), again, complete, unread=asked and not read)
        recovered, settled = await self._recovered(past, known, shared, user, now)
        return Chosen(tuple(recovered or ()), tuple(current), again, complete and settled, unread=recovered is None)

    def _unsettled(self, messages: UserMessages, settled: str | None) -> list[UserMessage]:
        """The history from the last words that were dealt with, oldest first."""
        found, chars = list[UserMessage](), 0
        for said in islice(messages.history_backwards(), EXAMINED_MAX * self.rules.history_turns_max):
            found.append(said)
            chars += len(said.text)
            if said.place == settled or chars > EXAMINED_MAX * messages.chars_max:
                break
        return found[::-1]

    async def _recovered(
        self, past: Sequence[UserMessage], known: Mapping[str, Known], shared: Collection[str], user: str, now: float
    ) -> tuple[Sequence[UserMessage] | None, bool]:
        """The messages (None: the journal does not say), and whether that was all of them."""
        wanted, erased = self._wanted(past, known, shared, now), list[UserMessage]()
        if wanted:
            try:
                forgotten_at = await self.seen.forgotten_at(user)
                if forgotten_at is not None:  # words that were said again since do not count as new
                    known = await self.seen.look_up(past, first=True)
            except Unread:
                self._count("unread", len(wanted))
                return None, False
            if forgotten_at is not None:
                left = self._wanted(past, known, shared, now, forgotten_at)
                wanted, erased = left, [said for said in wanted if said not in left]
        found = wanted[-self.rules.history_turns_max :]
        self._count("recovered", len(found))
        self._count("over_limit", len(wanted) - len(found))
        self._count("erased", self.seen.passed(erased))
        self._count("unproven", self.seen.passed(said for said in past if said not in wanted))
        return found, len(found) == len(wanted)

    def _wanted(
        self,
        past: Sequence[UserMessage],
        known: Mapping[str, Known],
        shared: Collection[str],
        now: float,
        forgotten_at: float | None = None,
    ) -> list[UserMessage]:
        """What may be recovered. Of a user of whom something was erased nothing is taken on trust: only words that
        were journalled after that prove that what follows them was said after it as well."""
        if self.rules.mode == "never":
            return []
        trusting = self.rules.mode == "always"
        floor = -math.inf if trusting else now - self.rules.kept_s
        if forgotten_at is not None:
            trusting, floor = False, max(floor, forgotten_at)
        away = now < self.rules.away_until and _is_beginning(past, known)
        if trusting or not away or forgotten_at is not None:
            return [*self._behind_known(past, known, floor, trusting)]
        return [said for said in self._behind_known(past, known, floor, True) if said.id not in shared]

    def _behind_known(
        self, past: Sequence[UserMessage], known: Mapping[str, Known], floor: float, proven: bool
    ) -> Iterator[UserMessage]:
        """What nobody has seen, where the last known words before it were journalled after ``floor``."""
        for said in past:
            what = known[said.id]
            if what.is_declined(said.ordinal):
                proven = False
            elif said.ordinal in what.journalled:
                proven = what.journalled[said.ordinal] > floor
            elif what.journalled or what.passed:
                continue
            elif self.seen.was_declined_anonymously(said):
                proven = False
            elif proven:
                yield said

    def _count(self, word: str, number: int) -> None:
        if number > 0:
            self.announce(HistoryRead(word, number))


def _is_beginning(past: Sequence[UserMessage], known: Mapping[str, Known]) -> bool:
    """Whether all of it may have been said while semmem was away: nothing of it is known, and it is short. What is
    long may be so old that nobody knows any more what of it was not to be kept."""
    return len(past) <= BEGINNING_MAX and all(known[said.id] is UNSEEN for said in past)


def _is_wanted(said: UserMessage, what: Known, began: float) -> bool:
    """Whether a current message becomes a turn although it need not be new: not when it was not to be kept, nor when
    an earlier session with the same words has learnt it."""
    if said.ordinal in what.declined and what.is_declined(said.ordinal):
        return False
    return what.journalled.get(said.ordinal, math.inf) >= began - SAME_REQUEST_S


# --- histories that could not be compared ----------------------------------------------------------------------------
# The journal did not say in time what it knows. The next request of the conversation brings them again; where none
# comes, they are compared once more when the journal answers.

HISTORIES_MAX = 200
CHARS_MAX = 256 * 1024
"""A longer conversation is left to its next request: together they take 50 MB at most."""


class UnreadHistory(Struct, frozen=True):
    """The newest turn of a request, which was recorded, and the messages that the request brought."""

    newest: Turn
    messages: UserMessages
    after: str


class UnreadHistories:
    """The newest of each conversation, of the conversations that were heard of last."""

    def __init__(self, *, histories_max: int = HISTORIES_MAX, chars_max: int = CHARS_MAX) -> None:
        self._chars_max = chars_max
        self._waiting = Recent[str, UnreadHistory](histories_max)
        self._some = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def keep(self, conversation: Conversation, unread: UnreadHistory) -> None:
        if sum(len(message.text) for message in conversation.messages) <= self._chars_max:
            self._waiting.put(unread.messages.key, unread)
            self._some.set()

    def drop(self, unread: UnreadHistory) -> None:
        """It was dealt with; not what a later request brought."""
        self._waiting.drop(lambda each: each is unread)

    def settled(self, conversation: str) -> None:
        """A later request of the conversation of this key was compared with the journal."""
        self._waiting.drop(lambda each: each.messages.key == conversation)

    def forget(self, what: Forgetting) -> None:
        self._waiting.drop(lambda each: what.covers_turn(each.newest))

    def waiting(self) -> list[UnreadHistory]:
        """Those of the conversations that were heard of first come first."""
        return self._waiting.values()

    async def some(self) -> None:
        """Return when there are any."""
        while not self._waiting:
            self._some.clear()
            await self._some.wait()
