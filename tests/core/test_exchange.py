"""One exchange from top to bottom: every outcome word, and what the model would receive."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.backends.sql.journal import SqlJournal
from semmem.background import Tasks
from semmem.exchange import Exchange, RequestResult
from semmem.memory import Answer, Hit, Memory, MemoryType, Message, Scope, Turn, TurnEnding, Vector
from semmem.ports.errors import EmbedderBusy, EmbedderError, StoreTimeout, StoreUnavailable
from semmem.ports.learning import BatchRules
from semmem.ports.recording import TurnClosed
from semmem.ports.switches import Switch, SwitchRow
from semmem.ports.text_work import Offload
from semmem.request.asker import AskerRules
from semmem.request.body_work import BodyWork
from semmem.request.head import RequestHead
from semmem.request.identity import IdentityRules
from semmem.request.limits import ExchangeLimits
from semmem.request.outcome import Outcome
from semmem.request.permission import PermissionRules
from semmem.request.switches import Switches, user_key
from semmem.request.verdicts import NO_SOURCES, VerdictRules
from semmem.retrieval.fence import Fence
from semmem.retrieval.injection_cache import InjectionCache
from semmem.retrieval.query.rewrite import QueryWriter
from semmem.retrieval.recall import Recall, RecallRules
from semmem.retrieval.search import Strategy
from semmem.turns.encodings import decoder_for
from semmem.turns.observation import Observation, Ticket
from semmem.turns.recorder import TurnRecorder
from semmem.turns.sessions import Sessions
from tests.support.decisions import Decided
from tests.support.fakes import HashEmbedder, hot

NOW = 1_800_000_000.0
BUDGET = "User's budget for the Hawaii trip is $10,000"
QUESTION = "What's my budget for the Hawaii trip?"
PATIENT = RecallRules(threshold=0.2, embed_timeout_s=10.0, store_timeout_s=10.0)
"""For tests in which nothing is late, however busy the machine is."""


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

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        if self.failing:
            raise EmbedderError("no model")
        if self.busy and within_s is not None:
            raise EmbedderBusy("too late")
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
        blocks: InjectionCache | None = None,
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

        self.exchange = Exchange(
            askers=AskerRules(
                IdentityRules(trusted_headers=("x-user-id",)), permissions, upstream, switches or Switches()
            ),
            turns=TurnRecorder(Sessions(NoSessions()), self.journal, capture=capture),
            recall=Recall(
                hot(self.store),
                self.embedder if embedder is None else embedder,
                self.rules,
                decision=self.decision,
                writer=writer,
                fence=fence,
                spawn=self.tasks.spawn,
            ),
            limits=ExchangeLimits(**{"phase_s": 20.0} | limits),
            clock=lambda: self.now,
            blocks=blocks,
            work=BodyWork(inline_body_bytes_max, offload, offload_large),
            note_uses=lambda *noted: self.noted.append(noted),
        )

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


async def test_a_known_fact_reaches_the_prompt() -> None:
    world = World()
    await world.knows(BUDGET)
    result = await world.ask()
    assert result.outcome is Outcome.INJECTED
    assert result.injected == 1
    assert BUDGET in prompt(result)
    assert json.loads(result.body or b"")["messages"][0]["role"] == "system"
    assert json.loads(result.body or b"")["messages"][1] == {"role": "user", "content": QUESTION}


async def test_what_reaches_a_prompt_is_noted_and_what_does_not_is_not() -> None:
    world = World()
    await world.knows("User keeps goats")
    await world.knows(BUDGET)
    await world.ask()
    assert world.noted == [("alice", (f"mem_{len(BUDGET)}_{hash(BUDGET)}",), NOW)]
    await world.ask("Hello!")
    await world.ask(x_semmem_memory="write")
    assert len(world.noted) == 1


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
async def test_a_second_injection_never_stacks_on_a_first(path: str) -> None:
    world = World()
    await world.knows(BUDGET)
    head = RequestHead("POST", path, {"x-user-id": ("alice",)})
    asked = {"input": QUESTION} if path == "/v1/responses" else {"messages": [{"role": "user", "content": QUESTION}]}
    first = await world.exchange.request(head, as_body(asked))
    assert first.outcome is Outcome.INJECTED
    assert first.body is not None
    again = await world.exchange.request(head, first.body)
    assert (again.outcome, again.body) == (Outcome.ALREADY_INJECTED, None)
    assert again.ticket == first.ticket


async def test_the_same_memories_give_the_same_bytes() -> None:
    world = World()
    await world.knows(BUDGET)
    await world.knows("User flies to Hawaii for the trip in June")
    assert (await world.ask()).body == (await world.ask()).body


@pytest.mark.parametrize(("model", "role"), [("o1", "user"), ("vendor/O1-mini", "user"), ("o10", "system")])
async def test_a_model_that_refuses_a_system_message_gets_role_user(model: str, role: str) -> None:
    world = World()
    await world.knows(BUDGET)
    result = await world.ask({"model": model, "messages": [{"role": "user", "content": QUESTION}]})
    assert json.loads(result.body or b"")["messages"][0]["role"] == role


async def test_somebody_who_writes_the_markers_is_answered_like_anybody() -> None:
    world = World()
    await world.knows(BUDGET)
    result = await world.ask(f"<semmem-memory> </semmem-memory> {QUESTION}")
    assert result.outcome is Outcome.INJECTED


async def test_nobody_meets_somebody_elses_memories() -> None:
    world = World()
    await world.knows(BUDGET, user="bob")
    result = await world.ask()
    assert (result.outcome, result.body) == (Outcome.NO_HITS, None)


async def test_the_turn_is_journalled_before_the_search_and_joined_by_its_ticket() -> None:
    world = World()
    result = await world.ask(x_session_id="s1", x_request_id="r1", x_project_id="p1")
    [turn] = world.turns
    assert turn.user_text == QUESTION
    assert turn.scope == Scope("alice", project="p1", session="s1")
    assert (turn.ordinal, turn.opened_at, turn.request_id) == (1, NOW, "r1")
    assert result.ticket == Ticket(turn.id, "chat")


@pytest.mark.parametrize(("name", "kept"), [("org/model-7b", "org/model-7b"), ("a\nb", ""), ("m" * 2000, ""), (7, "")])
async def test_a_turn_says_which_model_was_asked(name: object, kept: str) -> None:
    world = World()
    await world.ask({"model": name, "messages": [{"role": "user", "content": QUESTION}]})
    assert [turn.model for turn in world.turns] == [kept]


async def test_a_retry_is_the_same_turn_and_the_next_words_are_another() -> None:
    world = World()
    await world.ask("I like tea")
    await world.ask("I like tea")
    more = [
        {"role": "user", "content": "I like tea"},
        {"role": "assistant", "content": "Good."},
        {"role": "user", "content": "I like tea"},
    ]
    await world.ask({"messages": more})
    first, retry, next_one = world.turns
    assert first.id == retry.id
    assert next_one.id != first.id
    assert next_one.scope.session == first.scope.session
    assert next_one.ordinal == 2


async def test_a_tool_result_continues_the_turn() -> None:
    world = World()
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [{"role": "user", "content": "How warm is it?"}]
    await world.ask({"messages": messages})
    messages += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "I live in 20 degrees"},
    ]
    result = await world.ask({"messages": messages})
    assert result.outcome is Outcome.TOOL_TURN
    assert len({turn.id for turn in world.turns}) == 1
    assert all(turn.user_text == "How warm is it?" for turn in world.turns)


async def test_a_greeting_is_not_searched_for_but_journalled() -> None:
    world = World()
    await world.knows("User says hello to everybody")
    result = await world.ask("Hello!")
    assert result.outcome is Outcome.GREETING
    assert result.body is None
    assert len(world.turns) == 1


@pytest.mark.parametrize("outcome", [Outcome.GREETING, Outcome.GENERAL_FACT])
async def test_what_is_decided_of_the_request_is_an_outcome_and_the_turn_is_still_learnt_from(outcome: Outcome) -> None:
    world = World()
    await world.knows(BUDGET)
    world.decision.word = outcome.value
    result = await world.ask()
    assert (result.outcome, result.body, result.injected) == (outcome, None, 0)
    assert len(world.turns) == 1


async def test_nobody_known_means_no_memory_and_no_journal() -> None:
    world = World()
    await world.knows(BUDGET)
    head = RequestHead("POST", "/v1/chat/completions", {})
    result = await world.exchange.request(head, as_body(QUESTION))
    assert (result.outcome, result.body, result.ticket, world.turns) == (Outcome.ANONYMOUS, None, None, [])


@pytest.mark.parametrize("headers", [{"x_semmem_memory": "off"}, {"x_disable_router_memory": "true"}])
async def test_opting_out_stops_reading_and_storing(headers: dict[str, str]) -> None:
    world = World()
    await world.knows(BUDGET)
    result = await world.ask(**headers)
    assert (result.outcome, result.body, result.ticket, world.turns) == (Outcome.OPTED_OUT, None, None, [])


async def test_reading_only_stores_nothing_and_writing_only_injects_nothing() -> None:
    world = World()
    await world.knows(BUDGET)
    read = await world.ask(x_semmem_memory="read")
    assert (read.outcome, read.ticket, world.turns) == (Outcome.INJECTED, None, [])
    write = await world.ask(x_semmem_memory="write")
    assert (write.outcome, write.body, len(world.turns)) == (Outcome.WRITE_ONLY, None, 1)


@pytest.mark.parametrize(
    ("switch", "outcome", "switched", "injected", "stored"),
    [
        (Switch(), Outcome.INJECTED, "", 1, 1),
        (Switch(reading=False), Outcome.READING_OFF, "reading", 0, 1),
        (Switch(storing=False), Outcome.INJECTED, "storing", 1, 0),
        (Switch(reading=False, storing=False), Outcome.SWITCHED_OFF, "both", 0, 0),
    ],
)
async def test_a_switch_stops_reading_storing_or_both(
    switch: Switch, outcome: Outcome, switched: str, injected: int, stored: int
) -> None:
    world = World(switches=Switches([SwitchRow(user_key("alice"), "", switch, 1, NOW)]))
    await world.knows(BUDGET)
    result = await world.ask()
    assert (result.outcome, result.switched, result.injected) == (outcome, switched, injected)
    assert (len(world.turns), result.ticket is not None) == (stored, bool(stored))
    assert len(world.journal.declined) == 1 - stored  # nor is it learnt from a later request's history


async def test_who_wants_to_write_alone_is_not_told_of_a_switch() -> None:
    switches = Switches([SwitchRow(user_key("alice"), "", Switch(reading=False), 1, NOW)])
    result = await World(switches=switches).ask(x_semmem_memory="write")
    assert (result.outcome, result.switched) == (Outcome.WRITE_ONLY, "")


@pytest.mark.parametrize("permissions", [PermissionRules(), PermissionRules(enabled=False)])
async def test_semmems_own_members_never_reach_the_model(permissions: PermissionRules) -> None:
    world = World(permissions)
    body = {
        "memory_config": {"enabled": False},
        "messages": [{"role": "user", "content": QUESTION}],
        "memory_context": {"user_id": "x"},
    }
    result = await world.ask(body)
    assert result.outcome is Outcome.OPTED_OUT
    assert json.loads(result.body or b"") == {"model": "m", "messages": body["messages"]}


async def test_limit_types_and_threshold_of_the_request_are_honoured() -> None:
    world = World()
    await world.knows(BUDGET)
    await world.knows("User's budget for the Hawaii trip was $9,000 once")

    async def ask(**config: Any) -> RequestResult:
        return await world.ask({"messages": [{"role": "user", "content": QUESTION}], "memory_config": config})

    assert (await ask(retrieval_limit=1)).injected == 1
    assert (await ask(retrieval_limit=0)).outcome is Outcome.NO_HITS
    assert (await ask(similarity_threshold=0.99)).outcome is Outcome.NO_HITS
    assert (await ask(memory_types=["procedural"])).outcome is Outcome.NO_HITS
    assert (await ask(memory_types=["no such type"])).outcome is Outcome.NO_HITS
    assert (await ask(memory_types=["semantic"])).injected == 2


async def test_the_newest_are_shown_whatever_cosine_is_asked_of_others() -> None:
    world = World(
        rules=RecallRules(threshold=0.99, strategy=Strategy.RECENT, embed_timeout_s=10.0, store_timeout_s=10.0)
    )
    await world.knows(BUDGET)
    result = await world.ask({"messages": [{"role": "user", "content": "Which instrument do I play?"}]})
    assert (result.outcome, result.injected) == (Outcome.INJECTED, 1)


async def test_a_project_narrows_what_is_read_and_none_means_all() -> None:
    world = World()
    await world.knows(BUDGET, project="travel")
    assert (await world.ask()).outcome is Outcome.INJECTED
    assert (await world.ask(x_project_id="travel")).outcome is Outcome.INJECTED
    assert (await world.ask(x_project_id="work")).outcome is Outcome.NO_HITS


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(StoreUnavailable("down"), Outcome.STORE_DOWN), (StoreTimeout("slow"), Outcome.STORE_TIMEOUT)],
)
async def test_a_store_that_fails_costs_the_memories_and_nothing_else(error: Exception, outcome: Outcome) -> None:
    world = World()
    world.store.error = error
    result = await world.ask()
    assert (result.outcome, result.body) == (outcome, None)
    assert result.ticket is not None


async def test_a_store_that_hangs_costs_the_phase_and_nothing_else() -> None:
    world = World(phase_s=0.02)
    world.store.delay_s = world.store.list_delay_s = 60.0
    result = await world.ask()
    assert (result.outcome, result.body) == (Outcome.TIMEOUT, None)


async def test_memories_that_are_not_loaded_in_time_are_searched_for_by_the_store() -> None:
    world = World(rules=replace(PATIENT, store_timeout_s=1.0))
    await world.knows(BUDGET)
    world.store.list_delay_s = 60.0
    result = await world.ask()
    assert result.outcome is Outcome.COLD_DENSE
    assert BUDGET in prompt(result)
    assert (await world.ask("Where does my uncle live?")).outcome is Outcome.NO_HITS


async def test_a_question_that_cannot_be_embedded_in_time_is_found_by_its_words() -> None:
    world = World()
    await world.knows(BUDGET)
    world.embedder.busy = True
    result = await world.ask("What is my budget for the Hawaii trip?")
    assert result.outcome is Outcome.EMBEDDER_BUSY
    assert BUDGET in prompt(result)
    nobody = World()
    nobody.embedder.busy = True
    assert (await nobody.ask()).outcome is Outcome.EMBEDDER_BUSY


async def test_memories_without_vectors_are_found_by_their_words() -> None:
    """As long as they are of another model."""
    world = World()
    await world.knows(BUDGET)
    [memory] = await world.store.list(Scope("alice"))
    await world.store.forget(Scope("alice"), memory.id)
    await world.store.put(Scope("alice"), replace(memory, embedding=None))
    result = await world.ask("What is my budget for the Hawaii trip?")
    assert result.outcome is Outcome.EMBEDDER_BUSY
    assert BUDGET in prompt(result)


async def test_without_an_embedder_the_newest_memories_stand_in() -> None:
    world = World()
    world.embedder.failing = True
    assert (await world.ask()).outcome is Outcome.EMBEDDER_DOWN
    await world.knows(BUDGET)
    result = await world.ask("Anything new?")
    assert result.outcome is Outcome.DEGRADED
    assert BUDGET in prompt(result)
    await world.knows("User has a cat called Turing")
    assert "Turing" not in prompt(await world.ask("What is my budget for the Hawaii trip?"))
    assert "Turing" in prompt(await world.ask("Anything new?"))
    for config in ({"retrieval_limit": 0}, {"memory_types": ["no such type"]}):
        asked = {"messages": [{"role": "user", "content": "Anything new?"}], "memory_config": config}
        assert (await world.ask(asked)).outcome is Outcome.NO_HITS


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'{"messages": 1}', b'{"messages": []}', b'{"model": "\xff"}', b"x" * 100]
)
async def test_what_is_not_a_request_passes_as_it_came(body: bytes) -> None:
    result = await World().ask(body)
    assert result == RequestResult(Outcome.MALFORMED)


async def test_a_body_over_the_limit_passes_as_it_came() -> None:
    assert await World(request_body_bytes_max=20).ask() == RequestResult(Outcome.OVERSIZE)


def test_headers_alone_can_refuse_a_request() -> None:
    exchange = World(request_body_bytes_max=1000).exchange

    def outcome(method: str = "POST", path: str = "/v1/chat/completions", **headers: str) -> Outcome | None:
        sent = {name.replace("_", "-"): (value,) for name, value in headers.items()}
        refusal = exchange.refuses(RequestHead(method, path, sent))
        return refusal.outcome if refusal else None

    assert outcome() is None
    assert outcome(path="/v1/chat/completions?x=1") is None
    assert outcome(content_length="1000") is None
    assert outcome(content_length="1001") is Outcome.OVERSIZE
    assert outcome(content_length="9" * 5000) is Outcome.OVERSIZE
    assert outcome(content_length="²") is None
    assert outcome(content_length="-5") is None
    assert outcome(content_encoding="gzip") is Outcome.COMPRESSED
    assert outcome(path="/v1/embeddings") is Outcome.OTHER_PATH
    assert outcome(method="GET") is Outcome.OTHER_PATH


async def test_a_full_journal_leaves_no_ticket() -> None:
    world = World()
    world.journal.full = True
    assert (await world.ask()).ticket is None


async def test_what_is_journalled_can_be_stored_anywhere() -> None:
    world = World()
    await world.ask(b'{"messages":[{"role":"user","content":"a\\u0000b \\ud83d c"}]}')
    [turn] = world.turns
    turn.user_text.encode()
    assert "\x00" not in turn.user_text
    assert "b" in turn.user_text
    assert "c" in turn.user_text


# --- the answer ------------------------------------------------------------------------------------------------------


def observe(
    world: World, chunks: list[bytes], status: int = 200, encoding: str = "", kind: str = "application/json"
) -> str:
    observation = world.exchange.response(
        Ticket("t1", "chat"), status=status, content_type=kind, content_encoding=encoding
    )
    for chunk in chunks:
        observation.feed(chunk)
    return observation.end()


def reply(content: str | None, finish_reason: str = "stop") -> list[bytes]:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish_reason}
    return [json.dumps({"choices": [choice]}).encode()]


async def test_a_whole_answer_closes_the_turn() -> None:
    world = World()
    assert observe(world, reply("It is $10,000.")) == "answered"
    assert list(world.journal) == [TurnClosed("t1", TurnEnding.ANSWERED, NOW, "It is $10,000.", "stop")]


async def test_a_compressed_answer_closes_the_turn() -> None:
    world = World()
    packed = gzip.compress(reply("It is $10,000.")[0])
    assert observe(world, [packed[:7], packed[7:]], encoding="gzip") == "answered"
    assert [half.answer for half in world.journal if isinstance(half, TurnClosed)] == ["It is $10,000."]


async def test_an_answer_in_an_unknown_encoding_has_a_word_of_its_own_and_is_lost() -> None:
    world = World()
    assert observe(world, reply("x"), encoding="snappy") == "unknown_encoding"
    assert [half.status for half in world.journal if isinstance(half, TurnClosed)] == ["answer_lost"]


async def test_a_streamed_answer_closes_the_turn() -> None:
    world = World()
    events = [b'data: {"choices":[{"index":0,"delta":{"content":"It is "}}]}\n\n']
    events += [b'data: {"choices":[{"index":0,"delta":{"content":"ten"},"finish_reason":"stop"}]}\n\n']
    assert observe(world, events, kind="text/event-stream; charset=utf-8") == "answered"
    assert observe(world, events[:1], kind="text/event-stream") == "answer_lost"
    assert [half.answer for half in world.journal if isinstance(half, TurnClosed)] == ["It is ten", None]


@pytest.mark.parametrize("status", [400, 401, 429])
async def test_a_refused_request_is_not_learnt_from(status: int) -> None:
    world = World()
    assert observe(world, reply("no"), status=status) == "refused"
    assert [half.status for half in world.journal if isinstance(half, TurnClosed)] == ["refused"]


async def test_a_filtered_answer_is_not_learnt_from() -> None:
    assert observe(World(), reply("", "content_filter")) == "refused"


@pytest.mark.parametrize(
    ("chunks", "status", "encoding", "kind"),
    [
        (reply("x"), 500, "", "application/json"),
        (reply("x"), 302, "", "application/json"),
        ([b"{"], 200, "", "application/json"),
        ([], 200, "", "application/json"),
        (reply("x"), 200, "gzip", "application/json"),
        ([gzip.compress(reply("x")[0])[:-20]], 200, "gzip", "application/json"),
        (reply("x"), 200, "", "text/html"),
        (reply("x"), 0, "", "application/json"),
    ],
)
async def test_an_answer_that_cannot_be_read_is_lost_but_the_users_words_are_not(
    chunks: list[bytes], status: int, encoding: str, kind: str
) -> None:
    assert observe(World(), chunks, status, encoding, kind) == "answer_lost"


async def test_a_call_of_a_tool_leaves_the_turn_open() -> None:
    world = World()
    assert observe(world, reply(None, "tool_calls")) == "continues"
    assert list(world.journal) == []


@pytest.mark.parametrize(
    ("status", "text", "calls_tool", "filtered", "complete"),
    [
        ("continues", "Let me look.", True, False, True),
        ("refused", "", False, True, False),
        ("answered", "Ten.", False, False, True),
        ("answer_lost", "Te", False, False, False),
    ],
)
async def test_how_an_answer_ended_is_one_word(
    status: str, text: str, calls_tool: bool, filtered: bool, complete: bool
) -> None:
    class Reader:
        def feed(self, chunk: bytes) -> None: ...

        def end(self) -> Answer:
            return Answer(text=text, complete=complete, filtered=filtered, calls_tool=calls_tool)

    ended: list[str] = []

    def close(ticket: Ticket, ending: TurnEnding, answer: Answer | None, *, failed: bool) -> None:
        ended.append(ending)

    decoder = decoder_for("", decoded_bytes_max=1)
    observation = Observation(Ticket("t", "chat"), 200, decoder, Reader(), close)
    assert observation.end() == status
    assert ended == [status]


# --- conversations that the API keeps --------------------------------------------------------------------------------


async def respond(world: World, ticket: Ticket | None, answer_id: str, **output: Any) -> None:
    assert ticket is not None
    item = {"type": "message", "content": [{"type": "output_text", "text": "Yes."}]} | output
    body = {"id": answer_id, "status": "completed", "output": [item]}
    observation = world.exchange.response(ticket, status=200, content_type="application/json", content_encoding="")
    observation.feed(json.dumps(body).encode())
    observation.end()


async def ask_on(world: World, **members: Any) -> RequestResult:
    head = RequestHead("POST", "/v1/responses", {"x-user-id": ("alice",)})
    return await world.exchange.request(head, json.dumps({"model": "m"} | members).encode())


async def test_a_chain_of_responses_is_one_session_and_the_same_words_are_another_turn() -> None:
    world = World()
    first = await ask_on(world, input="yes")
    await respond(world, first.ticket, "resp_1")
    second = await ask_on(world, input="yes", previous_response_id="resp_1")
    await respond(world, second.ticket, "resp_2")
    retried = await ask_on(world, input="yes", previous_response_id="resp_1")
    assert first.ticket != second.ticket
    assert second.ticket == retried.ticket
    assert len({turn.scope.session for turn in world.turns}) == 1


async def test_the_same_words_in_a_named_conversation_are_a_retry_only_until_they_are_answered() -> None:
    world = World()
    first = await ask_on(world, input="yes", conversation="conv_1")
    retried = await ask_on(world, input="yes", conversation="conv_1")
    await respond(world, first.ticket, "resp_1")
    second = await ask_on(world, input="yes", conversation="conv_1")
    assert first.ticket == retried.ticket
    assert second.ticket != first.ticket
    assert {turn.scope.session for turn in world.turns} == {"conv_1"}


@pytest.mark.parametrize("chain", [{"previous_response_id": "resp_1"}, {"conversation": "conv_1"}])
async def test_a_tools_result_extends_the_turn_it_answers(chain: dict[str, str]) -> None:
    world = World()
    named = {"conversation": chain["conversation"]} if "conversation" in chain else {}
    first = await ask_on(world, input="How warm is it?", **named)
    await respond(world, first.ticket, "resp_1", type="function_call", name="f", call_id="c", arguments="{}")
    output = [{"type": "function_call_output", "call_id": "c", "output": "20 degrees"}]
    assert (await ask_on(world, input=output, **chain)).ticket == Ticket(world.turns[0].id, "responses")
    assert len(world.turns) == 1


# --- other ways to capture it ----------------------------------------------------------------------------------------


def history(*said: str) -> dict[str, Any]:
    """User and assistant in turn."""
    return {"messages": [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(said)]}


async def test_from_history_the_next_request_closes_the_turn_before_it() -> None:
    world = World(capture="history")
    first = await world.ask(history("I like tea"))
    second = await world.ask(history("I like tea", "Noted.", "And milk"))
    assert (first.ticket, second.ticket) == (None, None)
    assert [turn.user_text for turn in world.turns] == ["I like tea", "And milk"]
    [closed] = [half for half in world.journal if isinstance(half, TurnClosed)]
    assert (closed.turn_id, closed.status, closed.answer) == (world.turns[0].id, "answered", "Noted.")


async def test_a_turn_captured_in_two_ways_is_one_turn(tmp_path: Path) -> None:
    journal = SqlJournal(tmp_path / "journal.db")
    await journal.open()
    for capture in ("history", "observe"):
        world = World(capture=capture)
        await world.ask(history("I like tea"), x_session_id="s")
        await world.ask(history("I like tea", "Noted.", "And milk"), x_session_id="s")
        if capture == "observe":
            observed = world.exchange.response(
                Ticket(world.turns[0].id, "chat"), status=200, content_type="application/json", content_encoding=""
            )
            observed.feed(reply("Noted.")[0])
            observed.end()
        await journal.record(world.turns, [half for half in world.journal if isinstance(half, TurnClosed)])
    await journal.end_session("alice", "s", now=NOW)
    batch = await journal.claim(BatchRules(), now=NOW)
    assert batch is not None
    assert [(turn.user_text, turn.answer) for turn in batch.turns] == [("I like tea", "Noted."), ("And milk", None)]
    await journal.close()


async def test_without_capture_the_users_words_are_journalled_all_the_same() -> None:
    world = World(capture="off")
    assert (await world.ask(history("I like tea", "Noted.", "And milk"))).ticket is None
    assert [type(half) for half in world.journal] == [Turn]


# --- models that take longer than a search ---------------------------------------------------------------------------


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


FOLLOW_UP = {"messages": [{"role": "user", "content": text} for text in ("The trip to Hawaii", "How much?")]}


def thinking(takes_s: float, timeout_s: float = 5.0) -> World:
    writer = QueryWriter(Thinking(QUESTION, takes_s), mode="rewrite", timeout_s=timeout_s)
    return World(writer=writer, phase_s=0.1)


async def test_a_model_may_take_longer_than_the_phase_and_the_door_is_told() -> None:
    world = thinking(0.3)
    await world.knows(BUDGET)
    told: list[float] = []

    async def extend_deadline(extra_s: float) -> None:
        told.append(extra_s)

    head = RequestHead("POST", "/v1/chat/completions", {"x-user-id": ("alice",)})
    result = await world.exchange.request(head, as_body(FOLLOW_UP), extend_deadline=extend_deadline)
    assert result.outcome is Outcome.INJECTED
    assert told == [5.0]
    assert (
        await world.exchange.request(head, as_body(QUESTION), extend_deadline=extend_deadline)
    ).outcome is Outcome.INJECTED
    assert told == [5.0]


async def test_a_model_that_takes_too_long_costs_its_own_time_only() -> None:
    world = thinking(30, timeout_s=0.1)
    await world.knows(BUDGET)
    started = asyncio.get_running_loop().time()
    result = await world.ask(FOLLOW_UP)
    assert result.outcome is Outcome.INJECTED
    assert asyncio.get_running_loop().time() - started < 5


@pytest.mark.parametrize(
    ("scope", "told"),
    [("user", {"red", "blue", "green"}), ("project", {"red", "blue"}), ("session", {"red"})],
)
async def test_the_configured_scope_says_whose_memories_are_read(scope: str, told: set[str]) -> None:
    world = World(rules=RecallRules(threshold=0.2, scope=scope))
    await world.knows("User's budget for Hawaii is red", project="trip", session="s1")
    await world.knows("User's budget for Hawaii is blue", project="trip", session="s2")
    await world.knows("User's budget for Hawaii is green", project="other", session="s1")
    await world.knows("User's budget for Hawaii is black", user="bob", project="trip", session="s1")
    told_here = prompt(await world.ask(x_project_id="trip", x_session_id="s1"))
    assert {colour for colour in ("red", "blue", "green", "black") if colour in told_here} == told
    assert (await world.ask(x_project_id="none such", x_session_id="s3")).injected == (3 if scope == "user" else 0)
