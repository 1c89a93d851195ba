"""The REST API: shapes, access, and that nobody reaches somebody else's memories."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import httpx
import pytest

from semmem.backends.in_process import InProcessStore
from semmem.backends.sql.journal import SqlJournal
from semmem.extraction.comparing import Comparing
from semmem.extraction.dedup import Dedup
from semmem.extraction.storing import Storing
from semmem.extraction.unlearning import Undoing
from semmem.lifecycle.holds import Holds
from semmem.lifecycle.quota import Quota
from semmem.management.access import AccessRules
from semmem.management.api import create_api
from semmem.management.curation import Curation, curation_routes
from semmem.management.memories import Memories
from semmem.management.retrieval import scored
from semmem.memory import Memory, MemoryType, Scope, Turn, Vector
from semmem.ports.errors import EmbedderBusy, EmbedderError, JournalError, SemmemError, StoreTimeout, StoreUnavailable
from semmem.ports.learning import BatchRules
from semmem.ports.memory_records import Uses
from semmem.ports.models import LanguageModel
from semmem.retrieval.rank import Ranked
from semmem.retrieval.recall import Recall, RecallRules
from semmem.telemetry.metrics import Metrics
from semmem.upkeep.consolidation import Consolidator
from semmem.upkeep.reflections import ReflectionRules, Reflector
from semmem.upkeep.summaries import Summariser, SummaryRules
from tests.core.retrieval.talk import hit
from tests.support.counted import counting
from tests.support.decisions import Decided
from tests.support.described import described_client
from tests.support.erasing import Erasing
from tests.support.fakes import HashEmbedder, hot
from tests.support.telling_judge import judge

ADMIN = {"authorization": "Bearer secret-token"}
ALICE = {"x-user-id": "alice"}
JSON = {"content-type": "application/json"}
NOW = 1_800_000_000.0


def life(store: InProcessStore, journal: SqlJournal, model: LanguageModel | None = None) -> Curation:
    consolidator = Consolidator(store, journal, cosine_min=0.7)
    rules = SummaryRules(cosine_min=0.3, size_min=2)
    summariser = Summariser(store, journal, HashEmbedder(), model, rules)
    reflector = Reflector(store, journal, HashEmbedder(), model, ReflectionRules())
    dedup = Dedup(Comparing(store, judge=judge), journal)
    holds = Holds(journal, clock=lambda: NOW)
    undoing = Undoing(store, journal, Storing(HashEmbedder(), dedup))
    return Curation(
        store,
        journal,
        dedup,
        undoing,
        consolidator,
        summariser,
        reflector,
        clock=lambda: NOW,
        holds=holds,
        hold_wait_s=0.0,
    )


class Breakable(InProcessStore):
    """Fails with ``fails`` whatever it is to read."""

    fails: SemmemError | None = None

    async def get(self, scope: Scope, memory_id: str) -> Memory | None:
        self._may_fail()
        return await super().get(scope, memory_id)

    async def list(
        self, scope: Scope, *, types: Sequence[MemoryType] = (), limit: int = 100, offset: int = 0, vectors: bool = True
    ) -> list[Memory]:
        self._may_fail()
        return await super().list(scope, types=types, limit=limit, offset=offset, vectors=vectors)

    def _may_fail(self) -> None:
        if self.fails is not None:
            raise self.fails


class NotingEmbedder(HashEmbedder):
    """Knows what it was asked, and fails with ``fails``."""

    fails: EmbedderError | None = None

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def embed(self, text: str, *, within_s: float | None = None) -> Vector:
        self.asked.append(text)
        if self.fails is not None:
            raise self.fails
        return await super().embed(text, within_s=within_s)


class Api:
    """The application, called over ASGI, and what stands behind it."""

    def __init__(self, journal: SqlJournal) -> None:
        self.store = Breakable()
        self.journal = journal
        self.metrics = Metrics()
        quota = Quota(self.store, journal, memories_max=5)
        self.decision = Decided()
        self.questions = NotingEmbedder()
        recall = Recall(hot(self.store), self.questions, RecallRules(threshold=0.2), decision=self.decision)
        self.erasing = Erasing(self.store, journal, clock=lambda: NOW)
        self.embedder = NotingEmbedder()
        self.memories = Memories(
            self.erasing.store,
            self.embedder,
            journal,
            quota,
            recall,
            clock=lambda: NOW,
            erasure=self.erasing.erasure,
            holds=self.erasing.holds,
            after=self.erasing.after,
        )
        access = AccessRules(admin_token="secret-token", trusted_headers=("x-user-id",))
        self.life = life(self.store, journal)
        self.app = create_api(self.memories, access, announce=counting(self.metrics), more=[curation_routes(self.life)])
        self.client = described_client(self.app)

    async def add(self, content: str, user: str = "alice", **fields: Any) -> dict[str, Any]:
        response = await self.client.post(
            "/v1/memory", json={"content": content, "user_id": user, **fields}, headers=ADMIN
        )
        assert response.status_code == 201, response.text
        created: dict[str, Any] = response.json()
        return created


async def test_a_created_memory_is_shown_as_it_is(api: Api) -> None:
    created = await api.add("User likes tea", type="semantic", project_id="p", metadata={"a": 1}, importance=0.9)
    got = (await api.client.get(f"/v1/memory/{created['id']}", params={"user_id": "alice"}, headers=ADMIN)).json()
    assert got == created
    assert got["id"].startswith("mem_")
    assert {name: got[name] for name in ("version", "type", "content", "user_id", "project_id", "status")} == {
        "version": 1,
        "type": "semantic",
        "content": "User likes tea",
        "user_id": "alice",
        "project_id": "p",
        "status": "active",
    }
    assert got["created_at"] == "2027-01-15T08:00:00.000Z"
    assert got["source"]["role"] == "api"


async def test_what_is_told_in_quotes_is_embedded_by_its_words_alone(api: Api) -> None:
    created = await api.add('"green tea with lemon"')
    assert created["content"] == '"green tea with lemon"'
    assert api.embedder.asked == ["green tea with lemon"]


async def test_a_list_is_paged_newest_first_with_its_total(api: Api) -> None:
    for number in range(5):
        await api.add(f"User has memory {number}", type="procedural" if number % 2 else "semantic")
    params: dict[str, Any] = {"user_id": "alice", "limit": 2, "offset": 1}
    page = (await api.client.get("/v1/memory", params=params, headers=ADMIN)).json()
    assert (len(page["memories"]), page["total"], page["limit"], page["offset"], page["page"]) == (2, 5, 2, 1, 1)
    numbers: dict[str, int | None] = {
        "offset=2&limit=2": 2,
        "offset=4&limit=2": 3,
        "page=3&limit=2": 3,
        "": 1,
        f"cursor={page['next_cursor']}": None,
    }
    for asked, expected in numbers.items():
        assert (await api.client.get(f"/v1/memory?user_id=alice&{asked}", headers=ADMIN)).json()["page"] == expected
    typed = (
        await api.client.get("/v1/memory", params={"user_id": "alice", "type": "procedural"}, headers=ADMIN)
    ).json()
    assert typed["total"] == 2


async def test_the_same_key_is_the_same_memory_in_a_new_version(api: Api) -> None:
    first = await api.add("User lives in Porto", key="home")
    second = await api.add("User lives in Lisbon", key="home")
    other = await api.add("User lives in Oslo", user="bob", key="home")
    assert (second["id"], second["version"]) == (first["id"], 2)
    assert other["id"] != first["id"]
    history = await api.client.get(f"/v1/memory/{first['id']}/history", params={"user_id": "alice"}, headers=ADMIN)
    assert [version["content"] for version in history.json()["versions"]] == ["User lives in Porto"]


async def test_beyond_the_limit_the_least_valuable_goes(api: Api) -> None:
    for number in range(6):
        await api.add(f"User has memory {number}", importance=0.1 if number == 3 else 0.5)
    listed = (await api.client.get("/v1/memory", params={"user_id": "alice"}, headers=ADMIN)).json()["memories"]
    assert {memory["content"] for memory in listed} == {f"User has memory {number}" for number in (0, 1, 2, 4, 5)}


async def test_search_tells_the_cosine(api: Api) -> None:
    await api.add("User likes green tea")
    await api.add("User drives a truck")
    query = {"query": "green tea", "user_id": "alice"}
    found = (await api.client.post("/v1/memory/search", json=query, headers=ADMIN)).json()
    assert [memory["content"] for memory in found["memories"]] == ["User likes green tea", "User drives a truck"]
    best, other = found["memories"]
    assert best["score"] > other["score"]
    assert 0.2 <= best["cosine"] <= 1
    assert best["keyword"] > 0
    assert best["score"] >= best["cosine"]
    assert (found["strategy"], found["path"]) == ("hybrid", "hot")


async def test_a_search_finds_what_says_the_very_same(api: Api) -> None:
    await api.add("User likes green tea")
    query = {"query": "User likes green tea", "user_id": "alice"}
    assert (await api.client.post("/v1/memory/search", json=query, headers=ADMIN)).json()["total"] == 1


@pytest.mark.parametrize("query", ["birthplace", "hello", "zzz"])
async def test_a_search_gives_the_best_whatever_a_request_would_be_shown(api: Api, query: str) -> None:
    for content in ("User was born in Leeds", "User drives a truck", "User likes tea"):
        await api.add(content)
    asked = {"query": query, "user_id": "alice", "limit": 2}
    previewed = (await api.client.post("/v1/memory/preview", json=asked, headers=ADMIN)).json()
    assert not any(memory["kept"] for memory in previewed["memories"])
    found = (await api.client.post("/v1/memory/search", json=asked, headers=ADMIN)).json()
    scores = [memory["score"] for memory in found["memories"]]
    assert len(scores) == 2
    assert scores == sorted(scores, reverse=True)


async def test_a_search_without_the_embedder_gives_what_shares_a_word(api: Api) -> None:
    for content in ("User was born in Leeds", "User drives a truck"):
        await api.add(content)
    api.questions.fails = EmbedderError("no model")
    asked = {"query": "is there any street, any lake or any hill in leeds that matters", "user_id": "alice"}
    found = (await api.client.post("/v1/memory/search", json=asked, headers=ADMIN)).json()
    assert [memory["content"] for memory in found["memories"]] == ["User was born in Leeds"]


async def test_a_search_with_a_threshold_gives_nothing_below_it(api: Api) -> None:
    for content in ("User likes green tea", "User drives a truck"):
        await api.add(content)
    asked = {"query": "green tea", "user_id": "alice", "threshold": 0.2}
    found = (await api.client.post("/v1/memory/search", json=asked, headers=ADMIN)).json()
    assert [memory["content"] for memory in found["memories"]] == ["User likes green tea"]


async def test_a_search_in_a_project_finds_what_belongs_to_none(api: Api) -> None:
    await api.add("User likes green tea")
    await api.add("User likes black tea in the tea room", project_id="here")
    await api.add("User likes no tea in the garden", project_id="there")
    asked = {"query": "tea", "user_id": "alice", "project_id": "here"}
    found = (await api.client.post("/v1/memory/search", json=asked, headers=ADMIN)).json()
    assert {memory["content"] for memory in found["memories"]} == {
        "User likes green tea",
        "User likes black tea in the tea room",
    }


async def test_a_preview_says_of_each_memory_why_it_was_kept_or_cut(api: Api) -> None:
    for content in ("User likes green tea", "User drives a truck", "User likes green tea very much"):
        await api.add(content)
    asked = {"query": "Which green tea do I like?", "user_id": "alice", "limit": 1}
    found = (await api.client.post("/v1/memory/preview", json=asked, headers=ADMIN)).json()
    verdicts = {memory["content"]: memory["reason"] for memory in found["memories"]}
    assert verdicts == {
        "User likes green tea": "kept",
        "User likes green tea very much": "limit",
        "User drives a truck": "below_threshold",
    }
    assert [memory["kept"] for memory in found["memories"]] == [True, False, False]
    assert "User likes green tea" in found["block"]
    assert "truck" not in found["block"]
    assert found["tokens"] > found["memories"][0]["tokens"] > 0
    assert (found["query"], found["gate"], found["strategy"], found["path"]) == (
        asked["query"],
        "search",
        "hybrid",
        "hot",
    )


async def test_a_preview_with_another_budget_shows_what_would_fit_into_that(api: Api) -> None:
    await api.add("User likes green tea")
    asked = {"query": "Which green tea do I like?", "user_id": "alice"}
    for budget, reason in ((0, "budget"), (16_000, "kept")):
        told = await api.client.post("/v1/memory/preview", json=asked | {"tokens_max": budget}, headers=ADMIN)
        assert [memory["reason"] for memory in told.json()["memories"]] == [reason]
        assert bool(told.json()["block"]) == (reason == "kept")
    beyond = await api.client.post("/v1/memory/preview", json=asked | {"tokens_max": 16_001}, headers=ADMIN)
    assert beyond.status_code == 400


async def test_a_preview_of_a_conversation_knows_what_was_said_and_what_the_gate_would_say(api: Api) -> None:
    await api.add("User likes green tea")
    said = [{"role": "user", "content": "I like green tea."}, {"role": "user", "content": "Which green tea do I like?"}]
    asked = {"messages": said, "user_id": "alice"}
    found = (await api.client.post("/v1/memory/preview", json=asked, headers=ADMIN)).json()
    assert [memory["reason"] for memory in found["memories"]] == ["already_said"]
    assert (found["block"], found["tokens"]) == ("", 0)
    hello = {"query": "hello", "user_id": "alice", "strategy": "recent"}
    found = (await api.client.post("/v1/memory/preview", json=hello, headers=ADMIN)).json()
    assert (found["gate"], found["strategy"], len(found["memories"])) == ("greeting", "recent", 1)


@pytest.mark.parametrize(
    ("error", "word"), [(EmbedderBusy("full"), "embedder_busy"), (EmbedderError("no model"), "embedder_down")]
)
async def test_a_preview_says_that_it_searched_by_words_for_want_of_a_vector(
    api: Api, error: EmbedderError, word: str
) -> None:
    await api.add("User likes green tea")
    asked = {"query": "Which green tea do I like?", "user_id": "alice"}
    assert (await api.client.post("/v1/memory/preview", json=asked, headers=ADMIN)).json()["unembedded"] is None
    api.questions.fails = error
    found = (await api.client.post("/v1/memory/preview", json=asked, headers=ADMIN)).json()
    assert (found["strategy"], found["unembedded"], len(found["memories"])) == ("keyword", word, 1)


async def test_a_preview_tells_what_was_decided_of_the_question(api: Api) -> None:
    await api.add("User likes green tea")
    asked = {"query": "Which green tea do I like?", "user_id": "alice"}
    found = (await api.client.post("/v1/memory/preview", json=asked, headers=ADMIN)).json()
    assert found["request"] == {"class": "recall", "log_odds": 0.0, "wants_memories": True, "lists_profile": False}
    api.decision.word = "general_fact"
    found = (await api.client.post("/v1/memory/preview", json=asked, headers=ADMIN)).json()
    assert (found["gate"], found["request"]["class"], found["request"]["wants_memories"]) == (
        "general_fact",
        "knowledge",
        False,
    )
    assert [memory["reason"] for memory in found["memories"]] == ["below_relevance"]


@pytest.mark.parametrize(("logit", "shown"), [(1.23456, 1.235), (None, None), (float("-inf"), None)])
def test_a_memorys_log_odds_are_shown_where_it_has_some(logit: float | None, shown: float | None) -> None:
    one = scored(Ranked(replace(hit("User likes tea"), logit=logit), True, "kept"))
    assert one.get("log_odds") == shown


@pytest.mark.parametrize("body", [{}, {"query": "tea", "messages": [{"role": "user", "content": "tea"}]}])
async def test_a_preview_is_of_a_question_or_of_a_conversation(api: Api, body: dict[str, Any]) -> None:
    answer = await api.client.post("/v1/memory/preview", json={"user_id": "alice", **body}, headers=ADMIN)
    assert answer.status_code == 400
    assert "give either query or messages" in answer.json()["error"]["message"]


async def test_a_preview_of_somebody_else_is_empty(api: Api) -> None:
    await api.add("User likes green tea")
    asked = {"query": "green tea"}
    found = (await api.client.post("/v1/memory/preview", json=asked, headers={"x-user-id": "bob"})).json()
    assert (found["memories"], found["block"]) == ([], "")


async def test_one_memory_can_be_forgotten(api: Api) -> None:
    first = await api.add("User lives in Porto", key="home")
    await api.add("User lives in Lisbon", key="home")
    url, params = f"/v1/memory/{first['id']}", {"user_id": "alice"}
    assert (await api.client.delete(url, params=params, headers=ADMIN)).json()["deleted"] == 1
    assert (await api.client.get(url, params=params, headers=ADMIN)).status_code == 404
    assert (await api.client.delete(url, params=params, headers=ADMIN)).status_code == 404
    assert await api.journal.versions(Scope("alice"), first["id"]) == []


async def test_forgetting_through_another_project_changes_nothing(api: Api) -> None:
    first = await api.add("User lives in Porto", key="home", project_id="p")
    await api.add("User lives in Lisbon", key="home", project_id="p")
    await api.journal.record_uses([("alice", first["id"], Uses(1, NOW))])
    url, params = f"/v1/memory/{first['id']}", {"user_id": "alice", "project_id": "q"}
    assert (await api.client.delete(url, params=params, headers=ADMIN)).status_code == 404
    assert len(await api.journal.versions(Scope("alice"), first["id"])) == 1
    assert await api.journal.uses("alice") == {first["id"]: Uses(1, NOW)}


async def test_a_scope_takes_history_and_statistics_with_it_and_says_so(api: Api) -> None:
    kept = await api.add("User likes green tea")
    home = await api.add("User lives in Porto", key="home", project_id="p", type="episodic")
    await api.add("User lives in Lisbon", key="home", project_id="p", type="episodic")
    await api.journal.record_uses([("alice", each["id"], Uses(1, NOW)) for each in (kept, home)])
    api.erasing.notes.note("alice", [kept["id"], home["id"]], NOW)
    await api.client.delete("/v1/memory", params={"user_id": "alice", "type": "episodic"}, headers=ADMIN)
    assert await api.journal.recorded_ids("alice") == {kept["id"]}
    assert len(api.erasing.notes) == 1
    await api.client.delete("/v1/memory", params={"user_id": "alice"}, headers=ADMIN)
    assert await api.journal.recorded_ids("alice") == set()
    assert await api.journal.users_due(maintained_before=NOW, limit=9) == []
    assert len(api.erasing.notes) == 0


async def test_a_scope_can_be_forgotten_with_what_waits_to_be_learnt(api: Api) -> None:
    await api.add("User likes tea", project_id="p")
    await api.add("User likes coffee")
    await api.add("User likes milk", user="bob")
    await api.journal.record([Turn("t", Scope("alice", session="s"), 1, "I like juice", NOW)], [])
    narrow = await api.client.delete("/v1/memory", params={"user_id": "alice", "project_id": "p"}, headers=ADMIN)
    assert narrow.json() == {
        "success": True,
        "message": "1 memory deleted",
        "deleted": 1,
        "receipt": {
            "turns": 0,
            "halves": 0,
            "batches": 0,
            "memories": 1,
            "versions": 0,
            "statistics": 0,
            "sentences": 0,
            "conversations": 0,
            "messages": 0,
            "passages": 0,
            "requests": 0,
            "aliases": 0,
        },
    }
    assert await api.journal.end_session("alice", "s", now=NOW) == 1
    await api.client.delete("/v1/memory", params={"user_id": "alice"}, headers=ADMIN)
    assert await api.store.count(Scope("alice")) == 0
    assert await api.journal.end_session("alice", "s", now=NOW) == 0
    assert await api.store.count(Scope("bob")) == 1


async def test_forgetting_a_type_leaves_the_others_and_the_turns(api: Api) -> None:
    await api.add("User likes tea", type="semantic")
    await api.add("User brews tea for three minutes", type="procedural")
    await api.journal.record([Turn("t", Scope("alice", session="s"), 1, "I like juice", NOW)], [])
    await api.client.delete("/v1/memory", params={"user_id": "alice", "type": "semantic"}, headers=ADMIN)
    assert await api.store.count(Scope("alice")) == 1
    assert await api.journal.end_session("alice", "s", now=NOW) == 1


async def test_a_session_can_be_forgotten_and_takes_nothing_along_that_was_said_elsewhere(api: Api) -> None:
    home = await api.add("User lives in Porto", key="home", session_id="s-1")
    await api.add("User lives in Lisbon", key="home", session_id="s-2")
    await api.add("User likes tea", session_id="s-1")
    turns = [Turn(f"t{n}", Scope("alice", session=f"s-{n}"), 1, "I like juice", NOW) for n in (1, 2)]
    await api.journal.record(turns, [])
    query = {"user_id": "alice", "session_id": "s-2"}
    gone = await api.client.delete("/v1/memory", params=query, headers=ADMIN)
    assert (gone.status_code, gone.json()["deleted"]) == (200, 1)
    left = await api.store.list(Scope("alice"), limit=9)
    assert {memory.content for memory in left} == {"User lives in Porto", "User likes tea"}
    assert await api.journal.versions(Scope("alice"), home["id"]) == []
    assert [await api.journal.end_session("alice", name, now=NOW) for name in ("s-1", "s-2")] == [1, 0]


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ({"session": "s-1"}, "query.session: "),
        ({"projectid": "p"}, "query.projectid: "),
        ({"x" * 5000: "p"}, f"query.{'x' * 60}: "),
        ({"all": "true", "session_id": "s-1"}, "query.session_id: "),
    ],
)
async def test_what_may_have_been_meant_to_narrow_a_deletion_is_refused(
    query: dict[str, str], place: str, api: Api
) -> None:
    memory = await api.add("User likes tea")
    user = {} if "all" in query else {"user_id": "alice"}
    for path in ["/v1/memory"] if "all" in query else ["/v1/memory", f"/v1/memory/{memory['id']}"]:
        answer = await api.client.delete(path, params={**user, **query}, headers=ADMIN)
        assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST")
        assert answer.json()["detail"].startswith(place)
    assert await api.store.count(Scope("alice")) == 1


async def one_piece(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def test_a_deletion_takes_no_body(api: Api) -> None:
    memory = await api.add("User likes tea")
    for path in ("/v1/memory", f"/v1/memory/{memory['id']}"):
        for content in (b'{"project_id": "p"}', one_piece(b"{}")):
            user = {"user_id": "alice"}
            answer = await api.client.request("DELETE", path, params=user, headers=ADMIN, content=content)
            assert (answer.status_code, answer.json()["detail"][:6]) == (400, "body: ")
    assert await api.store.count(Scope("alice")) == 1


async def test_ending_a_session_makes_its_turns_due(api: Api) -> None:
    await api.journal.record([Turn("t", Scope("alice", session="s/1"), 1, "I like juice", NOW)], [])
    assert await api.journal.claim(BatchRules(), now=NOW) is None
    response = await api.client.post("/v1/sessions/s%2F1/end", json={"user_id": "alice"}, headers=ADMIN)
    assert (response.status_code, response.json()) == (202, {"success": True, "turns": 1})
    batch = await api.journal.claim(BatchRules(), now=NOW)
    assert batch is not None
    assert batch.trigger == "end"


# --- access ----------------------------------------------------------------------------------------------------------


def every_call(memory_id: str, user: str | None) -> list[tuple[str, str, dict[str, Any]]]:
    params = {"params": {"user_id": user}} if user else {}
    named: dict[str, Any] = {"user_id": user} if user else {}
    return [
        ("GET", "/v1/memory", params),
        ("POST", "/v1/memory", {"json": {"content": "User likes tea", **named}}),
        ("DELETE", "/v1/memory", params),
        ("POST", "/v1/memory/search", {"json": {"query": "tea", **named}}),
        ("POST", "/v1/memory/preview", {"json": {"query": "tea", **named}}),
        ("GET", f"/v1/memory/{memory_id}", params),
        ("GET", f"/v1/memory/{memory_id}/history", params),
        ("PUT", f"/v1/memory/{memory_id}", {"json": {"importance": 0.9}, **params}),
        ("DELETE", f"/v1/memory/{memory_id}", params),
        ("POST", f"/v1/memory/{memory_id}/release", params),
        ("POST", f"/v1/memory/{memory_id}/undo", params),
        ("POST", "/v1/memory/consolidate", {"json": {"dry_run": False, **named}}),
        ("POST", "/v1/memory/summarize", {"json": named}),
        ("POST", "/v1/sessions/s/end", {"json": named}),
    ]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "Basic secret-token"},
        {"authorization": "Bearer "},
        {"x-user-id": " "},
        {"x-forwarded-user": "alice"},
    ],
)
async def test_nobody_gets_in_without_a_token_or_a_trusted_header(api: Api, headers: dict[str, str]) -> None:
    created = await api.add("User likes tea")
    for method, path, call in every_call(created["id"], "alice"):
        response = await api.client.request(method, path, headers=headers, **call)
        assert response.status_code == 401, (method, path)
        assert response.json()["error"]["code"] == "UNAUTHENTICATED"
    assert await api.store.count(Scope("alice")) == 1


async def test_a_user_reaches_only_their_own(api: Api) -> None:
    bobs = await api.add("User likes milk", user="bob")
    for method, path, call in every_call(bobs["id"], "bob"):
        response = await api.client.request(method, path, headers=ALICE, **call)
        if (method, path) == ("GET", "/v1/memory"):  # the proxy's header beats the query
            assert (response.status_code, response.json()["total"]) == (200, 0)
        else:
            assert response.status_code == 404, (method, path)
    for method, path in (("GET", ""), ("GET", "/history"), ("DELETE", ""), ("POST", "/release"), ("POST", "/undo")):
        response = await api.client.request(method, f"/v1/memory/{bobs['id']}{path}", headers=ALICE)
        assert response.status_code == 404, (method, path)
    assert (await api.client.get("/v1/memory", headers=ALICE)).json()["total"] == 0
    assert (await api.client.delete("/v1/memory", headers=ALICE)).json()["deleted"] == 0
    assert await api.store.count(Scope("bob")) == 1


async def test_a_user_needs_no_token_for_their_own(api: Api) -> None:
    created = await api.client.post("/v1/memory", json={"content": "User likes tea"}, headers=ALICE)
    assert created.json()["user_id"] == "alice"
    assert (await api.client.get("/v1/memory", headers=ALICE)).json()["total"] == 1


async def test_an_admin_must_say_whose(api: Api) -> None:
    for method, path, call in every_call("mem_1", None):
        response = await api.client.request(method, path, headers=ADMIN, **call)
        assert (response.status_code, response.json()["error"]["code"]) == (401, "MISSING_USER_ID"), (method, path)
        place = "body" if "json" in call and method == "POST" else "query"
        assert response.json()["detail"].endswith(f"name one as user_id in the {place}"), (method, path)


async def test_without_a_configured_token_nobody_is_admin(api: Api) -> None:
    open_api = create_api(api.memories, AccessRules())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(open_api), base_url="http://semmem") as client:
        for headers in ({}, {"authorization": "Bearer "}, {"authorization": "Bearer"}):
            response = await client.get("/v1/memory", params={"user_id": "alice"}, headers=headers)
            assert response.status_code == 401


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("json", "place"),
    [
        ({}, "content"),
        ({"content": "ab"}, "content"),
        ({"content": "x" * 501}, "content"),
        ({"content": "User likes tea", "type": "opinion"}, "type"),
        ({"content": "User likes tea", "importance": 2}, "importance"),
        ({"content": "User likes tea", "expires_at": "2027-01-01T00:00:00"}, "expires_at"),
        ({"content": "User likes tea", "contents": "x"}, "contents"),
        ({"content": "User likes tea", "metadata": {"released": True}}, "metadata"),
    ],
)
async def test_bad_input_is_refused_with_its_place_and_without_its_content(
    api: Api, json: dict[str, Any], place: str
) -> None:
    response = await api.client.post("/v1/memory", json=json | {"user_id": "alice"}, headers=ADMIN)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "INVALID_REQUEST")
    assert f"body.{place}" in response.json()["error"]["message"]
    assert "xxx" not in response.text


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e999"])
async def test_metadata_that_is_no_json_is_refused(api: Api, value: str) -> None:
    body = f'{{"content": "User likes tea", "user_id": "alice", "metadata": {{"a": [{value}]}}}}'
    response = await api.client.post("/v1/memory", content=body, headers=ADMIN | JSON)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "INVALID_REQUEST")
    assert response.json()["error"]["message"].startswith("body.metadata: ")


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", "/v1/memory/consolidate", "[" * 100_000, 400, "INVALID_REQUEST"),
        ("POST", "/v1/memory/summarize", f'{{"older_than_days": {"9" * 5000}}}', 400, "INVALID_REQUEST"),
        ("POST", "/v1/memory/consolidate", "{", 400, "INVALID_REQUEST"),
        ("GET", "/v1/nothing", "", 404, "NOT_FOUND"),
        ("PATCH", "/v1/memory/consolidate", "", 405, "METHOD_NOT_ALLOWED"),
    ],
)
async def test_what_the_framework_refuses_looks_like_every_error(
    api: Api, method: str, path: str, body: str, status: int, code: str
) -> None:
    response = await api.client.request(method, path, content=body, headers=ADMIN | JSON)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert (response.headers.get("allow") is not None) is (status == 405)
    assert len(response.text) < 300


async def test_a_store_that_is_down_is_said_without_its_address(api: Api) -> None:
    api.store.fails = StoreUnavailable("the address of the store")
    response = await api.client.get("/v1/memory/mem_1", params={"user_id": "alice"}, headers=ADMIN)
    assert (response.status_code, response.json()["error"]["code"]) == (503, "MEMORY_NOT_AVAILABLE")
    assert response.json()["detail"] == "the store cannot be reached (StoreUnavailable): try again later"
    assert "address" not in response.text


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (StoreTimeout("milvus list"), "the store did not answer in time (StoreTimeout)"),
        (JournalError("SELECT secret"), "the journal failed (JournalError)"),
        (EmbedderBusy("full"), "the embedder has too much to do (EmbedderBusy)"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/memory?user_id=alice", "/v1/memory?user_id=alice&stats=true"])
async def test_a_list_that_cannot_be_read_is_a_problem_that_names_the_part_and_never_an_empty_list(
    api: Api, path: str, error: SemmemError, told: str
) -> None:
    api.store.fails = error
    response = await api.client.get(path, headers=ADMIN)
    assert (response.status_code, response.json()["detail"]) == (503, f"{told}: try again later")


async def test_calls_are_counted_by_route_and_never_by_what_was_asked_for(api: Api) -> None:
    await api.client.get("/v1/memory/mem_secret", params={"user_id": "alice"}, headers=ADMIN)
    labels = {"route": "/v1/memory/{memory_id}", "status": "404"}
    assert api.metrics.registry.get_sample_value("semmem_api_requests_total", labels) == 1


async def test_the_api_describes_itself(api: Api) -> None:
    paths = (await api.client.get("/openapi.json")).json()["paths"]
    assert {"/v1/memory", "/v1/memory/search", "/v1/memory/{memory_id}", "/v1/sessions/{session_id}/end"} <= set(paths)
    assert {"/v1/memory/{memory_id}/history", "/v1/memory/{memory_id}/release"} <= set(paths)
    assert {"/v1/memory/consolidate", "/v1/memory/summarize"} <= set(paths)
