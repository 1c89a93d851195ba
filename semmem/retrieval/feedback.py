"""What users said of their memories, helpful or not, and how much that moves the decision to show them.

Asked by every search and never waiting: whoever reads the journal (semmem.background.in_process) puts it here."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from semmem.memory import Memory
from semmem.ports.memory_records import VoteRow

SMOOTHING = 0.3
"""Votes of either kind that every memory has from the start: one thumb down moves by 1.5, four by 2.7."""
DOWN_MOST, UP_MOST = 3.0, 0.5
"""Most that votes move the log-odds of a memory. Half of the way from what is hardly worth a line to what was asked for
in so many words: what is clearly asked for is shown, whatever was said of it. A thumb up breaks ties."""


@dataclass(frozen=True, slots=True)
class UserVotes:
    """Of one user by memory id; ``stamp`` is another one whenever any of them is."""

    stamp: int
    rows: Mapping[str, VoteRow]

    def shift(self, memory: Memory) -> float:
        """What is added to the log-odds of a memory. Said again after the vote it is judged anew."""
        row = self.rows.get(memory.id)
        if row is None or row.last_at < memory.updated_at:
            return 0.0
        return max(-DOWN_MOST, min(UP_MOST, math.log((row.up + SMOOTHING) / (row.down + SMOOTHING))))


class Votes:
    """All that are known."""

    def __init__(self, rows: Iterable[VoteRow] = ()) -> None:
        self._of: dict[str, UserVotes] = {}
        self._stamp = 0
        self.take(rows)

    def __len__(self) -> int:
        return sum(len(votes.rows) for votes in self._of.values())

    def of(self, user: str) -> UserVotes | None:
        return self._of.get(user)

    def stamp(self, user: str) -> int:
        """Another one whenever a vote of this user's is; 0 for who has none."""
        votes = self._of.get(user)
        return 0 if votes is None else votes.stamp

    def take(self, rows: Iterable[VoteRow], *, whole: bool = False) -> None:
        """Know these, and beside them what was known; with ``whole`` these alone."""
        fresh: dict[str, dict[str, VoteRow]] = {}
        if whole:
            self._of = {}
        for row in rows:
            fresh.setdefault(row.user, {})[row.memory_id] = row
        for user, found in fresh.items():
            known = self._of.get(user)
            self._put(user, {**known.rows, **found} if known else found)

    def forget(self, user: str, memory_ids: Iterable[str] | None = None) -> None:
        """Those on these memories of the user's, or on all."""
        known = self._of.pop(user, None)
        if known is None or memory_ids is None:
            return
        gone = frozenset(memory_ids)
        left = {each: row for each, row in known.rows.items() if each not in gone}
        if left:
            self._put(user, left)

    def _put(self, user: str, rows: Mapping[str, VoteRow]) -> None:
        self._stamp += 1
        self._of[user] = UserVotes(self._stamp, rows)
