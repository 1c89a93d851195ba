"""A client, its long conversation, and semmem between it and a model: everything but Envoy, and a real journal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from semmem.backends.sql.journal import SqlJournal
from semmem.background import Tasks
from semmem.background.derived import StateMaker
from semmem.compression.compressor import CompressionRules, Compressor, KnownStates
from semmem.compression.making import Making, ModelWriter
from semmem.exchange import Exchange, RequestResult
from semmem.exchange.exchange import ExchangeRules
from semmem.extraction.work import InThread
from semmem.memory import Scope, Turn
from semmem.ports.clock import Clock
from semmem.ports.events import Event, LongRequest, StateMade
from semmem.ports.recording import TurnClosed
from semmem.request.asker import AskerRules
from semmem.request.body_work import BodyWork
from semmem.request.head import RequestHead
from semmem.request.identity import IdentityRules
from semmem.request.permission import PermissionRules
from semmem.request.switches import Switches
from semmem.retrieval.fence import Fence
from semmem.retrieval.ledger.ledger import Ledger
from semmem.retrieval.recall import Recall, RecallRules
from semmem.retrieval.showing import Showing
from semmem.turns.recorder import TurnRecorder
from semmem.turns.recovery import Recovery
from semmem.turns.seen import SeenMessages
from semmem.turns.sessions import Sessions
from tests.core.compression.histories import APIS, Spoken
from tests.core.exchange.world import NOW, PATIENT, Failing
from tests.support.decisions import Decided
from tests.support.empty_journal import empty_journal
from tests.support.fakes import HashEmbedder, hot

RULES = CompressionRules(
    from_tokens=1000, turns_kept=3, renew_turns=4, state_tokens_max=200, lookup_s=20.0, source_chars_max=100_000
)
FENCE = Fence(b"the key of these tests")
FILLER = "Tell me more about that, in plain words, please, and leave nothing out that may matter. "


class Halves(list[Turn | TurnClosed]):
    """What is to be committed."""

    def offer(self, half: Turn | TurnClosed) -> bool:
        self.append(half)
        return True


class Replica:
    """One semmem on a journal that others may share."""

    def __init__(
        self,
        journal: SqlJournal,
        *,
        rules: CompressionRules = RULES,
        recall: RecallRules = PATIENT,
        writer: ModelWriter | None = None,
        switches: Switches | None = None,
        refresh_s: float = 30.0,
        is_erased: Callable[[str], bool] = lambda _user: False,
    ) -> None:
        self.journal = journal
        self.now = NOW
        self.store = Failing()
        self.halves = Halves()
        self.events: list[Event] = []
        self.known = KnownStates(journal, sessions_max=100, refresh_s=refresh_s, turns_max=100)
        making = Making(journal, InThread(), writer, tokens_max=200, ttl_s=3600.0, budget_s=5.0, clock=lambda: self.now)
        self.maker = StateMaker(
            making,
            self.known,
            self.events.append,
            queue_max=10,
            again_turns=rules.renew_turns,
            clock=lambda: self.now,
        )
        finds = Recall(hot(self.store), HashEmbedder(), recall, decision=Decided())
        work, told = BodyWork(), self.events.append
        compressor = Compressor(self.known, self.maker.offer, FENCE, rules, work, told, is_erased)
        self.exchange = Exchange(
            askers=AskerRules(
                IdentityRules(trusted_headers=("x-user-id",)), PermissionRules(), switches=switches or Switches()
            ),
            turns=TurnRecorder(Sessions(journal), self.halves, Recovery(SeenMessages(journal))),
            recall=finds,
            showing=Showing(Ledger(), finds),
            rules=ExchangeRules(phase_s=20.0),
            clock=Clock(lambda: self.now),
            work=work,
            features=[compressor],
        )

    async def settle(self) -> None:
        """What was said is committed, and the states that were to be made are."""
        await self.commit()
        while len(self.maker):
            await asyncio.sleep(0.002)

    async def commit(self) -> None:
        self.now += 1
        opened = [half for half in self.halves if isinstance(half, Turn)]
        closed = [half for half in self.halves if isinstance(half, TurnClosed)]
        self.halves.clear()
        await self.journal.record(opened, closed)

    def results(self) -> list[str]:
        """What came of the long requests so far."""
        return [event.result for event in self.events if isinstance(event, LongRequest)]

    def made(self) -> list[str]:
        return [event.result for event in self.events if isinstance(event, StateMade)]


class Client:
    """Sends its whole history with every request, as clients do."""

    def __init__(self, replica: Replica, api: str = "chat", user: str = "alice", session: str = "s1") -> None:
        self.replica = replica
        self.api = APIS[api]
        self.user = user
        self.session = session
        self.turns: list[Spoken] = []

    async def send(self, *, headers: Any = None, settle: bool = True) -> tuple[RequestResult, bytes]:
        """How the request went, and the body that the model would see."""
        body = self.api.encoded(self.turns)
        sent = {"x-user-id": self.user, "x-session-id": self.session} | (headers or {})
        head = RequestHead("POST", self.api.path, {name: (value,) for name, value in sent.items()})
        result = await self.replica.exchange.request(head, body)
        if settle:
            await self.replica.settle()
        return result, body if result.body is None else result.body

    async def says(self, text: str, answer: str = "Noted.", **how: Any) -> tuple[RequestResult, bytes]:
        self.turns.append(Spoken(text, answer=None))
        sent = await self.send(**how)
        self.turns[-1] = Spoken(text, answer=answer)
        return sent

    async def send_again(self) -> tuple[RequestResult, bytes]:
        """The last request once more."""
        answered = self.turns.pop()
        self.turns.append(Spoken(answered.text, answer=None))
        sent = await self.send()
        self.turns[-1] = answered
        return sent

    async def talks(self, turns: int, *, first: int = 0) -> tuple[RequestResult, bytes]:
        """Long turns with one fact each; what became of the last."""
        for number in range(first, first + turns):
            sent = await self.says(f"My locker number {number} has the code {4000 + number}. {FILLER * 3}", FILLER * 4)
        return sent

    async def replaced(self) -> tuple[RequestResult, list[Any]]:
        """The next request's elements, as the model sees them."""
        result, body = await self.says("And now?")
        return result, json.loads(body)[self.api.member]


@asynccontextmanager
async def replicas(folder: Path, number: int = 1, **how: Any) -> AsyncIterator[Sequence[Replica]]:
    journal, tasks = SqlJournal(empty_journal(folder / "journal.db")), Tasks()
    await journal.open()
    made = [Replica(journal, **how) for _ in range(number)]
    for replica in made:
        tasks.spawn("states", replica.maker.run())
    try:
        yield made
    finally:
        await tasks.cancel()
        await journal.close()


SCOPE = Scope("alice")
