"""What a long request is given in the place of its older messages, and when the next state is to be made.

A state is used by requests of later turns only, never by those of the turn that it was made in: a tool loop that goes
on, or a retry, has the same beginning as its first request. And it is used until the next one is there, some turns
later, so that a provider's cache of the beginning is of use. Whatever is not as it should be (no state, another
history, a database that does not answer in time) leaves the request as it came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from msgspec import Struct, structs

from semmem.compression import cutting
from semmem.compression.extractive import rendered
from semmem.compression.making import Job
from semmem.dialects import Malformed
from semmem.exchange.features import Feature, PendingRequest
from semmem.memory import Element, Replacement
from semmem.ports import spans
from semmem.ports.errors import JournalError
from semmem.ports.events import Announce, LongRequest, nobody_listens
from semmem.ports.session_states import SessionState, SessionStates
from semmem.request.body_work import BodyWork
from semmem.request.permission import Permission
from semmem.retrieval.context import estimate_tokens
from semmem.retrieval.fence import Fence
from semmem.turns.recent import Recent

HEADER = "x-semmem-compression"
NONE = 0
"""Number of the state that a turn was given when it was given none."""
WORTH_TIMES = 2
"""What is replaced has to be so many times as long as the state that takes its place may be."""


@dataclass(frozen=True, slots=True)
class CompressionRules:
    """From ``from_tokens`` estimated tokens of messages on a request is compressed; ``turns_kept`` turns stay as they
    are. A new state is made ``renew_turns`` turns after the last. ``state_tokens_max``: of its block. A database has
    ``lookup_s`` seconds to say which states there are. ``source_chars_max``: characters that a state is made of."""

    from_tokens: int = 8000
    turns_kept: int = 5
    renew_turns: int = 10
    state_tokens_max: int = 650
    lookup_s: float = 0.05
    source_chars_max: int = 400_000


class _Long(Struct, frozen=True):
    """A request that may be long enough, of the turn of this id: its elements, and the estimated tokens of each."""

    pending: PendingRequest
    turn_id: str
    elements: Sequence[Element]
    tokens: Sequence[int]


OFF, UNFIT, LATE, NO_STATE, CHANGED, COMPRESSED = "off", "unfit", "late", "no_state", "changed", "compressed"
"""How it went with a request that is long enough: it asked for none; its list can be parted nowhere; the database did
not answer in time; there is no state yet; there is one, of another history; it was done."""


@dataclass(eq=False, repr=False)
class Compressor(Feature):
    """Holds nothing of any request; ``known`` is of the process. ``order`` takes states to be made, without waiting.
    ``is_erased``: whether anything of the user's is being erased at the moment, or just was; no state of theirs is used
    then."""

    known: KnownStates
    order: Callable[[Job], None]
    fence: Fence
    rules: CompressionRules
    work: BodyWork
    announce: Announce = nobody_listens
    is_erased: Callable[[str], bool] = lambda _user: False

    async def after_turn(self, pending: PendingRequest) -> None:
        """What takes the place of a long request's older messages. Memories are then found for what is left of it."""
        if pending.body is None:  # a history that was added here is not made shorter
            with spans.step("semmem.compress"):
                await self._compress(pending)

    async def _compress(self, pending: PendingRequest) -> None:
        turn, request = pending.turn, pending.request
        if request.body_bytes < self.rules.from_tokens or turn.id is None or turn.messages is None:
            return
        if not turn.scope.session or self.is_erased(turn.scope.user):
            return
        if pending.said is not request.parsed.conversation:
            return  # with blocks of ours in it, from a proxy before
        try:
            reading = partial(_read, pending, turn.id)
            long = await self.work.do(request.body_bytes, reading, until=request.deadline.at)
        except (Malformed, TimeoutError):
            return
        if sum(long.tokens) < self.rules.from_tokens:
            return
        # an unknown word restricts: somebody wanted something
        if any(value.strip().lower() != "on" for value in request.head.headers.get(HEADER, ())):
            self.announce(LongRequest(OFF))
            return
        await self._long(long, pending.asker.allowed)

    async def _long(self, long: _Long, allowed: Permission) -> None:
        start = cutting.cut(long.elements, turns_kept=self.rules.turns_kept)
        if start is None:
            self.announce(LongRequest(UNFIT))
            return
        user, turn = long.pending.turn.scope.user, long.pending.turn
        states = await self._states(long)
        if states is None:
            self.known.give(long.turn_id, user, self.known.given(long.turn_id) or NONE)
            self.announce(LongRequest(LATE))
            return
        fitting = [state for state in states if self._fits(state, long.elements)]
        turns = cutting.users_of(long.pending.said)
        if allowed.store and not (turn.opened is not None and turn.opened.resumed):
            self._order(long, start, turns, fitting)
        if not allowed.read:
            return
        used = self._chosen(long.turn_id, user, turns, fitting)
        if used is None:
            self.announce(LongRequest(CHANGED if states and not fitting else NO_STATE))
        else:
            self._replace(used, long)

    # --- which state -------------------------------------------------------------------------------------------------

    async def _states(self, long: _Long) -> list[SessionState] | None:
        scope, now = long.pending.turn.scope, long.pending.question.now
        try:
            async with long.pending.request.deadline.limit(), asyncio.timeout(self.rules.lookup_s):
                return await self.known.states(scope.user, scope.session or "", now=now)
        except (TimeoutError, JournalError):
            return None

    def _fits(self, state: SessionState, elements: Sequence[Element]) -> bool:
        """Whether these begin with what the state stands for, and may be parted behind it."""
        start = cutting.start_behind(elements, state.replaced)
        if start is None or not cutting.may_part(elements, start, turns_kept=self.rules.turns_kept):
            return False
        return cutting.digest_of(elements, cutting.replaceable(elements, start)) == state.digest

    def _chosen(self, turn_id: str, user: str, turns: int, fitting: Sequence[SessionState]) -> SessionState | None:
        """The state that the turn's first request had; the newest that is of an earlier turn, if this is the first."""
        had = self.known.given(turn_id)
        if had is None:
            chosen = next((state for state in fitting if state.turns < turns), None)
            self.known.give(turn_id, user, NONE if chosen is None else chosen.turns)
            return chosen
        return next((state for state in fitting if state.turns == had), None)

    def _replace(self, state: SessionState, long: _Long) -> None:
        elements, pending = long.elements, long.pending
        places = cutting.replaceable(elements, cutting.start_behind(elements, state.replaced) or 0)
        text = rendered(state.state, lambda inside: self.fence.mark(state.user, inside))
        gone, before = cutting.gone_of(pending.said, elements, places), sum(long.tokens)
        after = before - sum(long.tokens[place] for place in places) + estimate_tokens(text)
        pending.replacement, pending.gone = Replacement(places, text), gone
        pending.question = structs.replace(pending.question, conversation=cutting.kept_of(pending.said, gone))
        counted = ("compressed", len(places)), ("compressed_from_tokens", before), ("compressed_to_tokens", after)
        pending.notes = (*pending.notes, *counted)
        self.announce(LongRequest(COMPRESSED, before, after))

    # --- the next state ----------------------------------------------------------------------------------------------

    def _order(self, long: _Long, start: int, turns: int, fitting: Sequence[SessionState]) -> None:
        """Have a state made, unless the newest is of a few turns ago, or the state would hardly be shorter."""
        newest = fitting[0] if fitting else None
        if newest is not None and turns - newest.turns < self.rules.renew_turns:
            return
        elements, turn, pending = long.elements, long.pending.turn, long.pending
        places = cutting.replaceable(elements, start)
        if sum(long.tokens[place] for place in places) < WORTH_TIMES * self.rules.state_tokens_max:
            return
        parts, is_whole = cutting.parts_of(elements, places, newest, self.rules.source_chars_max)
        if not parts:
            return
        self.order(
            Job(
                user=turn.scope.user,
                session=turn.scope.session or "",
                replaced=len(places),
                digest=cutting.digest_of(elements, places),
                turns=turns,
                at=pending.question.now,
                parts=parts,
                said=cutting.places_of(turn, cutting.users_before(pending.said, elements, start)),
                before=None if is_whole or newest is None else newest.state,
            )
        )


def _read(pending: PendingRequest, turn_id: str) -> _Long:
    """To estimate tokens takes as long as to read elements. Raises Malformed."""
    elements = pending.request.parsed.elements()
    return _Long(pending, turn_id, elements, [cutting.tokens_of([element]) for element in elements])


# --- the states that sessions have -----------------------------------------------------------------------------------


class _Entry(Struct, frozen=True):
    user: str
    read_at: float
    states: tuple[SessionState, ...]


class KnownStates:
    """Reads states, and keeps those of the ``sessions_max`` sessions asked for last, each for ``refresh_s`` seconds:
    another replica may have made a newer one. That there is none is kept as long. What was read, or made, before a user
    is forgotten and arrives afterwards is neither kept nor told. And which state the first request of a turn was given,
    by the number that the state has (0: none); of the ``turns_max`` turns seen last."""

    def __init__(self, records: SessionStates, *, sessions_max: int, refresh_s: float, turns_max: int = 10_000) -> None:
        self._records = records
        self._entries = Recent[tuple[str, str], _Entry](sessions_max)
        self._turns = Recent[str, tuple[str, int]](turns_max)
        self._refresh_s = refresh_s
        self._forgotten = 0

    def mark(self) -> int:
        """To be taken before a state is kept, and given to ``made``."""
        return self._forgotten

    async def states(self, user: str, session: str, *, now: float) -> list[SessionState]:
        """The session's states, the newest first. Raises JournalError."""
        entry = self._entries.get((user, session))
        if entry is None or not 0 <= now - entry.read_at < self._refresh_s:
            mark = self._forgotten
            entry = _Entry(user, now, tuple(await self._records.session_states(user, session, now=now)))
            if mark != self._forgotten:
                return []
            self._entries.put((user, session), entry)
        return [state for state in entry.states if state.expires_at > now]

    async def made(self, state: SessionState, *, mark: int, now: float) -> None:
        """A state is kept: requests here have it from now on. Raises JournalError."""
        if mark == self._forgotten:
            self._entries.drop(lambda entry: entry.user == state.user)
            await self.states(state.user, state.session, now=now)

    def given(self, turn_id: str) -> int | None:
        """What the first request of this turn was given; None: this is the first."""
        entry = self._turns.get(turn_id)
        return None if entry is None else entry[1]

    def give(self, turn_id: str, user: str, number: int) -> None:
        self._turns.put(turn_id, (user, number))

    def forget(self, user: str) -> None:
        """Nothing of the user is known any more."""
        self._forgotten += 1
        self._entries.drop(lambda entry: entry.user == user)
        self._turns.drop(lambda turn: turn[0] == user)
