"""A client's requests to one exchange with a real journal, and what is learnt from them in the end."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from semmem.backends.in_process import InProcessStore
from semmem.backends.sql.journal import SqlJournal
from semmem.exchange import Exchange, RequestResult
from semmem.exchange.exchange import ExchangeRules
from semmem.memory import Scope, Turn
from semmem.ports.clock import Clock
from semmem.ports.errors import JournalError
from semmem.ports.events import Event, HistoryRead
from semmem.ports.learning import BatchRules
from semmem.ports.recording import SaidBefore, TurnClosed
from semmem.request.asker import AskerRules
from semmem.request.body_work import BodyWork
from semmem.request.head import RequestHead
from semmem.request.identity import IdentityRules
from semmem.request.permission import PermissionRules
from semmem.request.verdicts import NO_SOURCES, VerdictRules
from semmem.retrieval.ledger.ledger import Ledger
from semmem.retrieval.recall import Recall, RecallRules
from semmem.retrieval.showing import Showing
from semmem.turns.observation import Ticket
from semmem.turns.recorder import TurnRecorder
from semmem.turns.recovery import Recovery, RecoveryRules
from semmem.turns.seen import SeenMessages
from semmem.turns.sessions import Sessions
from tests.support.fakes import HashEmbedder, hot
from tests.support.journal_samples import Place, erase

NOW = 1_800_000_000.0
DAY_S = 86_400.0
EAGER = BatchRules(size=1, context_turns=0, idle_s=0.0, answer_wait_s=60.0, lease_s=10.0)
RECALL = RecallRules(
    threshold=0.2, role="user", position="before_last_user", embed_timeout_s=10.0, store_timeout_s=10.0
)
PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}

Json = dict[str, Any]


class ReticentJournal(SqlJournal):
    """A real one that counts what it is asked of messages. ``silent``: it does not answer that."""

    def __init__(self, path: Place) -> None:
        super().__init__(path)
        self.silent = False
        self.asked = 0

    async def said_before(self, message_ids: Sequence[str]) -> list[SaidBefore]:
        self.asked += len(message_ids)
        if self.silent:
            raise JournalError("silent")
        return await super().said_before(message_ids)

    async def forgotten_at(self, user: str) -> float | None:
        if self.silent:
            raise JournalError("silent")
        return await super().forgotten_at(user)

    async def erase(self, user: str, at: float) -> None:
        await erase(self, Scope(user), at=at)


class Queue(list[Turn | TurnClosed]):
    """What the journal was offered and has not taken yet."""

    room = 1_000_000

    def offer(self, half: Turn | TurnClosed) -> bool:
        if len(self) >= self.room:
            return False
        self.append(half)
        return True


class Talk:
    """One replica, its clock, and what was learnt so far: ``learnt`` counts texts, ``answers`` has the last answer."""

    def __init__(
        self,
        journal: ReticentJournal,
        *,
        capture: str = "observe",
        rules: RecoveryRules = RecoveryRules(),
        seen_max: int = 20_000,
        permissions: PermissionRules = PermissionRules(),
        upstream: VerdictRules = NO_SOURCES,
        shared: bool = False,
    ) -> None:
        self.journal = journal
        self._shared = shared
        self.now = NOW
        self.queue = Queue()
        self.store = InProcessStore()
        self.learnt: Counter[str] = Counter()
        self.answers: dict[str, str | None] = {}
        self.counted: Counter[str] = Counter()
        self._seen_max = seen_max
        self._capture, self._rules, self._permissions, self._upstream = capture, rules, permissions, upstream
        self.restart()

    def restart(self, permissions: PermissionRules | None = None) -> None:
        """Forget everything but the journal."""
        self.sessions = Sessions(self.journal, lookup_timeout_s=5.0, shared=self._shared)
        self.recorder = TurnRecorder(
            self.sessions,
            self.queue,
            Recovery(
                SeenMessages(self.journal, messages_max=self._seen_max, lookup_timeout_s=5.0),
                self._rules,
                announce=self._count,
            ),
            capture=self._capture,
        )
        recall = Recall(hot(self.store), HashEmbedder(), RECALL)
        self.exchange = Exchange(
            askers=AskerRules(
                IdentityRules(trusted_headers=("x-user-id",)), permissions or self._permissions, self._upstream
            ),
            turns=self.recorder,
            recall=recall,
            showing=Showing(Ledger(), recall),
            rules=ExchangeRules(phase_s=10.0),
            clock=Clock(lambda: self.now),
            work=BodyWork(),
            features=(),
        )

    def _count(self, event: Event) -> None:
        assert isinstance(event, HistoryRead)
        self.counted[event.result] += event.messages

    async def ask(
        self,
        *said: str | Json,
        user: str | None = "alice",
        session: str | None = None,
        api: str = "chat",
        headers: dict[str, str] | None = None,
        **members: Any,
    ) -> RequestResult:
        """One request, ten seconds after the one before. A text that begins with ``>`` is the assistant's."""
        self.now += 10.0
        sent = {"x-user-id": user, "x-session-id": session, **(headers or {})}
        head = RequestHead("POST", PATHS[api], {name: (value,) for name, value in sent.items() if value})
        messages = [message(each) for each in said]
        body = {"input" if api == "responses" else "messages": messages, **members}
        result = await self.exchange.request(head, json.dumps({"model": "m", **body}).encode())
        await self.commit()
        return result

    async def read_again(self) -> None:
        """What the process does every second while histories wait."""
        await self.recorder.read_again()
        await self.commit()

    async def commit(self) -> None:
        halves, self.queue[:] = list(self.queue), []
        await self.journal.record(
            [half for half in halves if isinstance(half, Turn)],
            [half for half in halves if isinstance(half, TurnClosed)],
        )

    async def answer(self, ticket: Ticket | None, status: int = 200, text: str = "Noted.") -> None:
        """What the model said of a chat request, as the second filter sees it."""
        assert ticket is not None
        observation = self.exchange.response(
            ticket, status=status, content_type="application/json", content_encoding=""
        )
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        observation.feed(json.dumps({"choices": [choice]}).encode())
        observation.end()
        await self.commit()

    async def respond(self, ticket: Ticket | None, name: str, *output: Json) -> None:
        """The same of a request to /v1/responses, under the API's name for it."""
        assert ticket is not None
        self.now += 1.0
        observation = self.exchange.response(ticket, status=200, content_type="application/json", content_encoding="")
        said = {"id": name, "object": "response", "status": "completed", "output": list(output)}
        observation.feed(json.dumps(said).encode())
        observation.end()
        await self.commit()

    async def learn(self, *, later_s: float = 61.0) -> Counter[str]:
        """Learn from whatever is ready then; everything that was learnt so far, counted."""
        while (batch := await self.journal.claim(EAGER, now=self.now + later_s)) is not None:
            self.learnt.update(turn.user_text for turn in batch.turns)
            self.answers |= {turn.user_text: turn.answer for turn in batch.turns}
            await self.journal.finish(batch.id, "done", now=self.now + later_s)
        return self.learnt


def message(said: str | Json) -> Json:
    if not isinstance(said, str):
        return said
    return {"role": "assistant", "content": said[1:]} if said.startswith(">") else {"role": "user", "content": said}
