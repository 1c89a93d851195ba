"""Which states sessions have, as this process knows it; and which of them turns under way were given."""

from __future__ import annotations

from msgspec import Struct

from semmem.ports.session_states import SessionState, SessionStates
from semmem.turns.recent import Recent


class _Entry(Struct, frozen=True):
    user: str
    read_at: float
    states: tuple[SessionState, ...]


class KnownStates:
    """Reads states, and keeps those of the ``sessions_max`` sessions asked for last, each for ``refresh_s`` seconds:
    another replica may have made a newer one. That there is none is kept as long.

    What was read, or made, before a user is forgotten and arrives afterwards is neither kept nor told.

    And which state the first request of a turn was given, by the number that the state has (0: none); of the
    ``turns_max`` turns seen last.
    """

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
