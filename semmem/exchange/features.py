"""Where optional features take part in an exchange. The steps name none of them: with none on, nothing is done here.

A feature joins a request in four places, in the order of ``RequestPart``, and hears of its answer through ``Feature``.
What it wants to know again with the answer travels in the ticket's notes, under a name of its own.
"""

from dataclasses import dataclass
from typing import TypeVar

import msgspec
from msgspec import Struct

from semmem.dialects import Dialect, ParsedRequest
from semmem.dialects.parsing import ParseLimits, parse
from semmem.memory import Answer, Conversation, Replacement, TurnEnding
from semmem.request.asker import Asker
from semmem.request.head import RequestHead
from semmem.request.outcome import NAME_CHARS_MAX, Outcome
from semmem.request.permission import Switched
from semmem.request.question import Deadline, Question
from semmem.retrieval.context import without_blocks
from semmem.retrieval.showing import Shown
from semmem.turns.observation import Ticket
from semmem.turns.recorder import CurrentTurn
from semmem.turns.sessions import AnsweredTurn

T = TypeVar("T")


class RequestResult(Struct, frozen=True):
    """``body`` None: the request goes on byte for byte as it came. ``ticket`` None: the answer is not wanted.
    ``switched``: what an administrator's switch kept from it. ``notes``: what features say of it in Envoy's dynamic
    metadata. ``request_id``: its ``x-request-id``; None where there is no usable one, nobody is known to be asking, or
    nothing may be kept of it."""

    outcome: Outcome
    body: bytes | None = None
    ticket: Ticket | None = None
    injected: int = 0
    tokens: int = 0
    switched: Switched = Switched.NOTHING
    notes: tuple[tuple[str, int | str], ...] = ()
    request_id: str | None = None


class ReadRequest(Struct, frozen=True):
    """A request as it was read: ``said`` is its conversation without what semmem added to it somewhere before."""

    head: RequestHead
    dialect: Dialect
    parsed: ParsedRequest
    said: Conversation
    body_bytes: int
    deadline: Deadline


@dataclass(slots=True, eq=False)
class PendingRequest:
    """One request between its reading and its rewriting. ``said_at``: when, after the user's last erasure.

    A feature may change before the turn is named: ``said``, and the turn that was answered ``before``; after it:
    ``question``, what memories are found for; ``body``, that goes on in the place of the one that came, and ``parsed``,
    the same read; ``replacement``, what takes the place of the messages at the places ``gone``; ``notes``, see
    RequestResult; and at any time after it ``ticket``, None where the answer is not wanted."""

    request: ReadRequest
    asker: Asker
    question: Question
    said_at: float
    said: Conversation
    parsed: ParsedRequest
    turn: CurrentTurn
    before: AnsweredTurn | None = None
    ticket: Ticket | None = None
    body: bytes | None = None
    replacement: Replacement | None = None
    gone: frozenset[int] = frozenset()
    notes: tuple[tuple[str, int | str], ...] = ()

    @property
    def body_bytes(self) -> int:
        """Of the body that is rewritten."""
        return self.request.body_bytes if self.body is None else len(self.body)

    def result(self, outcome: Outcome, shown: Shown) -> RequestResult:
        """Before the body is rewritten."""
        request_id = self.asker.request_id[:NAME_CHARS_MAX] or None
        switched, notes = self.asker.switched, self.notes
        return RequestResult(outcome, self.body, self.ticket, shown.injected, shown.tokens, switched, notes, request_id)

    def note(self, name: str, told: Struct) -> None:
        """It travels in the ticket, if there is one, under this name."""
        if self.ticket is not None:
            note = name, msgspec.json.encode(told).decode()
            self.ticket = msgspec.structs.replace(self.ticket, notes=(*self.ticket.notes, note))


def read_request(
    head: RequestHead, dialect: Dialect, body: bytes, deadline: Deadline, limits: ParseLimits
) -> ReadRequest:
    """Raises Malformed and TooMany."""
    parsed = parse(dialect, body, limits)
    return ReadRequest(head, dialect, parsed, without_blocks(parsed.conversation), len(body), deadline)


class RequestPart:
    """What a feature does with one request. Nothing here raises, for anything that a client or a database can do."""

    async def before_turn(self, pending: PendingRequest) -> None:
        """The request may be read and stored as its asker is allowed; its turn has no name yet."""

    async def after_turn(self, pending: PendingRequest) -> None:
        """The turn is in the journal, or on its way there. Memories are found after this."""

    def after_search(self, pending: PendingRequest, shown: Shown) -> None:
        """The prompt is given this."""

    def goes_on(self, result: RequestResult) -> None:
        """The request goes on so; without a body as it came, also where rewriting it took too long."""


def noted(ticket: Ticket, name: str, decoder: msgspec.json.Decoder[T]) -> T | None:
    """What travelled in the ticket under this name, as JSON; None where that is nothing, or what another build says."""
    told = next((told for known, told in ticket.notes if known == name), None)
    try:
        return None if told is None else decoder.decode(told)
    except msgspec.MsgspecError:
        return None


class Feature(RequestPart):
    """One that is on. What keeps nothing of a request is its own part in each."""

    def begin(self) -> RequestPart:
        """Its part in one request."""
        return self

    def calls_bytes_max(self, ticket: Ticket) -> int:
        """So much is to be read of the calls of tools in this answer."""
        return 0

    def on_answer(self, ticket: Ticket, ending: TurnEnding, answer: Answer | None, now: float, *, failed: bool) -> None:
        """The answer has ended. Neither waits nor raises; see ``turns.observation.Closing``."""


EXPLAIN_HEADER, ASKED = "x-semmem-explain", "ids"
NOTE = "memories"


class Explaining(Feature):
    """A client that asks is told which memories its prompt was given: by their ids, in a response header that Envoy
    makes of the metadata."""

    def after_search(self, pending: PendingRequest, shown: Shown) -> None:
        asked = pending.request.head.header(EXPLAIN_HEADER)
        if shown.has and asked is not None and asked.lower() == ASKED:
            pending.notes = (*pending.notes, (NOTE, ", ".join(shown.has)))
