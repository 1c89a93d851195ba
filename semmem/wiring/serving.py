"""What is made of settings that a reload takes up: the road of a request, the API, learning; and the listeners that it
stands behind.

It is made as a whole, beside what serves, and then put in its place in one go. Whatever began before ends with what it
began with: no request is served by a mixture of two configurations.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from semmem.compression.making import Making
from semmem.config.listeners_section import HttpListenerSection
from semmem.config.settings import Settings
from semmem.envoy.server import ExtProcServer, TlsFiles
from semmem.envoy.service import DoorLimits, ExternalProcessor, MessageTimeouts
from semmem.exchange import Exchange
from semmem.exchange.features import Explaining
from semmem.extraction.screen import screen_text
from semmem.lifecycle.everybody import ErasureOfAll
from semmem.lifecycle.holds import Holds
from semmem.management.access import Tokens
from semmem.management.accounts_api import SwitchDesk, alias_routes, switch_routes, token_routes
from semmem.management.activity_api import Activity, activity_routes, work_routes
from semmem.management.api import create_api
from semmem.management.audit import audit_routes
from semmem.management.conversations import conversation_routes
from semmem.management.curation import curation_routes
from semmem.management.door import Guards
from semmem.management.engine_api import engine_routes, reindex_routes, reload_routes
from semmem.management.everybodys_api import backup_routes, everybodys_routes
from semmem.management.feedback_api import FeedbackDesk, feedback_routes
from semmem.management.idempotency import Idempotency, IdempotencyRules
from semmem.management.memories import Memories, WriteScreen
from semmem.management.requests_api import request_routes
from semmem.management.retrieval import States, state_routes
from semmem.management.routes import MetadataLimits
from semmem.management.server import HttpListener, add_studio
from semmem.management.usage_api import usage_routes
from semmem.ports.clock import Clock
from semmem.ports.events import Announce
from semmem.ports.spans import Tracer
from semmem.request.body_work import BodyWork
from semmem.request_log.feature import RequestLogging
from semmem.retrieval.index.hot_memories import Spawn
from semmem.retrieval.showing import Showing
from semmem.telemetry.log_lines import tell_from
from semmem.telemetry.samples import Samples
from semmem.turns.recorder import TurnRecorder
from semmem.turns.recovery import Recovery
from semmem.wiring import backup, doors, learning, request
from semmem.wiring.backends import Backends
from semmem.wiring.erasure import holds
from semmem.wiring.features import fence_of, making
from semmem.wiring.learning import LearningSide, learning_side
from semmem.wiring.maintenance import lifetime_s, quota
from semmem.wiring.parts import Parts, Up, engine
from semmem.wiring.reload import Reloading

if TYPE_CHECKING:
    from semmem.management.mcp_doors import Tools

LISTENER_END_S = 5.0
GRPC_OVERHEAD_BYTES = 1024 * 1024
"""Headers and metadata around a body in one gRPC message."""
TOOL_BODY_BYTES_MAX = 64 * 1024**2
"""Of the tools' own server, behind the API's door, which has the configured limit."""


@dataclass(frozen=True, slots=True)
class Serving:
    """What serves by these settings."""

    settings: Settings
    learning: LearningSide
    turns: TurnRecorder
    processor: ExternalProcessor
    api: FastAPI
    making: Making


async def _nobody(_scope: object, _receive: object, _send: object) -> None:
    """The API before there is one: its listener is not bound yet."""


@dataclass(eq=False)
class CurrentApi:
    """An ASGI application. A call is answered to its end by the one that it began with."""

    application: ASGIApp = _nobody

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.application(scope, receive, send)


@dataclass(eq=False)
class Workshop:
    """Makes what serves, out of parts that stay, and puts it in its place: ``serving`` is what serves at the moment,
    ``api`` and ``server`` stand in front of it. ``threads`` work on large bodies; ``activity`` keeps how the last
    requests ended."""

    parts: Parts
    announce: Announce
    reloads: Reloading[Serving]
    _: KW_ONLY
    threads: BodyWork
    spawn: Spawn
    up: Up
    activity: Activity
    samples: Samples
    tracer: Tracer
    _open_streams: Counter[str] = field(init=False, default_factory=Counter)
    _guards: Guards | None = field(init=False, default=None)
    _tools: Tools | None = field(init=False, default=None)
    api: CurrentApi = field(init=False, default_factory=CurrentApi)
    serving: Serving = field(init=False)
    server: ExtProcServer = field(init=False)

    def __post_init__(self) -> None:
        """What is made of the same keys as before is kept: the keys of tokens, how often somebody called."""
        self._web_tokens, self._rate_limits = lru_cache(1)(doors.web_tokens), lru_cache(1)(doors.rate_limits)

    def _unshown(self, user: str, conversation_id: str) -> None:
        """A conversation is gone: no block shows it any more, here or elsewhere, and no state of a session here."""
        self.parts.shown.talk_changed(user, conversation_id)
        self.parts.compression.maker.forget(user)
        if (news := self.parts.opened.news) is not None:
            news.changes.changed(user)

    async def open(self, settings: Settings) -> None:
        """With what serves from the start, and the tools for models where they are wanted. Raises OSError naming a
        certificate that cannot be read."""
        if settings.listeners.api.mcp:
            from semmem.management.mcp_doors import tools_of  # and with it an SDK that most processes never need

            self._tools = tools_of(self.api, body_bytes_max=TOOL_BODY_BYTES_MAX)
            self.spawn("tools", self._tools.run())
            await self._tools.ready.wait()
        self.serving = self._made(settings, self.parts.opened.backends, self.parts.first)
        self.api.application, self.server = self.serving.api, envoy_door(settings, self.serving.processor)

    def take_up(self, serving: Serving) -> None:
        """All at once, between two steps of whatever runs."""
        parts, former, learns = self.parts, self.serving.settings, serving.learning
        self.serving, self.api.application = serving, serving.api
        self.server.use(serving.processor)
        parts.learner.use(learning.learn(learns.batches, self.announce, self.tracer), learns.rules)
        if parts.at_once is not None:
            parts.at_once.at_once, parts.at_once.settling = learns.reading, learns.batches.settling
        parts.compression.maker.making = serving.making
        tell_from(serving.settings.log.level)
        closing = parts.opened.clients.close_others(serving.settings, after_s=former.memory.extraction.lease_s)
        self.spawn("close models", closing)

    def make(self, settings: Settings) -> Serving:
        """Blocking, for any thread; changes nothing of what serves. Raises OSError, ValueError and UnusableWeights."""
        opened = self.parts.opened
        models, reranker = opened.clients.of(settings)
        patient = replace(self.parts.patient, models=models, reranker=reranker)
        learning = learning_side(settings, patient, opened, self.announce, self.parts.erasure.forget_memory)
        return self._made(settings, replace(opened.backends, models=models, reranker=reranker), learning)

    def _made(self, settings: Settings, backends: Backends, learning: LearningSide) -> Serving:
        parts = self.parts
        work = replace(self.threads, inline_bytes_max=settings.limits.inline_body_bytes_max)
        turns = TurnRecorder(
            parts.sessions,
            parts.writer,
            Recovery(parts.seen, request.recovery_rules(settings, parts.began), announce=self.announce),
            capture=settings.capture.mode,
            answer_bytes_max=settings.limits.answer_bytes_max,
            unread=parts.unread,
        )
        processor = ExternalProcessor(
            self._exchange(settings, backends, turns, work),
            settings.limits.fill(DoorLimits),
            announce=self.announce,
            note_ended=self.activity.ended,
            single_filter=settings.capture.mode == "single_filter",
            message_timeouts=settings.deadlines.fill(MessageTimeouts),
            work=work,
            open_streams=self._open_streams,
            tracer=self.tracer,
        )
        return Serving(settings, learning, turns, processor, self._api(settings, backends), making(settings, backends))

    def _exchange(self, settings: Settings, backends: Backends, turns: TurnRecorder, work: BodyWork) -> Exchange:
        parts, finds = self.parts, request.recall(settings, backends, self.announce, self.spawn)
        rules = request.exchange_rules(settings)
        features = [
            parts.conversations.feature(settings, work, rules),
            parts.compression.feature(settings, backends, work, self.announce),
            parts.usage.feature(settings),
            Explaining() if settings.memory.injection.explain else None,
            RequestLogging(parts.request_log.add) if settings.request_log.enabled else None,
        ]
        return Exchange(
            askers=request.asker_rules(settings, parts.switches),
            turns=turns,
            recall=finds,
            showing=Showing(parts.shown, finds, self.announce, parts.uses.note),
            rules=rules,
            clock=Clock(time.time, parts.opened.hidden.marks.after),
            work=work,
            features=[feature for feature in features if feature is not None],
        )

    def _api(self, settings: Settings, backends: Backends) -> FastAPI:
        parts, one_line, journal = self.parts, holds(settings, backends), backends.journal
        tokens, memory = Tokens(journal, clock=time.time), settings.memory
        guards = self._guard(settings, backends)
        made_states = States(journal, fence_of(backends), clock=time.time)
        switches = memory.switches.fill(
            SwitchDesk, journal, parts.switches, parts.switch_watch.refresh, clock=time.time
        )
        refresh, announce = parts.vote_watch.refresh, self.announce
        votes = memory.feedback.fill(FeedbackDesk, backends.store, journal, refresh, clock=time.time, announce=announce)
        memories = self._memories(settings, backends, one_line)
        api = create_api(
            memories,
            doors.access(settings, tokens, self._web_tokens(settings.listeners.api.jwt)),
            announce=self.announce,
            door=doors.door(settings),
            screening=WriteScreen(learning.screening(settings, screen_text), announce=self.announce),
            more=[
                curation_routes(doors.curation(settings, backends, self.announce, holds=one_line)),
                token_routes(tokens, switches=parts.switches),
                engine_routes(
                    engine(settings, backends, parts, self.up, self.reloads.state),
                    self.samples,
                    switches=parts.switches,
                ),
                work_routes(journal, time.time),
                everybodys_routes(backends.store, journal),
                switch_routes(switches),
                alias_routes(journal),
                audit_routes(guards.audit),
                backup_routes(
                    parts.snapshots,
                    backup.exports(settings, parts.opened),
                    backup.imports(settings, parts.opened, self.announce),
                    journal,
                    time.time,
                ),
                reindex_routes(parts.reindexing),
                reload_routes(self.reloads.reload),
                activity_routes(self.activity),
                request_routes(journal, parts.request_log.flush, memories.store),
                usage_routes(parts.usage.shown(settings)),
                conversation_routes(parts.conversations.shown(parts.opened.hidden.marks, self._unshown)),
                state_routes(made_states),
                feedback_routes(votes),
            ],
            purging=parts.purging,
            everybody=ErasureOfAll(parts.erasure, parts.opened.store_backend, journal, clock=time.time),
            guards=guards,
            tracer=self.tracer,
            states=made_states,
        )
        if settings.listeners.api.studio:
            add_studio(api)
        if self._tools is not None:
            self._tools.add_to(api)
        return api

    def _memories(self, settings: Settings, backends: Backends, one_line: Holds) -> Memories:
        finds = request.recall(settings, backends)
        return Memories(
            backends.store,
            backends.embedder,
            backends.journal,
            quota(settings, backends, self.announce),
            finds,
            clock=time.time,
            erasure=self.parts.erasure,
            holds=one_line,
            after=self.parts.opened.hidden.marks.after,
            create_wait_s=settings.memory.create_wait_s,
            ttl_s=lifetime_s(settings),
            showing=Showing(self.parts.shown, finds),
            limits=settings.listeners.api.fill(MetadataLimits, prefix="metadata_"),
        )

    def _guard(self, settings: Settings, backends: Backends) -> Guards:
        """What stands between the API's door and its routes. The same all the time, with what they know of calls; where
        the rates changed, with other limits."""
        limits = self._rate_limits(settings.listeners.api.rate_limit, self.announce)
        if self._guards is None:
            once = settings.listeners.api.idempotency.fill(IdempotencyRules)
            audit = doors.audit(settings, fence_of(backends), self.announce)
            self._guards = Guards(limits, Idempotency(backends.journal, once, clock=time.time), audit)
        return replace(self._guards, limits=limits)


def envoy_door(settings: Settings, processor: ExternalProcessor) -> ExtProcServer:
    """Not started. Raises OSError naming a file that cannot be read."""
    grpc, limits, files = settings.listeners.grpc, settings.limits, None  # no files: plain text
    if (tls := grpc.tls).cert_file:
        client_ca = Path(tls.client_ca_file) if tls.client_ca_file else None
        files = TlsFiles(Path(tls.cert_file), Path(tls.key_file), client_ca)
    return ExtProcServer(
        processor,
        address=f"unix:{grpc.unix_socket}" if grpc.unix_socket else grpc.address,
        message_bytes_max=max(limits.request_body_bytes_max, limits.response_body_bytes_max) + GRPC_OVERHEAD_BYTES,
        tls=files,
    )


async def serve(
    name: str, application: object, where: HttpListenerSection, *, spawn: Spawn, stack: AsyncExitStack
) -> str:
    """Listen until ``stack`` is closed; the address with its port. Raises OSError naming one that is in use."""
    listener = HttpListener(
        application, where.address, connections_max=where.connections_max, head_timeout_s=where.head_timeout_s
    )
    bound = listener.bind()
    task = spawn(name, listener.serve())

    async def stop() -> None:
        listener.stop()
        await asyncio.wait({task}, timeout=LISTENER_END_S)
        listener.close()

    stack.push_async_callback(stop)
    return bound
