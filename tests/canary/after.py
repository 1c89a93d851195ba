"""After the load: everything that semmem has of anybody is looked through once more."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from semmem.memory import MemoryStatus
from tests.canary.ledger import NOBODY, NOTE, ONE_MEMORY, ONE_PROJECT, ONE_SESSION, Fact, Ledger
from tests.canary.stack import Stack
from tests.support.harness import SemmemProcess

Json = dict[str, Any]

AT_REST_S = 330.0
"""A busy machine may make a model late twice for the same batch, which then waits one minute and four."""
PAGE = 1000
SOURCES = ("turns", "batches", "conversations", "conversation_messages")
"""Tables of what was said. They keep what a memory came from when only that memory was deleted (docs/erasing.md); what
a client sends again in a history; and a project's or session's memory in the answers of other conversations, where the
model used it."""


MESSAGES, SHOWN = "conversation_messages", "shown_blocks"
"""In what was shown a note of a conversation may have what its client sent again after the erasure, as in a prompt."""
NOWHERE = {"project": None, "session": None}


def at_rest(data_dir: Path) -> int:
    """Wait until every turn is learnt from; how many are not, when that takes too long."""
    deadline = time.monotonic() + AT_REST_S
    query = "select count(*) from turns where opened_at is not null and done_at is null"
    while (waiting := _one(data_dir, query)) and time.monotonic() < deadline:
        time.sleep(0.3)
    return waiting


def _one(data_dir: Path, query: str) -> int:
    with closing(_journal(data_dir)) as journal:
        (count,) = journal.execute(query).fetchone()
    return int(count)


def _journal(data_dir: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{data_dir / 'journal.db'}?mode=ro", uri=True, timeout=30)


def look_at_users(stack: Stack, ledger: Ledger, users: int) -> int:
    """List every user's memories and the versions of those that have some; how many memories there are.

    What is not found of facts that were never erased is lost.
    """
    semmem, listed = stack.sidecar.semmem, 0
    for user in range(users):
        found: set[int] = set()
        for memory in memories(semmem, ledger.words.word(user, 0)):
            listed += 1
            found |= ledger.saw(user, str(memory), began=time.monotonic(), where="the list after the load")
            if memory["version"] > 1:
                found |= _versions(semmem, ledger, user, memory["id"])
        ledger.missing(user, found)
    return listed


def memories(semmem: SemmemProcess, name: str) -> Iterator[Json]:
    """Of every status, each asked for by its name."""
    for status in MemoryStatus:
        offset, total = 0, 1
        while offset < total:
            query = {"user_id": name, "limit": PAGE, "offset": offset, "status": status.value}
            page = semmem.api("GET", "/v1/memory", params=query)
            yield from page["memories"]
            offset, total = offset + PAGE, page["total"]


def _versions(semmem: SemmemProcess, ledger: Ledger, user: int, memory_id: str) -> set[int]:
    told = semmem.api("GET", f"/v1/memory/{memory_id}/history", params={"user_id": ledger.words.word(user, 0)})
    return ledger.saw(user, str(told), began=time.monotonic(), where="a history after the load")


def look_at_journal(data_dir: Path, ledger: Ledger) -> int:
    """Search every table for what was erased; how many rows there are."""
    gone = {(fact.user, fact.number): fact for fact in ledger.all_facts() if fact.gone}
    rows = 0
    with closing(_journal(data_dir)) as journal:
        journal.row_factory = sqlite3.Row
        talks = {row["id"]: dict(row) for row in journal.execute("select id, project, session from conversations")}
        for table in [name for (name,) in journal.execute("select name from sqlite_master where type = 'table'")]:
            for row in journal.execute(f'select * from "{table}"'):
                rows += 1
                told = dict(row) | (talks.get(row["conversation_id"], NOWHERE) if table == MESSAGES else {})
                text = "\n".join(map(str, row))
                beside = set(ledger.words.found(NOTE.sub("", text) if table == SHOWN else text))
                for canary in ledger.words.found(text):
                    may_stay = table in SOURCES and canary in gone and _may_stay(gone[canary], told)
                    is_noted = canary not in beside and canary in gone and gone[canary].is_repeated
                    if canary in gone and not may_stay and not is_noted:
                        ledger.returned(gone[canary], f"the journal's table {table}")
    return rows


def _may_stay(fact: Fact, row: Json) -> bool:
    """Whether something that was said may hold an erased fact."""
    elsewhere = (fact.gone == ONE_PROJECT and row["project"] != fact.project) or (
        fact.gone == ONE_SESSION and row["session"] != fact.session
    )
    return elsewhere or fact.gone == ONE_MEMORY or fact.is_repeated


def look_at_logs(logs: list[Path], ledger: Ledger) -> int:
    """Search what semmem and Envoy have printed for anybody's words; how many lines there are."""
    lines = 0
    for log in logs:
        with log.open(encoding="utf-8", errors="replace") as printed:
            for line in printed:
                lines += 1
                ledger.saw(NOBODY, line, began=0.0, where=f"the log {log.name}")
    return lines
