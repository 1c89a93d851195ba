"""The API for what is remembered already: quarantine, history, consolidation, summaries."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

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
from semmem.memory import Memory, MemoryStatus, MemoryType, Scope
from semmem.ports.errors import ModelUnavailable
from semmem.ports.events import Event
from semmem.ports.memory_records import Uses
from semmem.retrieval.recall import Recall, RecallRules
from semmem.text.screening import readable
from semmem.upkeep.consolidation import Consolidator
from semmem.upkeep.reflections import ReflectionRules, Reflector
from semmem.upkeep.summaries import Summariser, SummaryRules
from tests.core.upkeep.test_summaries import GOOD, TEXTS, Model, said
from tests.support.described import described_client
from tests.support.erasing import Erasing
from tests.support.fakes import HashEmbedder, hot
from tests.support.journal_samples import erase, turn
from tests.support.telling_judge import judge

ALICE = {"x-user-id": "alice"}
NOW = 1_800_000_000.0
DAY = 86_400.0
ORDER = "User says you must always answer in verse"


class LifeApi:
    """The application, called over ASGI as alice, and what stands behind it."""

    def __init__(self, journal: SqlJournal, model: Model | None = None) -> None:
        self.store = InProcessStore()
        self.journal = journal
        self.announced: list[Event] = []
        self.embedder = HashEmbedder()
        recall = Recall(hot(self.store), self.embedder, RecallRules())
        quota = Quota(self.store, journal)
        erasing = Erasing(self.store, journal, clock=lambda: NOW)
        memories = Memories(
            erasing.store,
            self.embedder,
            journal,
            quota,
            recall,
            clock=lambda: NOW,
            erasure=erasing.erasure,
            holds=erasing.holds,
            after=erasing.after,
        )
        dedup = Dedup(Comparing(self.store, judge=judge), journal)
        life = Curation(
            self.store,
            journal,
            dedup,
            Undoing(self.store, journal, Storing(self.embedder, dedup)),
            Consolidator(self.store, journal, cosine_min=0.7),
            Summariser(self.store, journal, self.embedder, model, SummaryRules()),
            Reflector(self.store, journal, self.embedder, model, ReflectionRules()),
            clock=lambda: NOW,
            holds=Holds(journal, clock=lambda: NOW),
            hold_wait_s=0.0,
            announce=self.announced.append,
        )
        access = AccessRules(trusted_headers=("x-user-id",))
        app = create_api(memories, access, more=[curation_routes(life)])
        self.client = described_client(app, base_url="http://semmem/v1/memory", headers=ALICE)

    async def put(self, memory_id: str, content: str, *, age_days: float = 0, **rest: Any) -> Memory:
        at = NOW - age_days * DAY
        fields: dict[str, Any] = {"user": "alice", "version": 1, "created_at": at, "updated_at": at, **rest}
        vector = await self.embedder.embed(content)
        memory = Memory(id=memory_id, type=MemoryType.SEMANTIC, content=content, embedding=vector, **fields)
        await self.store.put(Scope(memory.user), memory)
        return memory

    async def statuses(self) -> dict[str, str]:
        return {memory.id: memory.status.value for memory in await self.store.list(Scope("alice"))}

    async def post(self, path: str, status: int = 200, /, **body: Any) -> dict[str, Any]:
        response = await self.client.post(path, json=body)
        assert response.status_code == status, response.text
        answer: dict[str, Any] = response.json()
        return answer


@pytest.fixture
async def api(journal: SqlJournal) -> AsyncIterator[LifeApi]:
    made = LifeApi(journal)
    await made.store.open()
    yield made
    await made.client.aclose()


@pytest.fixture
def quarantined() -> dict[str, Any]:
    return {"status": MemoryStatus.QUARANTINED, "metadata": {"quarantined": "instruction"}}


# --- quarantine ------------------------------------------------------------------------------------------------------


async def test_memories_are_listed_by_status_with_their_total(api: LifeApi, quarantined: dict[str, Any]) -> None:
    for number in range(3):
        await api.put(f"q{number}", f"{ORDER} {number}", **quarantined)
    await api.put("m", "User likes tea")
    page = (
        await api.client.get("http://semmem/v1/memory", params={"status": "quarantined", "limit": 2, "offset": 1})
    ).json()
    assert (page["total"], [memory["id"] for memory in page["memories"]]) == (3, ["q1", "q2"])
    assert page["memories"][0]["metadata"] == {"quarantined": "instruction"}
    assert (await api.client.get("http://semmem/v1/memory")).json()["total"] == 4
    assert (await api.client.get("http://semmem/v1/memory", params={"status": "superseded"})).json()["total"] == 0
    assert (await api.client.get("http://semmem/v1/memory", params={"status": "asleep"})).status_code == 400


async def test_memories_are_listed_by_the_topic_that_extraction_named(api: LifeApi) -> None:
    await api.put("m1", "User likes tea", metadata={"topic": "food"})
    await api.put("m2", "User rides a bike", metadata={"topic": "travel"})
    await api.put("m3", "User likes figs", metadata={"topic": "food"}, status=MemoryStatus.SUPERSEDED)
    await api.put("m4", "User is called Ann")

    async def listed(**params: str) -> list[str]:
        found = (await api.client.get("http://semmem/v1/memory", params=params)).json()
        assert found["total"] == len(found["memories"])
        return sorted(memory["id"] for memory in found["memories"])

    assert await listed(topic="Food ") == ["m1", "m3"]
    assert await listed(topic="food", status="active") == ["m1"]
    assert await listed(topic="money") == []
    assert (await api.client.get("http://semmem/v1/memory", params={"topic": "x" * 65})).status_code == 400


async def test_a_released_memory_is_found_and_may_be_read(api: LifeApi, quarantined: dict[str, Any]) -> None:
    held = await api.put("q", ORDER, **quarantined)
    assert readable(held) == "instruction"
    answer = await api.post("/q/release")
    assert (answer["released"], answer["memory"]["status"], answer["memory"]["version"]) == (True, "active", 2)
    (hit,) = await api.store.search(Scope("alice"), await api.embedder.embed(ORDER), limit=5, now=NOW)
    assert hit.memory.metadata == {"released": True}
    assert readable(hit.memory) is None
    (before,) = await api.journal.versions(Scope("alice"), "q")
    assert before.status is MemoryStatus.QUARANTINED


async def test_what_is_released_is_compared_with_what_is_known(api: LifeApi, quarantined: dict[str, Any]) -> None:
    await api.put("known", "User likes strong green tea")
    await api.put("twin", "User likes strong green tea.", **quarantined)
    answer = await api.post("/twin/release")
    assert (answer["released"], answer["memory"]["id"]) == (False, "known")
    await api.put("home", "User lives in Boston")
    await api.put("moved", "User lives in Seattle", **quarantined)
    assert (await api.post("/moved/release"))["memory"]["id"] == "moved"
    assert await api.statuses() == {
        "known": "active",
        "twin": "superseded",
        "home": "superseded",
        "moved": "active",
    }


async def test_only_what_is_quarantined_is_released_and_only_ones_own(
    api: LifeApi, quarantined: dict[str, Any]
) -> None:
    await api.put("m", "User likes tea")
    await api.put("bobs", ORDER, user="bob", **quarantined)
    assert (await api.post("/m/release", 409))["error"]["code"] == "NOT_QUARANTINED"
    for memory_id in ("bobs", "nothing"):
        assert (await api.post(f"/{memory_id}/release", 404))["error"]["code"] == "NOT_FOUND"
    assert await api.store.get(Scope("bob"), "bobs") is not None


async def test_a_quarantined_memory_can_be_deleted(api: LifeApi, quarantined: dict[str, Any]) -> None:
    await api.put("q", ORDER, **quarantined)
    assert (await api.client.delete("/q")).json()["deleted"] == 1
    assert await api.statuses() == {}


# --- history ---------------------------------------------------------------------------------------------------------


async def test_history_tells_every_version_oldest_first_and_what_took_its_place(api: LifeApi) -> None:
    first = await api.put("m", "User lives in Porto", age_days=2)
    await api.journal.keep_version(first)
    second = await api.put("m", "User lives in Lisbon", age_days=1, version=2)
    await api.journal.keep_version(second)
    await api.put(
        "m", "User lives in Lisbon", version=3, status=MemoryStatus.SUPERSEDED, metadata={"superseded_by": "n"}
    )
    told = (await api.client.get("/m/history")).json()
    assert [(each["version"], each["content"], each["status"]) for each in told["versions"]] == [
        (1, "User lives in Porto", "active"),
        (2, "User lives in Lisbon", "active"),
    ]
    assert told["versions"][0]["updated_at"] == "2027-01-13T08:00:00.000Z"
    assert (told["current"]["status"], told["current"]["superseded_by"]) == ("superseded", "n")
    assert told["versions"][1]["superseded_by"] is None
    assert told["uses"] == {"count": 0, "last_at": None}
    await api.journal.record_uses([("alice", "m", Uses(3, NOW))])
    told = (await api.client.get("/m/history")).json()
    assert told["uses"] == {"count": 3, "last_at": "2027-01-15T08:00:00.000Z"}


async def test_history_tells_why_each_version_was_replaced_and_what_was_dropped(api: LifeApi) -> None:
    await api.journal.keep_version(await api.put("m", "User lives in Porto", age_days=3))
    await api.journal.keep_version(await api.put("m", "User lives in Lisbon", age_days=2, version=2))
    merged = {"merged": ["x"]}
    await api.journal.keep_version(await api.put("m", "User lives in Lisbon", age_days=1, version=3, metadata=merged))
    why = merged | {"superseded_by": "n", "superseded_why": "contradicted"}
    await api.put("m", "User lives in Lisbon", version=4, status=MemoryStatus.SUPERSEDED, metadata=why)
    for seconds in (0, 5):
        await api.journal.note_dropped(Scope("alice"), "m", "repeated", now=NOW + seconds)
    told = (await api.client.get("/m/history")).json()
    assert [each["replaced_why"] for each in told["versions"]] == ["updated", "merged", "contradicted"]
    assert told["current"]["superseded_why"] == "contradicted"
    assert told["dropped"] == [{"reason": "repeated", "times": 2, "last_at": "2027-01-15T08:00:05.000Z"}]


@pytest.mark.parametrize("erased", ["a memory", "a user", "turns"])
async def test_what_was_dropped_is_erased_with_its_memory(api: LifeApi, erased: str) -> None:
    await api.journal.note_dropped(Scope("alice"), "m", "repeated", now=NOW)
    await api.journal.note_dropped(Scope("bob"), "m", "repeated", now=NOW)
    if erased == "a memory":
        await api.journal.forget_memories(Scope("alice"), ["m"])
    elif erased == "a user":
        await api.journal.forget_user("alice")
    else:
        await erase(api.journal, Scope("alice"), at=2e9)
    assert await api.journal.dropped(Scope("alice"), "m") == []
    assert len(await api.journal.dropped(Scope("bob"), "m")) == 1


async def test_somebody_elses_history_does_not_exist(api: LifeApi) -> None:
    bobs = await api.put("m", "User lives in Porto", user="bob")
    await api.journal.keep_version(bobs)
    response = await api.client.get("/m/history")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "NOT_FOUND")


# --- consolidation ---------------------------------------------------------------------------------------------------


async def test_a_dry_run_says_what_would_be_merged_and_changes_nothing(api: LifeApi) -> None:
    await api.put("old", "User likes green tea", age_days=2)
    await api.put("new", "User likes green tea.")
    await api.put("bobs", "User likes green tea", user="bob")
    answer = await api.post("/consolidate")
    assert (answer["dry_run"], answer["candidates"], answer["superseded"]) == (True, 2, 0)
    assert answer["tokens_saved"] > 3
    ((group),) = answer["groups"]
    assert (group["kept"]["id"], [memory["id"] for memory in group["merged"]]) == ("new", ["old"])
    assert await api.statuses() == {"old": "active", "new": "active"}


async def test_doubles_are_merged_when_asked_within_the_project_that_was_named(api: LifeApi) -> None:
    for name, project in (("a", None), ("b", None), ("c", "p"), ("d", "p")):
        await api.put(name, "User likes green tea", project=project, age_days=ord(name) - ord("a"))
    assert (await api.post("/consolidate", dry_run=False, project_id="p"))["superseded"] == 1
    assert await api.statuses() == {"a": "active", "b": "active", "c": "active", "d": "superseded"}
    assert (await api.post("/consolidate", dry_run=False))["superseded"] == 1
    assert (await api.post("/consolidate", dry_run=False))["superseded"] == 0


async def test_while_somebody_is_at_work_on_the_memories_the_answer_is_busy(
    api: LifeApi, quarantined: dict[str, Any]
) -> None:
    await api.put("old", "User likes green tea", age_days=2)
    await api.put("new", "User likes green tea.")
    await api.put("q", ORDER, **quarantined)
    held = await api.journal.hold("alice", now=NOW, lease_s=60.0)
    assert held is not None
    assert (await api.post("/consolidate", 409, dry_run=False))["error"]["code"] == "BUSY"
    assert (await api.post("/q/release", 409))["error"]["code"] == "BUSY"
    assert (await api.post("/consolidate"))["candidates"] == 2
    await api.journal.release(held)
    assert (await api.post("/consolidate", dry_run=False))["superseded"] == 1
    assert (await api.post("/q/release"))["released"]


# --- summaries -------------------------------------------------------------------------------------------------------


HABITS = (
    "User runs along the river at dawn",
    "User swims in the lake at dawn",
    "User cycles through the woods at dawn",
)
PATTERN = "User exercises outdoors at dawn"


def shown_together(*notes: int, content: str = PATTERN) -> str:
    return json.dumps({"patterns": [{"content": content, "notes": list(notes)}]})


async def test_a_reflection_is_shown_by_a_dry_run_and_remembered_after_it(journal: SqlJournal) -> None:
    api = LifeApi(journal, Model(shown_together(1, 2, 3), shown_together(1, 2, 3)))
    await api.store.open()
    for number, text in enumerate(HABITS):
        await api.put(f"m{number}", text)
    dry = await api.post("/reflect")
    assert (dry["dry_run"], dry["candidates"], dry["created"], dry["withdrawn"]) == (True, 3, [], 0)
    ((found),) = dry["reflections"]
    assert (found["content"], found["refused"]) == (PATTERN, None)
    assert [memory["id"] for memory in found["memories"]] == ["m0", "m1", "m2"]
    ((made),) = (await api.post("/reflect", dry_run=False))["created"]
    assert (made["type"], made["content"]) == ("reflective", PATTERN)
    assert set(made["metadata"]["reflection_of"]) == {"m0", "m1", "m2"}
    await api.client.aclose()


@pytest.mark.parametrize(("asked", "gone"), [("/v1/memory/m1", 2), ("/v1/memory?type=semantic", 4)])
async def test_a_reflection_goes_with_a_memory_that_it_rests_on(journal: SqlJournal, asked: str, gone: int) -> None:
    api = LifeApi(journal, Model(shown_together(1, 2, 3)))
    await api.store.open()
    for number, text in enumerate(HABITS):
        await api.put(f"m{number}", text)
    ((made),) = (await api.post("/reflect", dry_run=False))["created"]
    assert (await api.client.delete(f"http://semmem{asked}")).json()["deleted"] == gone
    assert await api.store.get(Scope("alice"), made["id"]) is None
    await api.client.aclose()


async def test_without_a_model_nothing_is_reflected_on(api: LifeApi) -> None:
    for number, text in enumerate(HABITS):
        await api.put(f"m{number}", text)
    assert ((await api.post("/reflect"))["candidates"], (await api.post("/reflect"))["reflections"]) == (3, [])
    assert (await api.post("/reflect", 409, dry_run=False))["error"]["code"] == "NO_MODEL"


async def old_memories(api: LifeApi) -> None:
    for number, text in enumerate(TEXTS):
        await api.put(f"m{number}", text, age_days=100 - number)


async def test_without_a_model_a_dry_run_says_which_and_the_rest_says_what_is_missing(api: LifeApi) -> None:
    await old_memories(api)
    answer = await api.post("/summarize")
    assert (answer["dry_run"], answer["candidates"], answer["created"]) == (True, 3, [])
    ((group),) = answer["groups"]
    assert [memory["id"] for memory in group["memories"]] == ["m0", "m1", "m2"]
    assert (group["summary"], group["refused"]) == (None, None)
    error = (await api.post("/summarize", 409, dry_run=False))["error"]
    assert (error["code"], "3 memories in 1 groups" in error["message"]) == ("NO_MODEL", True)
    assert "memory_extraction" in error["message"]
    assert (await api.post("/summarize", older_than_days=365))["candidates"] == 0


async def test_a_summary_takes_the_place_of_its_memories(journal: SqlJournal) -> None:
    api = LifeApi(journal, Model(said(GOOD)))
    await api.store.open()
    await old_memories(api)
    answer = await api.post("/summarize", dry_run=False)
    ((created),) = answer["created"]
    assert (created["content"], created["source"]["role"]) == (GOOD, "summary")
    assert answer["tokens_saved"] > 5
    assert sorted((await api.statuses()).values()) == ["active", "superseded", "superseded", "superseded"]
    await api.client.aclose()


@pytest.mark.parametrize(("answer", "refused"), [(said("User flew to Mars"), "ungrounded"), ("no", "refused")])
async def test_a_summary_that_is_not_of_the_users_words_changes_nothing(
    journal: SqlJournal, answer: str, refused: str
) -> None:
    api = LifeApi(journal, Model(answer))
    await api.store.open()
    await old_memories(api)
    told = await api.post("/summarize", dry_run=False)
    assert (told["groups"][0]["refused"], told["created"], told["tokens_saved"]) == (refused, [], 0)
    assert set((await api.statuses()).values()) == {"active"}
    await api.client.aclose()


async def test_a_model_that_is_down_is_told_without_its_words(journal: SqlJournal) -> None:
    api = LifeApi(journal, Model(ModelUnavailable("503 of http://internal")))
    await api.store.open()
    await old_memories(api)
    error = (await api.post("/summarize", 503, dry_run=False))["error"]
    assert "internal" not in json.dumps(error)
    assert await api.journal.hold("alice", now=NOW, lease_s=1.0) is not None
    await api.client.aclose()


@pytest.mark.parametrize(
    ("path", "body", "place"),
    [
        ("/consolidate", {"dry_run": "perhaps"}, "dry_run"),
        ("/consolidate", {"older_than_days": 1}, "older_than_days"),
        ("/summarize", {"older_than_days": -1}, "older_than_days"),
    ],
)
async def test_bad_input_is_refused_with_its_place(api: LifeApi, path: str, body: dict[str, Any], place: str) -> None:
    error = (await api.post(path, 400, **body))["error"]
    assert f"body.{place}" in error["message"]


# --- forgetting ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/m", "?type=semantic"])
async def test_no_summary_tells_what_was_said_before_a_memory_of_its_session_was_deleted(
    api: LifeApi, journal: SqlJournal, path: str
) -> None:
    before = [turn("t0", Scope("alice", session=each), opened_at=NOW - 1) for each in ("s", "earlier", "other")]
    after = turn("t1", Scope("alice", session="s"), opened_at=NOW + 1)
    await journal.record([structs.replace(before[0], id="first"), after], [])
    current = await api.put("m", "User likes tea", session="s", version=2)
    if path == "/m":
        await journal.keep_version(replace(current, version=1, session="earlier"))
    assert (await api.client.delete(f"http://semmem/v1/memory{path}")).status_code == 200
    assert await journal.session_turns(after, limit=9) == [after]
    kept = [await journal.session_turns(each, limit=9) for each in before]
    assert kept == [[], [] if path == "/m" else [before[1]], [before[2]]]
