"""One HTTP exchange, from top to bottom. The order of the steps lives here, and nothing else.

    request:   read -> who asks, what is allowed -> begin to embed -> journal the turns -> search -> decide -> inject
    response:  read -> journal the answer

Every way out of the request phase is one Outcome word: the metric's label, the access log's field, the test's
assertion. Whatever semmem depends on may fail; the request then goes on as it came, less semmem's own members.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import msgspec
from msgspec import Struct

from semmem.compression.compressor import Asked, Compressed, Compressor
from semmem.conversations.chains import Chained, Chains, GoingOn, Joiner, Joining, WithHistory, as_it_came
from semmem.conversations.tap import Tap
from semmem.dialects import BY_NAME, Dialect, Malformed, ParsedRequest, dialect_for
from semmem.dialects.parsing import ParseLimits, TooMany, parse
from semmem.memory import Answer, Conversation, Scope, TurnEnding
from semmem.ports import spans
from semmem.ports.continuing import UNRESOLVED
from semmem.ports.conversations import SHOWN_MAX, Step
from semmem.ports.errors import StoreError, StoreTimeout
from semmem.request.asker import Asker, AskerRules, read_asker
from semmem.request.body_work import BodyWork
from semmem.request.deadline import Deadline, ExtendDeadline, no_extension
from semmem.request.head import RequestHead
from semmem.request.limits import ExchangeLimits
from semmem.request.outcome import Outcome
from semmem.request.permission import Switched
from semmem.request.question import Question
from semmem.request.record import NAME_CHARS_MAX, RequestRecord
from semmem.retrieval.begun import Begun
from semmem.retrieval.block import Before, Block, memories_in
from semmem.retrieval.context import without_blocks
from semmem.retrieval.ledger.anchors import anchors_of
from semmem.retrieval.recall import Recall, Recalled
from semmem.retrieval.showing import SessionRequest, Showing, Shown
from semmem.turns.encodings import decoder_for
from semmem.turns.ids import session_without_start
from semmem.turns.observation import Observation, Ticket
from semmem.turns.recorder import CurrentTurn, TurnRecorder
from semmem.usage.meter import Meter

REWRITING_S = 0.05
"""A large body that has its memories late, because a model was asked, has at least so long to be rewritten."""


class RequestResult(Struct, frozen=True):
    """``body`` None: the request goes on byte for byte as it came. ``ticket`` None: the answer is not wanted.
    ``switched``: what an administrator's switch kept from it. ``compressed``: how it was made shorter. ``record``: None
    where nobody is known to be asking, or nothing may be kept of it."""

    outcome: Outcome
    body: bytes | None = None
    ticket: Ticket | None = None
    injected: int = 0
    tokens: int = 0
    switched: Switched = Switched.NOTHING
    compressed: Compressed | None = None
    record: RequestRecord | None = None


class _Request(Struct, frozen=True):
    """A request as it was read: ``said`` is its conversation without what semmem added to it somewhere before."""

    head: RequestHead
    dialect: Dialect
    parsed: ParsedRequest
    said: Conversation
    body_bytes: int
    deadline: Deadline


class _Decision(Struct, frozen=True):
    """How a request goes on: its outcome, the ticket for its answer, what is put into it, what was switched off, what
    takes the place of older messages. ``chained``: what goes on in its place."""

    outcome: Outcome
    ticket: Ticket | None = None
    blocks: tuple[Block, ...] = ()
    switched: Switched = Switched.NOTHING
    compressed: Compressed | None = None
    chained: WithHistory | None = None
    record: RequestRecord | None = None


class Exchange:
    """The steps of every exchange; holds no state of any one of them.

    ``note_uses`` is told whose memories were put into a prompt, which, and when; it must neither wait nor raise.
    ``after`` gives a time after the user's last erasure, where the clock was set back. ``meter``: None where no
    statistics of use are kept; ``conversations``: None where no conversations are; ``compressor``: None where long
    requests stay as they are; ``histories``: None where none are added to requests.
    """

    def __init__(
        self,
        *,
        askers: AskerRules,
        turns: TurnRecorder,
        recall: Recall,
        showing: Showing,
        limits: ExchangeLimits,
        clock: Callable[[], float],
        work: BodyWork | None = None,
        note_uses: Callable[[str, Sequence[str], float], None] = lambda _user, _memory_ids, _now: None,
        after: Callable[[str, float], float] = lambda _user, now: now,
        meter: Meter | None = None,
        conversations: Tap | None = None,
        compressor: Compressor | None = None,
        histories: Chains | None = None,
    ) -> None:
        self._askers = askers
        self._turns = turns
        self._recall = recall
        self._limits = limits
        self._clock = clock
        self._showing = showing
        self._work = work or BodyWork()
        self._note_uses = note_uses
        self._after = after
        self._meter = meter
        self._conversations = conversations
        self._compressor = compressor
        self._histories = histories

    # --- request -----------------------------------------------------------------------------------------------------

    def refuses(self, head: RequestHead, *, body_follows: bool = True) -> RequestResult | None:
        """What can be said from the headers alone: None when the body is wanted."""
        if head.method != "POST" or dialect_for(head.path) is None:
            return RequestResult(Outcome.OTHER_PATH)
        if head.is_encoded:
            return RequestResult(Outcome.COMPRESSED)
        if head.announced_bytes > self._limits.request_body_bytes_max:
            return RequestResult(Outcome.OVERSIZE)
        return None if body_follows else RequestResult(Outcome.MALFORMED)

    async def request(
        self, head: RequestHead, body: bytes, *, extend_deadline: ExtendDeadline = no_extension
    ) -> RequestResult:
        """The request phase. Never raises for anything that a client, a store or a model can do.

        ``extend_deadline`` is awaited when a model makes the phase longer than usual, with how many seconds longer.
        """
        dialect = dialect_for(head.path)
        if dialect is None:
            return RequestResult(Outcome.OTHER_PATH)
        if len(body) > self._limits.request_body_bytes_max:
            return RequestResult(Outcome.OVERSIZE)
        deadline = Deadline(asyncio.get_running_loop().time() + self._limits.phase_s, extend_deadline)
        reading = partial(_read, head, dialect, body, deadline, self._limits.reading)
        try:
            with spans.step("semmem.read"):
                request = await self._work.do(len(body), reading, until=deadline.at)
            return await self._rewrite(request, await self._journal_and_recall(request))
        except Malformed:
            return RequestResult(Outcome.MALFORMED)
        except TooMany:
            return RequestResult(Outcome.OVERSIZE)
        except TimeoutError:
            return RequestResult(Outcome.TIMEOUT)

    async def _journal_and_recall(self, request: _Request) -> _Decision:
        """Both as far as they are allowed."""
        asker = read_asker(self._askers, request.head, request.parsed.conversation.controls)
        if asker.scope is not None:
            spans.current().about(asker.scope)
        now = self._clock()
        refusal = asker.refusal
        if asker.scope is None or refusal is not None:
            await self._turns.decline(asker.scope, request.said, now)
            return _Decision(refusal or Outcome.ANONYMOUS, switched=asker.switched)
        question = Question(
            request.parsed.conversation, asker.scope, now, asker.allowed, asker.verdicts, request.deadline
        )
        with self._recall.begin(question) as search:
            await search.under_way()
            said_at = self._after(asker.scope.user, now)
            going_on = await self._in_conversation(request, asker, asker.scope, said_at)
            request = msgspec.structs.replace(request, said=going_on.said)
            turn = await self._turns.current(
                request.said, asker.scope, said_at, asker.request_id, before=going_on.before
            )
            ticket = await self._journalled(request, turn, asker, said_at, going_on)
            chained = going_on.joined or await self._after_answer(request, turn.scope, asker)
            asked = replace(question, scope=turn.scope)
            compressed = await self._compressed(request, turn, asked) if chained is None else None
            if compressed is not None:
                asked = replace(asked, conversation=compressed.conversation)
            shown = await self._shown(asked, turn, request, search, compressed, chained)
            if ticket is not None and ticket.step is not None and shown.has:
                ticket = msgspec.structs.replace(ticket, step=_showing(ticket.step, shown.has))
            if ticket is not None and self._meter is not None:
                said = request.said if compressed is None else compressed.conversation
                ticket = _metered(self._meter, ticket, said, turn, shown.blocks, said_at)
        outcome = shown.outcome
        if outcome is Outcome.WRITE_ONLY and asker.switched is Switched.READING:
            outcome = Outcome.READING_OFF
        record = _record(request, asker.request_id, turn.scope, turn.id, shown)
        return _Decision(outcome, ticket, shown.blocks, asker.switched, compressed, chained, record)

    async def _journalled(
        self, request: _Request, turn: CurrentTurn, asker: Asker, said_at: float, going_on: GoingOn
    ) -> Ticket | None:
        """The turn is handed to the journal, and to the record of conversations; the ticket for its answer. None where
        it may not be kept."""
        with spans.step("semmem.journal"):
            if not asker.allowed.store:
                await self._turns.decline(asker.scope, request.said, said_at)
                return None
            ticket = await self._turns.record(turn, request.said, request.dialect.name)
        if ticket is None or self._conversations is None:
            return ticket
        whole = request.parsed.whole and going_on.claim != UNRESOLVED
        step = self._conversations.said(
            ticket.turn_id, ticket.earlier, request.said, said_at, whole=whole, claim=going_on.claim
        )
        return msgspec.structs.replace(ticket, step=step)

    async def _compressed(self, request: _Request, turn: CurrentTurn, question: Question) -> Compressed | None:
        """What takes the place of a long request's older messages. Memories are then found for what is left of it."""
        if (compressor := self._compressor) is None:
            return None
        asked = Asked(request.head, request.parsed, request.said, request.body_bytes, request.deadline, question.now)
        with spans.step("semmem.compress"):
            return await compressor.compress(asked, turn, question.allowed, self._work)

    async def _in_conversation(self, request: _Request, asker: Asker, scope: Scope, now: float) -> GoingOn:
        """With the history of the conversation that it names, before its turn gets a name: that goes on from there."""
        if (joiner := self._joiner()) is None or not asker.allowed.read:
            return as_it_came(request.said)
        may_store = asker.allowed.store
        return await joiner.in_conversation(_joining(request), request.said, scope, now, may_store=may_store)

    async def _after_answer(self, request: _Request, scope: Scope, asker: Asker) -> WithHistory | None:
        """With the history of the answer that it names."""
        if (joiner := self._joiner()) is None or not asker.allowed.read:
            return None
        return await joiner.after_answer(_joining(request), scope)

    def _joiner(self) -> Joiner | None:
        return None if self._histories is None else Joiner(self._histories, self._work, self._limits)

    async def _shown(
        self,
        question: Question,
        turn: CurrentTurn,
        request: _Request,
        search: Begun,
        compressed: Compressed | None,
        chained: WithHistory | None,
    ) -> Shown:
        """What the prompt is given: what the session was shown, and what is found beside it. A history that is added
        from here has none of it."""
        if search.outcome in (Outcome.WRITE_ONLY, Outcome.ALREADY_INJECTED):
            return Shown(search.outcome)
        parsed = request.parsed if chained is None else chained.parsed
        body_bytes = request.body_bytes if chained is None else len(chained.body)
        naming = partial(anchors_of, parsed.conversation, () if compressed is None else compressed.gone)
        try:
            anchors = await self._work.do(body_bytes, naming, until=request.deadline.at)
        except TimeoutError:
            return Shown(Outcome.TIMEOUT)
        asked = SessionRequest(
            question,
            parsed,
            anchors,
            turn.id,
            None if turn.scope.session is None else session_without_start(turn.scope.session),
            turn.after_turn,
            turn.opened is not None or chained is not None,
            search.outcome is None,
        )
        return await self._showing.show(asked, partial(self._found, question, search))

    async def _found(self, question: Question, search: Begun, before: Before) -> Recalled:
        """What the search finds. Whatever fails costs the memories and not the request."""
        if search.outcome is not None:
            return Recalled(search.outcome)
        try:
            async with question.deadline.limit():
                recalled = await self._recall.finish(question, search, before)
        except StoreTimeout:
            return Recalled(Outcome.STORE_TIMEOUT)
        except StoreError:
            return Recalled(Outcome.STORE_DOWN)
        except TimeoutError:
            return Recalled(Outcome.TIMEOUT)
        if recalled.hits:
            self._note_uses(question.scope.user, memories_in(recalled.hits), question.now)
        return recalled

    async def _rewrite(self, request: _Request, decision: _Decision) -> RequestResult:
        """The request without semmem's own members and with the memories in it."""
        blocks, ticket, switched = decision.blocks, decision.ticket, decision.switched
        compressed, chained = decision.compressed, decision.chained
        parsed = request.parsed if chained is None else chained.parsed
        body_bytes = request.body_bytes if chained is None else len(chained.body)
        rewriting = partial(
            parsed.rewrite,
            *(block.injection for block in blocks),
            replacement=None if compressed is None else compressed.replacement,
        )
        try:
            with spans.step("semmem.rewrite"):
                body = await self._work.do(body_bytes, rewriting, until=request.deadline.at_least(REWRITING_S))
        except TimeoutError:
            if chained is not None and self._histories is not None:
                self._histories.count(Chained.LATE)
            return RequestResult(Outcome.TIMEOUT, None, ticket, switched=switched, record=decision.record)
        if chained is not None and self._histories is not None:
            self._histories.count(chained.word)
            body = chained.body if body is None else body
        injected = len({each for block in blocks for each in block.ids})
        tokens = sum(block.tokens for block in blocks)
        return RequestResult(decision.outcome, body, ticket, injected, tokens, switched, compressed, decision.record)

    # --- response ----------------------------------------------------------------------------------------------------

    def response(self, ticket: Ticket, *, status: int, content_type: str, content_encoding: str) -> Observation:
        """Begin to observe an answer."""
        dialect = BY_NAME.get(ticket.dialect)
        decoder = decoder_for(content_encoding, decoded_bytes_max=self._limits.decoded_bytes_max)
        reader = None
        if 200 <= status < 300 and dialect is not None and decoder is not None:
            reader = dialect.reader(
                content_type=content_type,
                answer_bytes_max=self._limits.answer_bytes_max,
                body_bytes_max=self._limits.response_body_bytes_max,
                calls_bytes_max=self._calls_bytes_max(ticket),
            )
        return Observation(ticket, status, decoder, reader, self._close_turn)

    def _calls_bytes_max(self, ticket: Ticket) -> int:
        return 0 if ticket.step is None or self._conversations is None else self._conversations.chars_max

    def _close_turn(self, ticket: Ticket, ending: TurnEnding, answer: Answer | None, *, failed: bool) -> None:
        now = self._clock()
        self._turns.close(ticket, ending, answer, now)
        if self._meter is not None and ticket.asked is not None:
            self._meter.answered(ticket.asked, ticket.dialect, ending, answer, now)
        if self._conversations is not None and ticket.step is not None:
            self._conversations.answered(ticket.turn_id, ticket.step, ending, answer, now, failed=failed)


def _showing(step: Step, shown: Sequence[str]) -> Step:
    """A conversation has several lines in a block."""
    return msgspec.structs.replace(step, shown=tuple(dict.fromkeys(shown))[:SHOWN_MAX])


def _record(request: _Request, request_id: str, scope: Scope, turn: str | None, shown: Shown) -> RequestRecord:
    return RequestRecord(
        request_id[:NAME_CHARS_MAX],
        scope.user,
        scope.project,
        scope.session,
        turn or "",
        request.dialect.name,
        request.parsed.conversation.model[:NAME_CHARS_MAX],
        shown.has,
        tuple((hit.memory.id, hit.logit) for hit in shown.hits),
    )


def _metered(
    meter: Meter, ticket: Ticket, said: Conversation, turn: CurrentTurn, blocks: Sequence[Block], at: float
) -> Ticket:
    speaks = turn.opened is not None and not turn.opened.resumed
    tokens = sum(block.tokens for block in blocks)
    asked = meter.asked(turn.scope, said, at, speaks=speaks, injected_tokens=tokens)
    return msgspec.structs.replace(ticket, asked=asked)


def _read(head: RequestHead, dialect: Dialect, body: bytes, deadline: Deadline, limits: ParseLimits) -> _Request:
    """Raises Malformed and TooMany."""
    parsed = parse(dialect, body, limits)
    return _Request(head, dialect, parsed, without_blocks(parsed.conversation), len(body), deadline)


def _joining(request: _Request) -> Joining:
    return Joining(request.dialect, request.parsed, request.body_bytes, request.deadline.at)
