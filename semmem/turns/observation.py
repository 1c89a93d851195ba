"""The response phase of one exchange: an answer as it passes, and how it ended."""

from dataclasses import dataclass, field
from typing import Protocol

from msgspec import Struct

from semmem.dialects import AnswerReader
from semmem.memory import Answer, PromptCache, TurnEnding
from semmem.ports.spans import NOWHERE, Place
from semmem.turns.encodings import Decoder, Undecodable


class Ticket(Struct, frozen=True):
    """What the request phase hands to the response phase of the same exchange, through Envoy's dynamic metadata.
    ``earlier`` are turns of the same request that stand before this one without an answer: they end as it does.
    ``place``: where the request stands in a trace. ``notes``: what features want to know again, by their names.
    ``request``: what the request log calls it, 32 hex digits; empty where it has none."""

    turn_id: str
    dialect: str
    earlier: tuple[str, ...] = ()
    place: Place = NOWHERE
    notes: tuple[tuple[str, str], ...] = ()
    request: str = ""


class Closing(Protocol):
    """Is told how the answer to a ticket's request ended. ``failed``: it is known that the client was given none, or
    not all of it; where nothing is known it is false."""

    def __call__(self, ticket: Ticket, ending: TurnEnding, answer: Answer | None, *, failed: bool) -> None: ...


@dataclass(eq=False)
class Observation:
    """One answer as it passes. ``end`` must be called once, however the answer ended; ``prompt_cache`` is what the
    answer said of it by then."""

    ticket: Ticket
    status: int
    decoder: Decoder | None
    reader: AnswerReader | None
    close: Closing
    prompt_cache: PromptCache | None = field(init=False, default=None)

    @property
    def wants_body(self) -> bool:
        return self.reader is not None

    def feed(self, chunk: bytes) -> None:
        if self.reader is None or self.decoder is None:
            return
        try:
            for piece in self.decoder.feed(chunk):
                self.reader.feed(piece)
        except Undecodable:
            self.reader = None

    def end(self, *, seen: bool = True) -> TurnEnding:
        """Close the turn; how it ended. ``seen``: that was the answer's end, and not only that of what could be seen
        of it."""
        answer = self.reader.end() if self.reader is not None else None
        self.prompt_cache = answer.prompt_cache if answer is not None else None
        ending = self._ending(answer)
        failed = self.status >= 400 or (seen and answer is not None and answer.broke)
        self.close(self.ticket, ending, answer, failed=failed)
        return ending

    def _ending(self, answer: Answer | None) -> TurnEnding:
        if 400 <= self.status < 500:
            return TurnEnding.REFUSED
        if self.decoder is None and 200 <= self.status < 300:
            return TurnEnding.UNKNOWN_ENCODING
        if answer is not None and answer.filtered:
            return TurnEnding.REFUSED
        if answer is None or not answer.complete:
            return TurnEnding.ANSWER_LOST
        # a call of a tool is not yet the answer: the same turn goes on in the client's next request
        return TurnEnding.ANSWERED if answer.text and not answer.calls_tool else TurnEnding.CONTINUES
