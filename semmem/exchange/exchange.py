"""One HTTP exchange, from top to bottom. The order of the steps lives here, and nothing else.

    request:   read -> who asks, what is allowed -> begin to embed -> journal the turns -> search -> decide -> inject
    response:  read -> journal the answer

Every way out of the request phase is one Outcome word: the metric's label, the access log's field, the test's
assertion. Whatever semmem depends on may fail; the request then goes on as it came, less semmem's own members.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec

from semmem.dialects import BY_NAME, Malformed, Paths
from semmem.dialects.parsing import ParseLimits, TooMany
from semmem.exchange.features import Feature, PendingRequest, ReadRequest, RequestResult, read_request
from semmem.memory import Answer, TurnEnding
from semmem.ports import spans
from semmem.ports.clock import Clock
from semmem.ports.errors import StoreError, StoreTimeout
from semmem.request.asker import AskerRules, read_asker
from semmem.request.body_work import BodyWork
from semmem.request.head import RequestHead
from semmem.request.outcome import Outcome
from semmem.request.permission import Switched
from semmem.request.question import Deadline, ExtendDeadline, Question, no_extension
from semmem.retrieval.begun import Begun
from semmem.retrieval.block import Before
from semmem.retrieval.ledger.anchors import anchors_of
from semmem.retrieval.recall import Recall, Recalled
from semmem.retrieval.showing import SessionRequest, Showing, Shown
from semmem.turns.encodings import decoder_for
from semmem.turns.observation import Observation, Ticket
from semmem.turns.recorder import CurrentTurn, TurnRecorder
from semmem.turns.sessions import session_without_start


@dataclass(frozen=True, slots=True)
class ExchangeRules:
    """Bytes, and seconds for ``phase_s``: the whole request phase after the body arrived. ``reading``: what a request
    may hold; ``paths``: those of the APIs."""

    request_body_bytes_max: int = 16 * 1024 * 1024
    answer_bytes_max: int = 64 * 1024
    response_body_bytes_max: int = 4 * 1024 * 1024
    decoded_bytes_max: int = 64 * 1024 * 1024
    phase_s: float = 0.35
    reading: ParseLimits = field(default_factory=ParseLimits)
    paths: Paths = field(default_factory=Paths)


REWRITING_S = 0.05
"""A large body that has its memories late, because a model was asked, has at least so long to be rewritten."""


@dataclass(eq=False, repr=False, kw_only=True)
class Exchange:
    """The steps of every exchange; holds no state of any one of them. ``features``: those that are on, in the order in
    which they take part."""

    askers: AskerRules
    turns: TurnRecorder
    recall: Recall
    showing: Showing
    rules: ExchangeRules
    clock: Clock
    work: BodyWork
    features: Sequence[Feature]

    def refuses(self, head: RequestHead, *, body_follows: bool = True) -> RequestResult | None:
        """What can be said from the headers alone: None when the body is wanted."""
        if head.method != "POST" or self.rules.paths.dialect(head.path) is None:
            return RequestResult(Outcome.OTHER_PATH)
        if head.is_encoded:
            return RequestResult(Outcome.COMPRESSED)
        if head.announced_bytes > self.rules.request_body_bytes_max:
            return RequestResult(Outcome.OVERSIZE)
        return None if body_follows else RequestResult(Outcome.MALFORMED)

    async def request(
        self, head: RequestHead, body: bytes, *, extend_deadline: ExtendDeadline = no_extension
    ) -> RequestResult:
        """The request phase. Never raises for anything that a client, a store or a model can do. ``extend_deadline`` is
        awaited when a model makes the phase longer than usual, with how many seconds longer."""
        dialect = self.rules.paths.dialect(head.path)
        if dialect is None:
            return RequestResult(Outcome.OTHER_PATH)
        if len(body) > self.rules.request_body_bytes_max:
            return RequestResult(Outcome.OVERSIZE)
        deadline = Deadline(asyncio.get_running_loop().time() + self.rules.phase_s, extend_deadline)
        reading = partial(read_request, head, dialect, body, deadline, self.rules.reading)
        try:
            with spans.step("semmem.read"):
                request = await self.work.do(len(body), reading, until=deadline.at)
            return await self._answered(request)
        except Malformed:
            return RequestResult(Outcome.MALFORMED)
        except TooMany:
            return RequestResult(Outcome.OVERSIZE)
        except TimeoutError:
            return RequestResult(Outcome.TIMEOUT)

    async def _answered(self, request: ReadRequest) -> RequestResult:
        """Journalled and given memories, both as far as they are allowed."""
        conversation = request.parsed.conversation
        asker = read_asker(self.askers, request.head, conversation.controls)
        if asker.scope is not None:
            spans.current().about(asker.scope)
            spans.current().note(spans.REQUEST_ID, asker.request_id)
        now = self.clock.now()
        if asker.scope is None or asker.refusal is not None:
            await self.turns.decline(asker.scope, request.said, now)
            refused = RequestResult(asker.refusal or Outcome.ANONYMOUS, switched=asker.switched)
            return await self._rewritten(refused, request.parsed.rewrite, request.body_bytes, request.deadline)
        question = Question(conversation, asker.scope, now, asker.allowed, asker.verdicts, request.deadline)
        with self.recall.begin(question) as search:
            await search.under_way()
            said_at, turn = self.clock.after(asker.scope.user, now), CurrentTurn(asker.scope)
            pending = PendingRequest(request, asker, question, said_at, request.said, request.parsed, turn)
            parts = [feature.begin() for feature in self.features]
            for part in parts:
                await part.before_turn(pending)
            await self._journal(pending)
            for part in parts:
                await part.after_turn(pending)
            shown = await self._shown(pending, search)
            for part in parts:
                part.after_search(pending, shown)
        result = await self._injected(pending, shown)
        for part in parts:
            part.goes_on(result)
        return result

    async def _journal(self, pending: PendingRequest) -> None:
        """The turn that the request belongs to is named, and handed to the journal where it may be kept."""
        asker, said, said_at = pending.asker, pending.said, pending.said_at
        scope, before = pending.question.scope, pending.before
        pending.turn = turn = await self.turns.current(said, scope, said_at, asker.request_id, before=before)
        pending.question = msgspec.structs.replace(pending.question, scope=turn.scope)
        with spans.step("semmem.journal"):
            if asker.allowed.store:
                pending.ticket = await self.turns.record(turn, said, pending.request.dialect.name)
            else:
                await self.turns.decline(asker.scope, said, said_at)

    async def _shown(self, pending: PendingRequest, search: Begun) -> Shown:
        """What the prompt is given: what the session was shown, and what is found beside it. A history that is added
        from here has none of it."""
        if search.outcome in (Outcome.WRITE_ONLY, Outcome.ALREADY_INJECTED):
            return Shown(search.outcome)
        turn, question = pending.turn, pending.question
        naming = partial(anchors_of, pending.parsed.conversation, pending.gone)
        try:
            anchors = await self.work.do(pending.body_bytes, naming, until=question.deadline.at)
        except TimeoutError:
            return Shown(Outcome.TIMEOUT)
        asked = SessionRequest(
            question,
            pending.parsed,
            anchors,
            turn.id,
            None if turn.scope.session is None else session_without_start(turn.scope.session),
            turn.after_turn,
            turn.opened is not None or pending.body is not None,
            search.outcome is None,
        )
        return await self.showing.show(asked, partial(self._found, question, search))

    async def _found(self, question: Question, search: Begun, before: Before) -> Recalled:
        """What the search finds. Whatever fails costs the memories and not the request."""
        if search.outcome is not None:
            return Recalled(search.outcome)
        try:
            async with question.deadline.limit():
                return await self.recall.finish(question, search, before)
        except StoreTimeout:
            return Recalled(Outcome.STORE_TIMEOUT)
        except StoreError:
            return Recalled(Outcome.STORE_DOWN)
        except TimeoutError:
            return Recalled(Outcome.TIMEOUT)

    async def _injected(self, pending: PendingRequest, shown: Shown) -> RequestResult:
        """The request with the memories in it."""
        switched, outcome = pending.asker.switched, shown.outcome
        if outcome is Outcome.WRITE_ONLY and switched is Switched.READING:
            outcome = Outcome.READING_OFF
        result = pending.result(outcome, shown)
        injections = (block.injection for block in shown.blocks)
        rewrite = partial(pending.parsed.rewrite, *injections, replacement=pending.replacement)
        return await self._rewritten(result, rewrite, pending.body_bytes, pending.request.deadline)

    async def _rewritten(
        self, result: RequestResult, rewrite: Callable[[], bytes | None], body_bytes: int, deadline: Deadline
    ) -> RequestResult:
        """Without semmem's own members. Where that takes too long the request goes on as it came."""
        try:
            with spans.step("semmem.rewrite"):
                body = await self.work.do(body_bytes, rewrite, until=deadline.at_least(REWRITING_S))
        except TimeoutError:
            return msgspec.structs.replace(result, outcome=Outcome.TIMEOUT, body=None, injected=0, tokens=0, notes=())
        return result if body is None else msgspec.structs.replace(result, body=body)

    def response(self, ticket: Ticket, *, status: int, content_type: str, content_encoding: str) -> Observation:
        """Begin to observe an answer."""
        dialect = BY_NAME.get(ticket.dialect)
        decoder = decoder_for(content_encoding, decoded_bytes_max=self.rules.decoded_bytes_max)
        reader = None
        if 200 <= status < 300 and dialect is not None and decoder is not None:
            reader = dialect.reader(
                content_type=content_type,
                answer_bytes_max=self.rules.answer_bytes_max,
                body_bytes_max=self.rules.response_body_bytes_max,
                calls_bytes_max=max((feature.calls_bytes_max(ticket) for feature in self.features), default=0),
            )
        return Observation(ticket, status, decoder, reader, self._close_turn)

    def _close_turn(self, ticket: Ticket, ending: TurnEnding, answer: Answer | None, *, failed: bool) -> None:
        now = self.clock.now()
        self.turns.close(ticket, ending, answer, now)
        for feature in self.features:
            feature.on_answer(ticket, ending, answer, now, failed=failed)
