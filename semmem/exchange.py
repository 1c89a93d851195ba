"""One HTTP exchange, from top to bottom. The order of the steps lives here, and nothing else.

    request:   parse -> permit -> heed earlier filters -> identify -> journal the turns -> decide -> search -> inject
    response:  read -> journal the answer

Every way out of the request phase is one Outcome word: the metric's label, the access log's field, the test's
assertion. Whatever semmem depends on may fail; the request then goes on as it came, less semmem's own members.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, TypeVar

from semmem.dialects import BY_NAME, Dialect, Malformed, ParsedRequest, dialect_for
from semmem.dialects.reading import ReadingLimits, TooMany, read
from semmem.memory import Answer, Conversation, Scope, Turn, TurnEnding
from semmem.ports.errors import EmbedderError, StoreError, StoreTimeout
from semmem.ports.names import usable
from semmem.request.head import RequestHead
from semmem.request.identity import IdentityRules, identify
from semmem.request.limits import ExchangeLimits
from semmem.request.outcome import Outcome
from semmem.request.permission import Permission, PermissionRules, permission
from semmem.request.verdicts import NO_SOURCES, VerdictRules, Verdicts, verdicts
from semmem.retrieval.context import strip_block
from semmem.retrieval.injection_cache import Block, InjectionCache, block_of, goes_on, loop_of
from semmem.retrieval.recall import COLD_DENSE, ExtendDeadline, Recall, Recalled, no_extension
from semmem.turns.encodings import decoder_for
from semmem.turns.observation import Observation, Ticket
from semmem.turns.recorder import TurnJournal, Turns
from semmem.turns.recovery import Recovery
from semmem.turns.sessions import Answered, Sessions

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RequestResult:
    """``body`` None: the request goes on byte for byte as it came. ``ticket`` None: the answer is not wanted."""

    outcome: Outcome
    body: bytes | None = None
    ticket: Ticket | None = None
    injected: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class _Phase:
    """When the request phase ends, in the loop's time, and whom to tell that it ends later."""

    deadline: float
    extend_deadline: ExtendDeadline


REWRITING_S = 0.05
"""A large body that has its memories late, because a model was asked, has at least so long to be rewritten."""


class Offload(Protocol):
    """Does work that would hold up the event loop beside it."""

    async def __call__(self, work: Callable[[], T], /) -> T: ...


LARGE_BODY_BYTES = 1024 * 1024
"""Bodies above this wait for each other only: a chat of a hundred kilobytes does not wait behind them."""


def by_length(body_bytes: int, usual: Offload, long: Offload | None) -> Offload:
    """Who does the work on a body of this length."""
    return usual if long is None or body_bytes <= LARGE_BODY_BYTES else long


class Exchange:
    """The steps of every exchange; holds no state of any one of them.

    ``aside`` reads and rewrites large bodies, ``offload_large`` those above LARGE_BODY_BYTES.
    ``on_recalled`` is told whose memories were put into a prompt, which, and when; it must neither wait nor raise.
    ``after`` gives a time after the user's last erasure, where the clock was set back.
    """

    def __init__(
        self,
        *,
        identity: IdentityRules,
        permissions: PermissionRules,
        sessions: Sessions,
        recall: Recall,
        journal: TurnJournal,
        limits: ExchangeLimits,
        clock: Callable[[], float],
        capture: str = "observe",
        upstream: VerdictRules = NO_SOURCES,
        blocks: InjectionCache | None = None,
        recovery: Recovery | None = None,
        offload: Offload = asyncio.to_thread,
        offload_large: Offload | None = None,
        on_recalled: Callable[[str, Sequence[str], float], None] = lambda _user, _memory_ids, _now: None,
        after: Callable[[str, float], float] = lambda _user, now: now,
    ) -> None:
        self._identity = identity
        self._permissions = permissions
        self._sessions = sessions
        self._recall = recall
        self._journal = journal
        self._limits = limits
        self._clock = clock
        self._turns = Turns(
            sessions,
            journal,
            recovery or Recovery(),
            capture=capture,
            turn_chars_max=limits.turn_chars_max,
            answer_bytes_max=limits.answer_bytes_max,
        )
        self._upstream = upstream
        self._blocks = InjectionCache(entries_max=0, ttl_s=0.0) if blocks is None else blocks
        self._offload, self._offload_large = offload, offload_large
        self._on_recalled = on_recalled
        self._said_after = after

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
        phase = _Phase(asyncio.get_running_loop().time() + self._limits.phase_s, extend_deadline)
        try:
            return await self._understood(head, dialect, body, phase)
        except Malformed:
            return RequestResult(Outcome.MALFORMED)
        except TooMany:
            return RequestResult(Outcome.OVERSIZE)
        except TimeoutError:
            return RequestResult(Outcome.TIMEOUT)

    async def _understood(self, head: RequestHead, dialect: Dialect, body: bytes, phase: _Phase) -> RequestResult:
        """Raises Malformed, TooMany and TimeoutError."""
        reading = partial(_read, dialect, body, self._limits.reading)
        parsed, said = await self._timely(len(body), reading, phase.deadline)

        async def passed(outcome: Outcome, ticket: Ticket | None = None, block: Block | None = None) -> RequestResult:
            rewriting = partial(parsed.rewrite, None if block is None else block.injection)
            until = max(phase.deadline, asyncio.get_running_loop().time() + REWRITING_S)
            try:
                rewritten = await self._timely(len(body), rewriting, until)
            except TimeoutError:
                return RequestResult(Outcome.TIMEOUT, None, ticket)
            if block is None:
                return RequestResult(outcome, rewritten, ticket)
            return RequestResult(outcome, rewritten, ticket, len(block.memories), block.tokens)

        allowed = permission(self._permissions, head, parsed.conversation.controls)
        if not (allowed.read or allowed.store):
            await self._declined(head, said)
            return await passed(Outcome.OPTED_OUT)
        found = verdicts(self._upstream, head)
        if found.blocked or found.pii:
            await self._declined(head, said)
            return await passed(Outcome.BLOCKED if found.blocked else Outcome.PII)
        scope = identify(self._identity, head, parsed.conversation.controls)
        if scope is None:
            await self._declined(head, said)
            return await passed(Outcome.ANONYMOUS)

        turn = await self._turn(head, said, scope)
        ticket = await self._journalled(turn, said, scope, dialect.name) if allowed.store else None
        if not allowed.store:
            await self._declined(head, said)
        outcome, block = await self._remember(parsed, scope, turn, allowed, found, phase)
        return await passed(outcome, ticket, block)

    async def _timely(self, body_bytes: int, work: Callable[[], T], deadline: float) -> T:
        """Beside the event loop where the body is large. Raises TimeoutError: what was begun then ends unheard."""
        if body_bytes <= self._limits.inline_body_bytes_max:
            return work()
        async with asyncio.timeout_at(deadline):
            return await by_length(body_bytes, self._offload, self._offload_large)(work)

    async def _turn(self, head: RequestHead, said: Conversation, scope: Scope) -> Turn | Answered | None:
        """The turn that the request's own words begin or belong to; without any, the one it goes on from."""
        now = self._said_after(scope.user, self._clock())
        return await self._turns.current(said, scope, now, usable(head.header("x-request-id")) or "")

    async def _journalled(
        self, turn: Turn | Answered | None, said: Conversation, scope: Scope, dialect: str
    ) -> Ticket | None:
        return None if turn is None else await self._turns.record(turn, said, scope, dialect)

    async def _declined(self, head: RequestHead, said: Conversation) -> None:
        """What is not to be stored now is not learnt from the history of a later request either."""
        scope = identify(self._identity, head, said.controls)
        await self._turns.decline(scope, said, self._clock())

    async def _remember(
        self,
        parsed: ParsedRequest,
        scope: Scope,
        turn: Turn | Answered | None,
        allowed: Permission,
        upstream: Verdicts,
        phase: _Phase,
    ) -> tuple[Outcome, Block | None]:
        conversation = parsed.conversation
        if not allowed.read:
            return Outcome.WRITE_ONLY, None
        if self._recall.has_shown(conversation, scope.user):
            return Outcome.ALREADY_INJECTED, None
        if turn is None:
            outcome, recalled = await self._search(conversation, scope, upstream, phase)
            return outcome, block_of(recalled, parsed.placed)
        session = turn.scope.session if isinstance(turn, Turn) else turn.session
        resent = isinstance(turn, Turn)  # the turn's own words are in this request too
        loop = loop_of(scope, turn.id if isinstance(turn, Turn) else turn.turn_id, conversation)
        if goes_on(conversation) and (block := self._blocks.get(loop, now=self._clock())) is not None:
            has_it = not resent and parsed.keeps(block.injection)
            return (Outcome.ALREADY_INJECTED, None) if has_it else (Outcome.REPEATED, block)
        mark = self._blocks.mark()
        outcome, recalled = await self._search(conversation, replace(scope, session=session), upstream, phase)
        self._blocks.put(loop, block := block_of(recalled, parsed.placed), mark=mark, now=self._clock())
        return outcome, block

    async def _search(
        self, conversation: Conversation, scope: Scope, upstream: Verdicts, phase: _Phase
    ) -> tuple[Outcome, Recalled | None]:
        reason = self._recall.skips(conversation, fact=upstream.fact, tool=upstream.tool)
        if reason is not None:
            return Outcome(reason), None
        now = self._clock()
        try:
            async with asyncio.timeout_at(phase.deadline) as timeout:

                async def extend(extra_s: float) -> None:
                    timeout.reschedule(phase.deadline + extra_s)
                    await phase.extend_deadline(extra_s)

                try:
                    recalled = await self._recall.search(
                        conversation, scope, now, fact=upstream.fact, extend_deadline=extend
                    )
                    if isinstance(recalled, str):
                        return Outcome(recalled), None
                    found = Outcome.INJECTED
                except EmbedderError:
                    recalled = await self._recall.without_vector(conversation, scope, now)
                    found = Outcome.DEGRADED
        except StoreTimeout:
            return Outcome.STORE_TIMEOUT, None
        except StoreError:
            return Outcome.STORE_DOWN, None
        except TimeoutError:
            return Outcome.TIMEOUT, None
        if recalled is None:
            return (Outcome.NO_HITS if found is Outcome.INJECTED else Outcome.EMBEDDER_DOWN), None
        self._on_recalled(scope.user, [hit.memory.id for hit in recalled.hits], now)
        cold = found is Outcome.INJECTED and recalled.path == COLD_DENSE
        return (Outcome.COLD_DENSE if cold else found), recalled

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
            )
        return Observation(ticket, status, decoder, reader, self._close_turn)

    def _close_turn(self, ticket: Ticket, ending: TurnEnding, answer: Answer | None) -> None:
        self._turns.close(ticket, ending, answer, self._clock())


def _read(dialect: Dialect, body: bytes, limits: ReadingLimits) -> tuple[ParsedRequest, Conversation]:
    """The request, and what was said in it. Raises Malformed and TooMany."""
    parsed = read(dialect, body, limits)
    return parsed, _without_blocks(parsed.conversation)


def _without_blocks(conversation: Conversation) -> Conversation:
    """What was said, without what semmem added to it somewhere before: a message that was nothing else goes."""
    said = [(message, strip_block(message.text)) for message in conversation.messages]
    if all(text == message.text for message, text in said):
        return conversation
    left = (replace(message, text=text) for message, text in said if text or not message.text)
    return replace(conversation, messages=tuple(left))
