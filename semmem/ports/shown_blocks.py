"""What sessions were shown, kept beside the turns, so that another process shows the same bytes again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

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


class ShownBlocks(Protocol):
    """The blocks of sessions, a session by any name that stands for it. Raises JournalError."""

    async def shown_blocks(self, user: str, session: str, *, now: float) -> list[ShownBlock]:
        """Those that are not expired, in the order in which they were shown."""

    async def keep_shown(self, rows: Sequence[ShownRow], *, per_user: int) -> None:
        """Keep blocks in their order, the ``per_user`` newest of a user. Of one anchor the last stays. None is kept of
        what was shown before the user's last erasure, whatever that was of, nor with a conversation before that was
        removed."""
