"""Conversations as a part of each exchange: what is said is recorded, and a request that goes on from an answer, or
with a conversation of the API, is given the history of it where the model keeps none."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import msgspec
from msgspec.structs import replace

from semmem.conversations.chains import Chained, Chains
from semmem.conversations.tap import Tap
from semmem.dialects import Malformed, ParsedRequest
from semmem.dialects.parsing import TooMany, parse
from semmem.exchange.exchange import ExchangeRules
from semmem.exchange.features import Feature, PendingRequest, ReadRequest, RequestPart, RequestResult, noted
from semmem.memory import Answer, Past, TurnEnding
from semmem.ports.continuing import UNRESOLVED
from semmem.ports.conversations import SHOWN_MAX, Step
from semmem.request.body_work import BodyWork
from semmem.retrieval.showing import Shown
from semmem.turns.observation import Ticket
from semmem.turns.sessions import AnsweredTurn

NOTE = "step"
_NOTED = msgspec.json.Decoder(Step)


@dataclass(eq=False, repr=False)
class ConversationsFeature(Feature):
    """``histories``: None where none are added to requests."""

    tap: Tap
    histories: Chains | None
    work: BodyWork
    rules: ExchangeRules

    def begin(self) -> RequestPart:
        return _RequestPart(self)

    def calls_bytes_max(self, ticket: Ticket) -> int:
        return 0 if noted(ticket, NOTE, _NOTED) is None else self.tap.chars_max

    def on_answer(self, ticket: Ticket, ending: TurnEnding, answer: Answer | None, now: float, *, failed: bool) -> None:
        step = noted(ticket, NOTE, _NOTED)
        if step is not None:
            self.tap.answered(ticket.turn_id, step, ending, answer, now, failed=failed)


_WithHistory = tuple[bytes, ParsedRequest]
"""What goes on in a request's place: the body, and the same read."""


class _RequestPart(RequestPart):
    """``_claim``: see Step; ``_word``: what becomes of the request if it goes on with its history."""

    def __init__(self, feature: ConversationsFeature) -> None:
        self._feature = feature
        self._claim = ""
        self._word: Chained | None = None
        self._step: Step | None = None

    async def before_turn(self, pending: PendingRequest) -> None:
        name, chains = pending.said.conversation_id, self._feature.histories
        if name is None:
            return
        self._claim = UNRESOLVED
        if chains is None or not pending.asker.allowed.read or pending.said.previous_id is not None:
            return
        if (refused := await self._in_conversation(pending, chains, name)) is not None:
            chains.count(refused)

    async def after_turn(self, pending: PendingRequest) -> None:
        if (ticket := pending.ticket) is not None:
            whole = pending.request.parsed.whole and self._claim != UNRESOLVED
            self._step = self._feature.tap.said(
                ticket.turn_id, ticket.earlier, pending.said, pending.said_at, whole=whole, claim=self._claim
            )
        if self._word is None and (chains := self._feature.histories) is not None and pending.asker.allowed.read:
            await self._after_answer(pending, chains)

    def after_search(self, pending: PendingRequest, shown: Shown) -> None:
        if self._step is not None:  # a conversation has several lines in a block
            pending.note(NOTE, replace(self._step, shown=tuple(dict.fromkeys(shown.has))[:SHOWN_MAX]))

    def goes_on(self, result: RequestResult) -> None:
        if self._word is not None and self._feature.histories is not None:
            self._feature.histories.count(Chained.LATE if result.body is None else self._word)

    async def _after_answer(self, pending: PendingRequest, chains: Chains) -> None:
        """With the history that led to the answer that it goes on from; else as it came, which is counted."""
        answer_id = pending.request.parsed.conversation.previous_id
        if answer_id is None:
            return
        until = pending.request.deadline.at
        history = await chains.history(pending.turn.scope, answer_id, until=until)
        joined = history if isinstance(history, Chained) else await self._joined(pending, history)
        if isinstance(joined, Chained):
            chains.count(joined)
        else:
            (pending.body, pending.parsed), self._word = joined, Chained.ADDED

    async def _in_conversation(self, pending: PendingRequest, chains: Chains, name: str) -> Chained | None:
        """With the history of the conversation that it names, which is then claimed for it; or why not. Nothing begins
        with a request that is not to be stored."""
        scope, until = pending.question.scope, pending.request.deadline.at
        if scope.session not in (None, name):
            return Chained.UNKNOWN
        named = replace(scope, session=name)
        talk = await chains.talk(named, until=until)
        if isinstance(talk, Chained):
            return talk
        if talk.seen is None and not pending.asker.allowed.store:
            return Chained.UNKNOWN
        joined = await self._joined(pending, talk.history)
        if isinstance(joined, Chained):
            return joined
        claim = secrets.token_hex(8)
        refused = await chains.claim(named, talk, claim, now=pending.said_at, until=until)
        if refused is not None:
            self._claim = claim if refused in (Chained.LATE, Chained.FAILED) else UNRESOLVED
            return refused
        self._claim = claim
        if talk.last_answer:  # from here on it is a request that goes on from that
            pending.said = replace(pending.said, previous_id=talk.last_answer)
            pending.before = AnsweredTurn(talk.turn, name, talk.last_answer)
        (pending.body, pending.parsed), self._word = joined, Chained.ADDED if talk.last_answer else Chained.BEGUN
        return None

    async def _joined(self, pending: PendingRequest, history: Sequence[Past]) -> _WithHistory | Chained:
        request, rules = pending.request, self._feature.rules
        body_bytes = request.body_bytes + sum(len(said.text) for said in history)
        try:
            return await self._feature.work.do(
                body_bytes, partial(_join, request, history, rules), until=request.deadline.at
            )
        except TimeoutError:
            return Chained.LATE


def _join(request: ReadRequest, history: Sequence[Past], rules: ExchangeRules) -> _WithHistory | Chained:
    """The request with its history, read anew."""
    try:
        body = request.parsed.with_history(history)
        if body is None:
            return Chained.UNFIT
        if len(body) > rules.request_body_bytes_max:
            return Chained.TOO_LONG
        return body, parse(request.dialect, body, rules.reading)
    except Malformed:
        return Chained.UNFIT
    except TooMany:
        return Chained.TOO_LONG
