"""What the journal keeps of sessions beside their turns: the state that stands for the older part of a long one, and
what each was shown, so that another process shows the same bytes again."""

import math
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

RULES, MODEL = "rules", "model"
"""Who made a state."""


class CurrentState(Struct, frozen=True):
    """Where a conversation stands: its topic, what was decided, what was said that others rest on (``facts``: by the
    user; ``answers``: by the assistant), what is asked and not answered. One line of text each."""

    topic: str = ""
    decisions: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    open: tuple[str, ...] = ()


class SessionState(Struct, frozen=True):
    """A state and what it stands for: the first ``replaced`` elements of the session's requests, instructions apart,
    whose digest is ``digest``; ``turns`` is how many messages of the user's the request had that it was made of, and
    only a request with more is given it. ``made_at`` and ``expires_at`` in seconds since the epoch."""

    user: str
    session: str
    replaced: int
    digest: str
    turns: int
    made_at: float
    expires_at: float
    state: CurrentState
    made_by: str = RULES


class Place(Struct, frozen=True):
    """A message of the user's: its bare id, and its number among the user's messages of a request."""

    message_id: str
    ordinal: int


class SessionStates(Protocol):
    """The states of sessions. Raises JournalError."""

    async def session_states(self, user: str, session: str, *, now: float) -> list[SessionState]:
        """Those that are not expired, the newest first."""

    async def keep_state(self, state: SessionState, said: Sequence[Place], *, per_session: int, per_user: int) -> bool:
        """Keep a state in place of one of as many turns, and of each kind only so many, the newest. False where it may
        not be kept: of the messages that it was made of one is unknown, was declined, or was said before the user's
        last erasure, whatever that was of."""


START = "start"
"""The anchor of the block at a session's beginning."""


class ShownBlock(Struct, frozen=True):
    """A block as it was put into a prompt. ``anchor`` stands for the message that it belongs to; ``turn`` is the id of
    that message's turn; ``position`` is the Injection's. ``memories``: id and version of each memory in it, and of each
    former conversation. ``expires_at``: when it may not be shown any more, in seconds since the epoch, as
    ``shown_at``. ``after``: the id of the turn that the message goes on from, where the API keeps the history. An empty
    text: the message was shown nothing in the end."""

    anchor: str
    text: str
    memories: tuple[tuple[str, int], ...]
    tokens: int
    turn: str
    position: str
    shown_at: float
    expires_at: float = math.inf
    after: str = ""


ShownRow = tuple[str, str, ShownBlock | None]
"""User, session and block; None: forget the session's blocks."""
