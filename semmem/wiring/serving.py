"""What is made of settings that a reload takes up: the road of a request, the API, learning.

It is made as a whole, beside what serves, and then put in its place in one go. Whatever began before ends with what it
began with: no request is served by a mixture of two configurations.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Protocol

from fastapi import FastAPI

from semmem.compression.making import Making
from semmem.config.listeners_section import JwtSection, RateLimitSection
from semmem.config.settings import Settings
from semmem.envoy.service import ExternalProcessor, MessageTimeouts, OpenStreams, no_streams
from semmem.exchange import Exchange
from semmem.exchange.explaining import Explaining
from semmem.lifecycle.everybody import ErasureOfAll
from semmem.lifecycle.holds import Holds
from semmem.management.access import Tokens
from semmem.management.accounts_api import SwitchDesk, switch_routes, token_routes
from semmem.management.activity_api import Activity, activity_routes, work_routes
from semmem.management.api import create_api
from semmem.management.audit import audit_routes
from semmem.management.conversations import conversation_routes
from semmem.management.curation import curation_routes
from semmem.management.door import Guards
from semmem.management.engine_api import engine_routes, reindex_routes, reload_routes
from semmem.management.everybodys_api import backup_routes, everybodys_routes
from semmem.management.feedback_api import FeedbackDesk, feedback_routes
from semmem.management.memories import Memories
from semmem.management.retrieval import States, state_routes
from semmem.management.routes import MetadataLimits
from semmem.management.server import add_studio
from semmem.management.usage_api import usage_routes
from semmem.management.web_tokens import VerifiedWebTokens
from semmem.ports.clock import Clock
from semmem.ports.events import Announce
from semmem.ports.spans import Tracer
from semmem.request.asker import AskerRules
from semmem.request.body_work import BodyWork
from semmem.retrieval.index.hot_memories import Spawn
from semmem.retrieval.showing import Showing
from semmem.turns.recorder import TurnRecorder
from semmem.turns.recovery import Recovery
from semmem.wiring import backup, doors, request
from semmem.wiring.backends import Backends
from semmem.wiring.compression import fence_of, making
from semmem.wiring.doors import guards, rate_limits
from semmem.wiring.erasure import holds
from semmem.wiring.maintenance import lifetime_s, quota
from semmem.wiring.parts import LearningSide, Parts, engine, learning_side
from semmem.wiring.reload import Reloading


@dataclass(frozen=True, slots=True)
class Serving:
    """What serves by these settings."""

    settings: Settings
    learning: LearningSide
    turns: TurnRecorder
    processor: ExternalProcessor
    api: FastAPI
    making: Making


class Tools(Protocol):
    """Routes that every API gets."""

    def add_to(self, api: FastAPI) -> None: ...


@dataclass(eq=False)
class Workshop:
    """Makes what serves, out of parts that stay. ``threads`` work on large bodies, ``up`` says which components
    answered when they were last asked; ``activity`` keeps how the last requests ended."""

    parts: Parts
    announce: Announce
    reloads: Reloading[Serving]
    _: KW_ONLY
    threads: BodyWork
    spawn: Spawn
    up: Mapping[str, Callable[[], bool]]
    activity: Activity
    tracer: Tracer
    _open_streams: OpenStreams = field(init=False, default_factory=no_streams)
    _web_tokens: tuple[JwtSection, VerifiedWebTokens | None] | None = field(init=False, default=None)
    _guards: tuple[RateLimitSection, Guards] | None = field(init=False, default=None)
    tools: Tools | None = field(init=False, default=None)

    def _unshown(self, user: str, conversation_id: str) -> None:
        """A conversation is gone: no block shows it any more, here or elsewhere, and no state of a session here."""
        self.parts.shown.talk_changed(user, conversation_id)
        self.parts.compression.maker.forget(user)
        if (news := self.parts.opened.news) is not None:
            news.changes.changed(user)

    def first(self, settings: Settings) -> Serving:
        """What serves from the start."""
        return self._made(settings, self.parts.opened.backends, self.parts.first)

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
            doors.door_limits(settings),
            announce=self.announce,
            note_ended=self.activity.ended,
            single_filter=settings.capture.mode == "single_filter",
            message_timeouts=settings.deadlines.fill(MessageTimeouts),
            work=work,
            open_streams=self._open_streams,
            tracer=self.tracer,
        )
        api, making_states = self._api(settings, backends), making(settings, backends)
        return Serving(settings, learning, turns, processor, api, making_states)

    def _exchange(self, settings: Settings, backends: Backends, turns: TurnRecorder, work: BodyWork) -> Exchange:
        parts, finds = self.parts, request.recall(settings, backends, self.announce, self.spawn)
        identity, permission = request.identity(settings), request.permission_rules(settings)
        rules = request.exchange_rules(settings)
        features = [
            parts.conversations.feature(settings, work, rules),
            parts.compression.feature(settings, backends, work, self.announce),
            parts.usage.feature(settings),
            Explaining() if settings.memory.injection.explain else None,
        ]
        return Exchange(
            askers=AskerRules(identity, permission, request.verdict_rules(settings), parts.switches),
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
        switches = SwitchDesk(
            journal,
            parts.switches,
            parts.switch_watch.refresh,
            entries_max=memory.switches.entries_max,
            clock=time.time,
        )
        votes = FeedbackDesk(
            backends.store,
            journal,
            parts.vote_watch.refresh,
            entries_max=memory.feedback.entries_max,
            clock=time.time,
            announce=self.announce,
        )
        memories = self._memories(settings, backends, one_line)
        api = create_api(
            memories,
            doors.access(settings, tokens, self._tokens(settings.listeners.api.jwt, settings)),
            announce=self.announce,
            door=doors.door(settings),
            metadata=settings.listeners.api.fill(MetadataLimits, prefix="metadata_"),
            screening=doors.write_screen(settings, self.announce),
            more=[
                curation_routes(doors.curation(settings, backends, self.announce, holds=one_line)),
                token_routes(tokens, switches=parts.switches),
                engine_routes(engine(settings, backends, parts, self.up, self.reloads.state), switches=parts.switches),
                work_routes(journal, time.time),
                everybodys_routes(backends.store, journal),
                switch_routes(switches),
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
                activity_routes(self.activity, memories),
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
        if self.tools is not None:
            self.tools.add_to(api)
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
        )

    def _tokens(self, rules: JwtSection, settings: Settings) -> VerifiedWebTokens | None:
        """Those of the same rules are kept, with the keys that they have."""
        if self._web_tokens is None or self._web_tokens[0] != rules:
            self._web_tokens = rules, doors.web_tokens(settings)
        return self._web_tokens[1]

    def _guard(self, settings: Settings, backends: Backends) -> Guards:
        """The same all the time, with what they know of calls; where the rates changed, with other limits."""
        rates = settings.listeners.api.rate_limit
        if self._guards is None:
            self._guards = rates, guards(settings, backends, self.announce)
        elif self._guards[0] != rates:
            self._guards = rates, replace(self._guards[1], limits=rate_limits(settings, self.announce))
        return self._guards[1]
