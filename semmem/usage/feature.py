"""Statistics of use as a part of each exchange: a row of figures for every answer that was observed."""

from __future__ import annotations

import msgspec

from semmem.exchange.features import Feature, PendingRequest, noted
from semmem.memory import Answer, TurnEnding
from semmem.ports.usage import Asked
from semmem.turns.observation import Ticket
from semmem.usage.meter import Meter

NOTE = "asked"
_NOTED = msgspec.json.Decoder(Asked)


class UsageFeature(Feature):
    """Holds nothing of any request."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def after_search(self, pending: PendingRequest, shown: tuple[str, ...], tokens: int) -> None:
        if pending.ticket is None:
            return
        said = pending.said if pending.replacement is None else pending.question.conversation
        opened = pending.turn.opened
        speaks = opened is not None and not opened.resumed
        asked = self._meter.asked(pending.turn.scope, said, pending.said_at, speaks=speaks, injected_tokens=tokens)
        pending.note(NOTE, asked)

    def on_answer(self, ticket: Ticket, ending: TurnEnding, answer: Answer | None, now: float, *, failed: bool) -> None:
        asked = noted(ticket, NOTE, _NOTED)
        if asked is not None:
            self._meter.answered(asked, ticket.dialect, ending, answer, now)
