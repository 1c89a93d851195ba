"""An exchange with everything around it in reach, and what may go wrong around it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from semmem.backends.in_process import InProcessStore
from semmem.background import Tasks
from semmem.conversations.feature import ConversationsFeature
from semmem.conversations.tap import Tap
from semmem.exchange import Exchange, Feature, RequestResult
from semmem.exchange.exchange import ExchangeRules
from semmem.memory import Hit, Memory, MemoryType, Message, Scope, Turn, Vector
from semmem.ports.clock import Clock
from semmem.ports.conversations import SaidHalf
from semmem.ports.errors import EmbedderBusy, EmbedderError
from semmem.ports.events import Announce, nobody_listens
from semmem.ports.recording import TurnClosed
from semmem.ports.text_work import Offload
from semmem.request.asker import AskerRules
from semmem.request.body_work import BodyWork
from semmem.request.head import RequestHead
from semmem.request.identity import IdentityRules
from semmem.request.permission import PermissionRules
from semmem.request.switches import Switches
from semmem.request.verdicts import NO_SOURCES, VerdictRules
from semmem.retrieval.fence import Fence
from semmem.retrieval.ledger.ledger import Ledger
from semmem.retrieval.models import QueryWriter
from semmem.retrieval.recall import Recall, RecallRules
from semmem.retrieval.showing import Showing
from semmem.turns.recorder import TurnRecorder
from semmem.turns.sessions import Sessions
from tests.support.decisions import Decided
from tests.support.fakes import HashEmbedder, hot

NOW = 1_800_000_000.0
BUDGET = "User's budget for the Hawaii trip is $10,000"
QUESTION = "What's my budget for the Hawaii trip?"
PATIENT = RecallRules(threshold=0.2, embed_timeout_s=10.0, store_timeout_s=10.0)
"""For tests in which nothing is late, however busy the machine is."""
FOLLOW_UP = {"messages": [{"role": "user", "content": text} for text in ("The trip to Hawaii", "How much?")]}


class Halves(list[Turn | TurnClosed]):
    """A journal that takes halves of turns, up to a limit. ``declined`` are bare places of messages, and no turns."""

    full = False

    def __init__(self) -> None:
        super().__init__()
        self.declined: list[str] = []

    def offer(self, half: Turn | TurnClosed) -> bool:
        if self.full:
            return False
        if isinstance(half, TurnClosed) and half.status == "declined":
            self.declined.append(half.turn_id)
        else:
            self.append(half)
        return True


class Failing(InProcessStore):
    """A store that fails, or takes its time."""

    def __init__(self) -> None:
        super().__init__()
        self._is_open = True
        self.error: Exception | None = None
        self.delay_s = 0.0
        self.list_delay_s = 0.0

    async def search(
        self,
        scope: Scope,
        vector: Vector,
        *,
        limit: int,
        now: float,
        types: Sequence[MemoryType] = (),
        as_of: float | None = None,
    ) -> list[Hit]:
        await asyncio.sleep(self.delay_s)
        if self.error is not None:
            raise self.error
        return await super().search(scope, vector, limit=limit, now=now, types=types, as_of=as_of)

    async def list(
        self, scope: Scope, *, types: Sequence[MemoryType] = (), limit: int = 100, offset: int = 0, vectors: bool = True
    ) -> list[Memory]:
        await asyncio.sleep(self.list_delay_s)
        if self.error is not None:
            raise self.error
        return await super().list(scope, types=types, limit=limit, offset=offset, vectors=vectors)


class FailingEmbedder(HashEmbedder):
    failing = False
    busy = False
    delay_s = 0.0

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        if self.failing:
            raise EmbedderError("no model")
        if self.busy and within_s is not None:
            raise EmbedderBusy("too late")
        if self.delay_s and within_s is not None:
            await asyncio.sleep(self.delay_s)
        return await super().embed(text)


class NoSessions:
    """Records in which no session is known yet."""

    async def session_start(self, user: str, session_key: str, *, seen_since: float) -> float | None:
        return None

    async def turn_of_answer(self, user: str, answer_id: str) -> tuple[str, str] | None:
        return None

    async def latest_answer(self, user: str, session: str) -> tuple[str, str, float] | None:
        return None


class World:
    """An exchange with everything around it in reach."""

    def __init__(
        self,
        permissions: PermissionRules = PermissionRules(),
        *,
        capture: str = "observe",
        upstream: VerdictRules = NO_SOURCES,
        ledger: Ledger | None = None,
        announce: Announce = nobody_listens,
        rules: RecallRules = replace(PATIENT, user_role_models=("o1", "*/o1-*")),
        writer: QueryWriter | None = None,
        fence: Fence | None = None,
        offload: Offload = asyncio.to_thread,
        offload_large: Offload | None = None,
        inline_body_bytes_max: int = 64 * 1024,
        embedder: HashEmbedder | None = None,
        journal: Halves | None = None,
        switches: Switches | None = None,
        **limits: Any,
    ) -> None:
        self.store = Failing()
        self.embedder = FailingEmbedder()
        self.journal = Halves() if journal is None else journal
        self.rules = rules
        self.now = NOW
        self.decision = Decided()
        self.noted: list[tuple[str, Sequence[str], float]] = []
        self.tasks = Tasks()
        self.features: list[Feature] = []
        self.limits = ExchangeRules(**{"phase_s": 20.0} | limits)
        self.work = BodyWork(inline_body_bytes_max, offload, offload_large)
        self.ledger = Ledger(announce=announce) if ledger is None else ledger

        self.memories = hot(self.store)
        recall = Recall(
            self.memories,
            self.embedder if embedder is None else embedder,
            self.rules,
            decision=self.decision,
            writer=writer,
            fence=fence,
            spawn=self.tasks.spawn,
        )
        self.exchange = Exchange(
            askers=AskerRules(
                IdentityRules(trusted_headers=("x-user-id",)), permissions, upstream, switches or Switches()
            ),
            turns=TurnRecorder(Sessions(NoSessions()), self.journal, capture=capture),
            recall=recall,
            showing=Showing(self.ledger, recall, announce, lambda *noted: self.noted.append(noted)),
            rules=self.limits,
            clock=Clock(lambda: self.now),
            work=self.work,
            features=self.features,
        )

    def records(self, add: Callable[[SaidHalf], None]) -> ConversationsFeature:
        """Conversations are recorded from now on."""
        feature = ConversationsFeature(Tap(add, chars_max=1000), None, self.work, self.limits)
        self.features.append(feature)
        return feature

    async def knows(self, content: str, user: str = "alice", **fields: Any) -> None:
        memory = Memory(
            id=f"mem_{len(content)}_{hash(content)}",
            version=1,
            type=MemoryType.SEMANTIC,
            content=content,
            user=user,
            created_at=NOW - 60,
            updated_at=NOW - 60,
            embedding=await HashEmbedder().embed(content),
        )
        await self.store.put(Scope(user), replace(memory, **fields))

    async def ask(self, body: bytes | str | dict[str, Any] = QUESTION, **headers: str) -> RequestResult:
        sent = {name.replace("_", "-"): (value,) for name, value in ({"x_user_id": "alice"} | headers).items()}
        return await self.exchange.request(RequestHead("POST", "/v1/chat/completions", sent), as_body(body))

    @property
    def turns(self) -> list[Turn]:
        return [half for half in self.journal if isinstance(half, Turn)]


def as_body(body: bytes | str | dict[str, Any]) -> bytes:
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        body = {"messages": [{"role": "user", "content": body}]}
    return json.dumps({"model": "m"} | body).encode()


def prompt(result: RequestResult) -> str:
    assert result.body is not None
    return "\n".join(message["content"] for message in json.loads(result.body)["messages"])


def reply(content: str | None, finish_reason: str = "stop") -> list[bytes]:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish_reason}
    return [json.dumps({"choices": [choice]}).encode()]


class Thinking:
    """A model that rewrites a question after a while."""

    def __init__(self, answer: str, takes_s: float) -> None:
        self._answer = answer
        self._takes_s = takes_s

    async def complete(
        self, messages: Sequence[Message], *, timeout_s: float, json_schema: dict[str, object] | None = None
    ) -> str:
        await asyncio.sleep(self._takes_s)
        return self._answer

    async def close(self) -> None:
        pass


def thinking(takes_s: float, timeout_s: float = 5.0) -> World:
    writer = QueryWriter(Thinking(QUESTION, takes_s), mode="rewrite", timeout_s=timeout_s)
    return World(writer=writer, phase_s=0.1)
