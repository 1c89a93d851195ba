"""Each way out that the canary watches, with something planted in it: the door itself must notice."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from tests.canary import copies
from tests.canary.doors import Doors, Tally
from tests.canary.ledger import NOBODY, ONE_MEMORY, Fact, Ledger
from tests.canary.model import Prompts
from tests.canary.plays import OPERATORS_PAGES
from tests.canary.stack import Stack
from tests.canary.words import Words
from tests.support.harness import EnvoyProcess

ALICE, BOB = 0, 1
Knock = Callable[[Doors], Awaitable[object]]


class Answering:
    """A place where every call has one answer."""

    def __init__(self, text: str, headers: dict[str, str] | None = None) -> None:
        self.up, self.changes = asyncio.Event(), 0
        self.up.set()
        self.api_url = self.health_url = "http://semmem"
        self.text, self.headers = text, headers

    @property
    def envoy(self) -> EnvoyProcess:
        raise NotImplementedError

    def http(self) -> httpx.AsyncClient:
        answer = httpx.MockTransport(lambda _: httpx.Response(200, text=self.text, headers=self.headers))
        return httpx.AsyncClient(transport=answer)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(Words(7), users=3)


def told(ledger: Ledger, user: int) -> Fact:
    fact = ledger.tell(user, project="", way="", question="")
    ledger.created(fact, expected=True)
    return fact


def erased(ledger: Ledger, user: int, kind: str = "DELETE") -> Fact:
    fact = told(ledger, user)
    fact.gone, fact.erased_at = kind, time.monotonic() - 1
    return fact


async def knocked(ledger: Ledger, place: Answering, knock: Knock) -> None:
    async with place.http() as http:
        await knock(Doors(http, place, ledger, Prompts(ledger), Tally()))


def of_a_tool(text: str, *, is_error: bool = False) -> str:
    return json.dumps({"result": {"content": [{"type": "text", "text": text}], "isError": is_error}})


DOORS: dict[str, tuple[Knock, Callable[[str], str]]] = {
    "a tool": (lambda doors: doors.tool(ALICE, "token", "memory_list", {}), of_a_tool),
    "a tool's refusal": (
        lambda doors: doors.tool(ALICE, "token", "memory_delete", {}),
        lambda text: of_a_tool(f"Error: INVALID_ID {text}", is_error=True),
    ),
    "a tool that erases": (lambda doors: doors.clear(ALICE, "token"), of_a_tool),
    "an export": (lambda doors: doors.call("export", "GET", "/v1/export", ALICE), lambda text: f"{{}}\n{text}\n"),
}


@pytest.mark.parametrize("door", DOORS)
async def test_what_leaks_or_returns_by_a_door_is_noticed(ledger: Ledger, door: str) -> None:
    knock, answer = DOORS[door]
    theirs, gone, mine = told(ledger, BOB), erased(ledger, ALICE), told(ledger, ALICE)
    await knocked(ledger, Answering(answer(ledger.word(mine))), knock)
    assert (ledger.findings.leaks, ledger.findings.returns) == ({}, {})
    await knocked(ledger, Answering(answer(f"{ledger.word(theirs)} {ledger.word(gone)}")), knock)
    assert list(ledger.findings.leaks) == [(ALICE, BOB, 1)]
    assert list(ledger.findings.returns) == [(ALICE, 1)]


@pytest.mark.parametrize("path", OPERATORS_PAGES)
@pytest.mark.parametrize("where", ["body", "header"])
async def test_anybodys_word_on_an_operators_page_is_noticed(ledger: Ledger, path: str, where: str) -> None:
    word = ledger.words.word(BOB, 0)
    place = Answering(word) if where == "body" else Answering("{}", {"x-whose": word})
    await knocked(ledger, place, lambda doors: doors.look("engine", path, of_api=True))
    assert list(ledger.findings.leaks) == [(NOBODY, BOB, 0)]


async def test_an_erasure_by_a_tool_that_is_pending_is_asked_for_again(ledger: Ledger) -> None:
    place = Answering(of_a_tool("Error executing tool: ERASURE_PENDING: later", is_error=True))

    async def knock(doors: Doors) -> None:
        async with asyncio.TaskGroup() as group:
            asked = group.create_task(doors.clear(ALICE, "token"))
            await asyncio.sleep(0.3)
            assert not asked.done()
            place.text = of_a_tool("{}")
        answer = asked.result()
        assert answer is not None
        assert answer.ok

    await knocked(ledger, place, knock)


# --- what is written --------------------------------------------------------------------------------------------------


def line(ledger: Ledger, owner: int, fact: Fact) -> str:
    return json.dumps({"memory": {"user": ledger.words.word(owner, 0), "content": f"likes {ledger.word(fact)}"}}) + "\n"


def test_a_line_of_an_export_holds_its_users_words_alone(ledger: Ledger, tmp_path: Path) -> None:
    mine, theirs, gone = told(ledger, ALICE), told(ledger, BOB), erased(ledger, ALICE)
    path = tmp_path / "memories.jsonl"
    path.write_text(line(ledger, ALICE, mine) + line(ledger, BOB, theirs))
    assert copies.look_at_export(path, ledger) == 2
    assert (ledger.findings.leaks, ledger.findings.returns) == ({}, {})
    path.write_text(line(ledger, ALICE, theirs) + line(ledger, ALICE, gone) + f'{{"users": "{ledger.word(mine)}"}}\n')
    copies.look_at_export(path, ledger)
    assert set(ledger.findings.leaks) == {(ALICE, BOB, 1), (NOBODY, ALICE, 1)}
    assert list(ledger.findings.returns) == [(ALICE, 2)]


def test_what_was_erased_and_is_still_on_disk_is_noticed(ledger: Ledger, tmp_path: Path) -> None:
    kept, gone, alone = told(ledger, ALICE), erased(ledger, ALICE), erased(ledger, ALICE, ONE_MEMORY)
    again = told(ledger, BOB)
    again.gone, again.erased_at, again.repeated = "DELETE", 1.0, 2.0
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "rows").write_bytes(
        b"\x00\xff".join(ledger.word(fact).lower().encode() for fact in (kept, alone, again))
    )
    assert copies.look_at_disk(tmp_path, ledger) == 1
    assert not ledger.findings.returns
    (tmp_path / "store" / "journal.db-wal").write_bytes(b"\x00 " + ledger.word(gone).encode() + b" \xff")
    assert copies.look_at_disk(tmp_path, ledger) == 2
    assert list(ledger.findings.returns) == [(ALICE, gone.number)]


def test_a_span_that_says_anybodys_word_is_noticed(ledger: Ledger) -> None:
    span = Span(name="recall")
    sent = ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=[span])])])
    assert copies.look_at_spans([sent.SerializeToString()], ledger) == 1
    assert not ledger.findings.leaks
    value = AnyValue(string_value=f"likes {ledger.word(told(ledger, BOB))}")
    sent.resource_spans[0].scope_spans[0].spans[0].attributes.append(KeyValue(key="question", value=value))
    copies.look_at_spans([sent.SerializeToString()], ledger)
    assert list(ledger.findings.leaks) == [(NOBODY, BOB, 1)]


class Printed:
    """A stack whose commands print one text."""

    def __init__(self, folder: Path) -> None:
        self.sidecar = self
        self.folder = folder


def test_what_a_command_prints_of_somebody_else_is_noticed(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = told(ledger, BOB)
    printed: dict[str, Any] = {"status": ledger.word(theirs)}
    monkeypatch.setattr(copies, "run", lambda _stack, asked: printed.get(asked[0], "nothing"))
    monkeypatch.setattr(copies, "memories", lambda _semmem, _name: iter([{"id": "mem_a"}]))
    stack: Any = Printed(tmp_path)
    stack.semmem = None
    assert copies.look_at_commands(cast(Stack, stack), ledger, users=1) == 7
    assert list(ledger.findings.leaks) == [(NOBODY, BOB, 1)]
    printed["show"] = ledger.word(theirs)
    copies.look_at_commands(cast(Stack, stack), ledger, users=1)
    assert (ALICE, BOB, 1) in ledger.findings.leaks


def test_a_command_that_fails_is_no_silence(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("nonsense: 1\n")
    with pytest.raises(copies.Failed, match="exit status"):
        copies.run(cast(Stack, Printed(tmp_path)), ["status"])


@pytest.mark.parametrize(("statuses", "found"), [((404,), None), ((503, 404), 404), ((503, 200), 200)])
async def test_an_erasure_that_had_to_be_asked_for_again_may_find_nothing_left(
    ledger: Ledger, statuses: tuple[int, ...], found: int | None
) -> None:
    left = list(statuses)
    answers = httpx.MockTransport(lambda _: httpx.Response(left.pop(0), text="{}"))
    async with httpx.AsyncClient(transport=answers) as http:
        doors = Doors(http, Answering(""), ledger, Prompts(ledger), Tally())
        answer = await doors.delete("delete by id", "/v1/memory/m", ALICE, query={})
    assert (None if answer is None else answer.status) == found
