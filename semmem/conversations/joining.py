"""A request that goes on from what its model does not keep, with its history before what it brings."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from semmem.conversations.chains import Chained, Chains, Talk
from semmem.dialects import Dialect, Malformed, ParsedRequest
from semmem.dialects.parsing import TooMany, parse
from semmem.memory import Conversation, Past, Scope
from semmem.ports.continuing import UNRESOLVED
from semmem.request.body_work import BodyWork
from semmem.request.limits import ExchangeLimits
from semmem.turns.sessions import AnsweredTurn


class WithHistory(Struct, frozen=True):
    """What goes on in a request's place. ``word``: what became of it then."""

    body: bytes
    parsed: ParsedRequest
    word: Chained = Chained.ADDED


class GoingOn(Struct, frozen=True):
    """How a request that names a conversation goes on: what it ``said`` as part of that, its ``claim`` (see Step), the
    turn that was answered ``before``; ``joined`` None where it goes on as it came."""

    said: Conversation
    claim: str = ""
    before: AnsweredTurn | None = None
    joined: WithHistory | None = None


class Joining(Struct, frozen=True):
    """One request, as far as its history goes. ``until``: the end of its phase, in the event loop's time."""

    dialect: Dialect
    parsed: ParsedRequest
    body_bytes: int
    until: float | None


class Joiner:
    """Adds histories to requests; counts what becomes of each. Never raises."""

    def __init__(self, histories: Chains, work: BodyWork, limits: ExchangeLimits) -> None:
        self._histories = histories
        self._work = work
        self._limits = limits

    def count(self, word: Chained) -> None:
        self._histories.count(word)

    async def after_answer(self, request: Joining, scope: Scope) -> WithHistory | None:
        """With the history that led to the answer that it goes on from; None where it goes on as it came, which is
        counted."""
        answer_id = request.parsed.conversation.previous_id
        if answer_id is None:
            return None
        history = await self._histories.history(scope, answer_id, until=request.until)
        joined = history if isinstance(history, Chained) else await self._joined(request, history)
        return self._counted(joined)

    async def in_conversation(
        self, request: Joining, said: Conversation, scope: Scope, now: float, *, may_store: bool
    ) -> GoingOn:
        """With the history of the conversation that it names, which is then claimed for it. Nothing begins with a
        request that is not to be stored."""
        name = said.conversation_id
        if name is None or said.previous_id is not None:
            return as_it_came(said)
        if scope.session not in (None, name):
            return self._passed(said, Chained.UNKNOWN)
        named = replace(scope, session=name)
        talk = await self._histories.talk(named, until=request.until)
        if isinstance(talk, Chained):
            return self._passed(said, talk)
        if talk.seen is None and not may_store:
            return self._passed(said, Chained.UNKNOWN)
        joined = await self._joined(request, talk.history)
        if isinstance(joined, Chained):
            return self._passed(said, joined)
        claim = secrets.token_hex(8)
        refused = await self._histories.claim(named, talk, claim, now=now, until=request.until)
        if refused is not None:
            late = refused is Chained.LATE or refused is Chained.FAILED
            return self._passed(said, refused, claim if late else UNRESOLVED)
        return _gone_on(said, talk, name, claim, joined)

    def _passed(self, said: Conversation, word: Chained, claim: str = UNRESOLVED) -> GoingOn:
        self.count(word)
        return GoingOn(said, claim)

    def _counted(self, joined: WithHistory | Chained) -> WithHistory | None:
        if isinstance(joined, WithHistory):
            return joined
        self.count(joined)
        return None

    async def _joined(self, request: Joining, history: Sequence[Past]) -> WithHistory | Chained:
        body_bytes = request.body_bytes + sum(len(said.text) for said in history)
        try:
            return await self._work.do(body_bytes, partial(_join, request, history, self._limits), until=request.until)
        except TimeoutError:
            return Chained.LATE


def as_it_came(said: Conversation) -> GoingOn:
    """Where no history is added to a request."""
    return GoingOn(said, UNRESOLVED if said.conversation_id is not None else "")


def _gone_on(said: Conversation, talk: Talk, name: str, claim: str, joined: WithHistory) -> GoingOn:
    """From here on it is a request that goes on from the conversation's last answer."""
    if not talk.last_answer:
        return GoingOn(said, claim, None, replace(joined, word=Chained.BEGUN))
    before = AnsweredTurn(talk.turn, name, talk.last_answer)
    return GoingOn(replace(said, previous_id=talk.last_answer), claim, before, joined)


def _join(request: Joining, history: Sequence[Past], limits: ExchangeLimits) -> WithHistory | Chained:
    """The request with its history, read anew."""
    try:
        body = request.parsed.with_history(history)
        if body is None:
            return Chained.UNFIT
        if len(body) > limits.request_body_bytes_max:
            return Chained.TOO_LONG
        return WithHistory(body, parse(request.dialect, body, limits.reading))
    except Malformed:
        return Chained.UNFIT
    except TooMany:
        return Chained.TOO_LONG
