"""Tickets with the note of a recorded conversation."""

from __future__ import annotations

import msgspec

from semmem.conversations.feature import NOTE
from semmem.exchange.features import noted
from semmem.ports.conversations import Step
from semmem.turns.observation import Ticket


def with_step(step: Step) -> Ticket:
    return Ticket("t_" + "1" * 32, "chat", notes=((NOTE, msgspec.json.encode(step).decode()),))


def step_of(ticket: Ticket) -> Step | None:
    return noted(ticket, NOTE, msgspec.json.Decoder(Step))
