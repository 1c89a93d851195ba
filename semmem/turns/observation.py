"""The response phase of one exchange: an answer as it passes, and how it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from semmem.dialects import AnswerReader
from semmem.memory import Answer
from semmem.turns.encodings import Decoder, Undecodable


@dataclass(frozen=True, slots=True)
class Ticket:
    """What the request phase hands to the response phase of the same exchange, through Envoy's dynamic metadata.

    ``earlier`` are turns of the same request that stand before this one without an answer: they end as it does.
    """

    turn_id: str
    dialect: str
    earlier: tuple[str, ...] = ()


class Observation:
    """One answer as it passes. ``end`` must be called once, however the answer ended."""

    def __init__(
        self,
        ticket: Ticket,
        status: int,
        decoder: Decoder | None,
        reader: AnswerReader | None,
        close: Callable[[Ticket, str, Answer | None], None],
    ) -> None:
        self._ticket = ticket
        self._status = status
        self._decoder = decoder
        self._reader = reader
        self._close = close

    @property
    def wants_body(self) -> bool:
        return self._reader is not None

    def feed(self, chunk: bytes) -> None:
        if self._reader is None or self._decoder is None:
            return
        try:
            for piece in self._decoder.feed(chunk):
                self._reader.feed(piece)
        except Undecodable:
            self._reader = None

    def end(self) -> str:
        """Close the turn; how it ended, in one word."""
        answer = self._reader.end() if self._reader is not None else None
        status = self._ended(answer)
        self._close(self._ticket, status, answer)
        return status

    def _ended(self, answer: Answer | None) -> str:
        if 400 <= self._status < 500:
            return "refused"
        if self._decoder is None and 200 <= self._status < 300:
            return "unknown_encoding"
        if answer is not None and answer.filtered:
            return "refused"
        if answer is None or not answer.complete:
            return "answer_lost"
        # a call of a tool is not yet the answer: the same turn goes on in the client's next request
        return "answered" if answer.text and not answer.calls_tool else "continues"
