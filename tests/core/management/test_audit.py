"""The audit log: a line for each change and for each look at somebody else's memories, and nothing that was said."""

from __future__ import annotations

import json
import stat
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from semmem.backends.sql.journal import SqlJournal
from semmem.management.access import AccessRules, RateLimits, RateRules, Tokens
from semmem.management.accounts_api import token_routes
from semmem.management.api import create_api
from semmem.management.audit import Audit, AuditFile, audit_routes, in_order, to_stdout
from semmem.management.door import Guards
from semmem.management.idempotency import Heard, Idempotency, IdempotencyRules
from semmem.telemetry.metrics import Metrics
from semmem.wiring.doors import audit_name
from tests.core.management.test_api import ADMIN, ALICE, NOW, Api
from tests.support.counted import counting

KEY = b"k" * 32
NAMES = {user: audit_name(KEY, user) for user in ("alice", "bob")}
TEA = {"content": "User likes tea"}


class Audited:
    """The API of test_api with everything that guards it, and the lines it writes."""

    def __init__(self, api: Api, journal: SqlJournal, *, reading: bool = True) -> None:
        self.written: list[str] = []
        self.full = False
        self.metrics = Metrics()
        self.audit = Audit(
            self._write,
            partial(audit_name, KEY),
            clock=lambda: NOW,
            reading=reading,
            announce=counting(self.metrics),
        )
        self.tokens = Tokens(journal, clock=lambda: NOW)
        guards = Guards(
            limits=RateLimits(RateRules(calls_per_s=1.0, burst=50), clock=lambda: 0.0),
            idempotency=Idempotency(journal, IdempotencyRules(), clock=lambda: NOW),
            audit=self.audit,
        )
        self.app = create_api(
            api.memories,
            AccessRules(admin_token="secret-token", trusted_headers=("x-user-id",), tokens=self.tokens),
            guards=guards,
            more=[token_routes(self.tokens), audit_routes(self.audit)],
        )
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://semmem")

    async def _write(self, line: str) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        self.written.append(line)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.written]

    async def call(self, method: str, path: str, headers: dict[str, str] = ALICE, **asked: Any) -> httpx.Response:
        return await self.client.request(method, path, headers=headers, **asked)


@pytest.fixture
async def audited(journal: SqlJournal) -> AsyncIterator[Audited]:
    api = Api(journal)
    await api.store.open()
    made = Audited(api, journal)
    yield made
    await made.client.aclose()
    await api.client.aclose()


async def test_a_change_leaves_a_line_that_says_who_what_whose_and_how_it_ended(audited: Audited) -> None:
    created = (await audited.call("POST", "/v1/memory", json=TEA)).json()
    await audited.call("DELETE", f"/v1/memory/{created['id']}", ADMIN, params={"user_id": "alice"})
    first, second = audited.lines
    assert first == {
        "time": "2027-01-15T08:00:00.000+00:00",
        "role": "user",
        "token_id": None,
        "caller": NAMES["alice"],
        "act": "POST /v1/memory",
        "users": [NAMES["alice"]],
        "status": 201,
        "outcome": "done",
        "counts": {},
    }
    assert (second["role"], second["caller"], second["users"]) == ("admin", None, [NAMES["alice"]])
    assert (second["act"], second["counts"]["deleted"]) == ("DELETE /v1/memory/{memory_id}", 1)


async def test_a_made_token_is_named_by_its_id(audited: Audited) -> None:
    made = (await audited.call("POST", "/v1/tokens", ADMIN, json={"role": "reader"})).json()
    reader = {"authorization": f"Bearer {made['token']}"}
    await audited.call("GET", "/v1/memory", reader, params={"user_id": "bob"})
    act = audited.lines[-1]
    assert (act["token_id"], act["role"], act["act"]) == (made["id"], "reader", "GET /v1/memory")
    assert act["users"] == [NAMES["bob"]]
    assert made["token"] not in "".join(audited.written)


async def test_who_looks_at_somebody_elses_memories_leaves_a_line_and_who_looks_at_their_own_does_not(
    audited: Audited,
) -> None:
    await audited.call("GET", "/v1/memory")
    await audited.call("POST", "/v1/memory/search", json={"query": "tea"})
    await audited.call("GET", "/v1/whoami")
    await audited.call("GET", "/v1/whoami", ADMIN)
    assert audited.lines == []
    await audited.call("POST", "/v1/memory/search", ADMIN, json={"query": "tea", "user_id": "bob"})
    assert [(line["act"], line["users"]) for line in audited.lines] == [("POST /v1/memory/search", [NAMES["bob"]])]


async def test_lines_about_reading_can_be_left_out(journal: SqlJournal) -> None:
    api = Api(journal)
    await api.store.open()
    audited = Audited(api, journal, reading=False)
    await audited.call("GET", "/v1/memory", ADMIN, params={"user_id": "bob"})
    await audited.call("POST", "/v1/memory", json=TEA)
    assert [line["act"] for line in audited.lines] == ["POST /v1/memory"]
    await audited.client.aclose()
    await api.client.aclose()


async def test_a_refusal_has_its_code_and_a_replay_is_told_apart(audited: Audited) -> None:
    keyed = {**ALICE, "idempotency-key": "k1"}
    await audited.call("POST", "/v1/memory", json={"content": "x"})
    await audited.call("POST", "/v1/tokens", json={"role": "reader"})
    for content in ("User likes tea", "User likes tea", "User likes mate"):
        await audited.call("POST", "/v1/memory", keyed, json={"content": content})
    told = [(line["status"], line["outcome"]) for line in audited.lines]
    assert told == [
        (400, "INVALID_REQUEST"),
        (403, "FORBIDDEN"),
        (201, "done"),
        (201, "replayed"),
        (422, "IDEMPOTENCY_KEY_REUSED"),
    ]


async def test_a_failure_leaves_a_line(audited: Audited, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("with content")

    monkeypatch.setattr("semmem.management.memories.Memories.create", fails)
    assert (await audited.call("POST", "/v1/memory", json=TEA)).status_code == 500
    assert [(line["status"], line["outcome"]) for line in audited.lines] == [(500, "INTERNAL")]


async def test_who_is_nobody_and_who_calls_too_often_fill_no_log(audited: Audited) -> None:
    for _ in range(60):
        await audited.call("POST", "/v1/memory", json={"content": "x"})
    await audited.call("POST", "/v1/memory", {}, json=TEA)
    assert len(audited.lines) == 50


async def test_nothing_that_was_said_and_no_name_is_in_a_line(audited: Audited) -> None:
    secret = {"content": "Canary sings at dawn", "key": "canary-key", "metadata": {"canary": "canary", "pin": 4711}}
    created = (await audited.call("POST", "/v1/memory", json=secret)).json()
    await audited.call("PUT", f"/v1/memory/{created['id']}", json={"content": "Canary sings at noon"})
    await audited.call("POST", "/v1/memory/forget", json={"text": "canary", "dry_run": False})
    await audited.call("POST", "/v1/sessions/canary-session/end")
    await audited.call("GET", "/v1/memory/canary-id", ADMIN, params={"user_id": "alice", "q": "canary"})
    written = "".join(audited.written).lower()
    assert len(audited.lines) == 5
    assert not [word for word in ("canary", "alice", "4711", created["id"]) if word in written]


async def test_a_log_that_cannot_be_written_stops_no_call_and_is_counted(audited: Audited) -> None:
    audited.full = True
    assert (await audited.call("POST", "/v1/memory", json=TEA)).status_code == 201
    audited.full = False
    assert (await audited.call("POST", "/v1/memory", json=TEA)).status_code == 201
    counted = {
        word: audited.metrics.registry.get_sample_value("semmem_api_audited_total", {"result": word})
        for word in ("failed", "written")
    }
    assert counted == {"failed": 1, "written": 1}


async def test_an_administrator_can_ask_what_somebody_is_called(audited: Audited) -> None:
    told = (await audited.call("GET", "/v1/audit/name", ADMIN, params={"user_id": "bob"})).json()
    assert told == {"user_id": "bob", "name": NAMES["bob"]}
    assert (await audited.call("GET", "/v1/audit/name", params={"user_id": "bob"})).status_code == 403


def test_names_are_other_ones_under_another_key() -> None:
    assert audit_name(b"x" * 32, "alice") != NAMES["alice"]


async def test_a_stream_is_not_held_back_for_its_line() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    heard = Heard(send, bytes_max=100)
    headers = [(b"content-type", b"application/x-ndjson")]
    await heard({"type": "http.response.start", "status": 200, "headers": headers})
    await heard({"type": "http.response.body", "body": b"{}", "more_body": True})
    assert len(sent) == 2
    assert (heard.status, heard.body, heard.told) == (200, None, {})


# --- where lines go --------------------------------------------------------------------------------------------------


def test_a_full_file_is_turned_over_and_the_oldest_goes(tmp_path: Path) -> None:
    append = AuditFile(tmp_path / "audit.jsonl", bytes_max=30, files_max=3)
    for number in range(12):
        append(f"line {number:03}")  # nine bytes each: three in a file
    found = {path.name: path.read_text().split("\n")[:-1] for path in tmp_path.iterdir()}
    assert found == {
        "audit.jsonl": ["line 009", "line 010", "line 011"],
        "audit.jsonl.1": ["line 006", "line 007", "line 008"],
        "audit.jsonl.2": ["line 003", "line 004", "line 005"],
    }
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_a_single_file_begins_anew_and_what_a_process_before_wrote_stays(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    for line in ("one", "two"):
        AuditFile(path, bytes_max=8, files_max=1)(line)
    assert path.read_text() == "one\ntwo\n"
    AuditFile(path, bytes_max=8, files_max=1)("three")
    assert (path.read_text(), [each.name for each in tmp_path.iterdir()]) == ("three\n", ["audit.jsonl"])


async def test_lines_come_in_order_and_off_the_event_loop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write = in_order(to_stdout)
    for number in range(5):
        await write(f"line {number}")
    assert capsys.readouterr().out.split("\n")[:-1] == [f"line {number}" for number in range(5)]
    with pytest.raises(OSError, match="No such file"):
        await in_order(AuditFile(tmp_path / "nowhere" / "audit.jsonl", bytes_max=100, files_max=2))("line")
