"""What semmem writes for whoever operates it, looked through after the load: commands' output, exports, backups, and
the disk itself after a purge."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from semmem.backup.folder import MANIFEST, MEMORIES
from tests.canary.after import look_at_journal, memories
from tests.canary.ledger import NOBODY, ONE_MEMORY, ONE_PROJECT, ONE_SESSION, Fact, Ledger
from tests.canary.sentences import QUESTIONS
from tests.canary.stack import Stack
from tests.support import forked
from tests.support.collector import decoded
from tests.support.disk import views
from tests.support.harness import SemmemProcess

PEOPLE = 1
"""Users whose memories are asked for by commands: each of these takes a process."""
COMMAND_S = 120.0

IN_PART = (ONE_MEMORY, ONE_PROJECT, ONE_SESSION)
"""Deletions that leave what was said elsewhere, and for one memory what it came from."""


class Failed(Exception):
    """A command did not do what it was asked for."""


def look_at_commands(stack: Stack, ledger: Ledger, users: int) -> int:
    """Ask the running semmem by its own commands; how many were run. Raises Failed."""
    semmem, ran = stack.sidecar.semmem, 0
    for user in range(users):
        name, began = ledger.words.word(user, 0), time.monotonic()
        if not (memory := next(memories(semmem, name), None)):
            continue
        for asked in _asked(name, memory["id"]):
            ledger.saw(user, run(stack, asked), began=began, where=f"what `semmem {asked[0]}` prints")
            ran += 1
        if ran >= PEOPLE * len(_asked("", "")):
            break
    for asked in (["status"], ["token", "list"], ["check", str(_config(stack))]):
        ledger.saw(NOBODY, run(stack, asked), began=0.0, where=f"what `semmem {asked[0]}` prints")
        ran += 1
    return ran


def _asked(name: str, memory: str) -> list[list[str]]:
    whose = ["--user", name]
    return [
        ["memories", *whose],
        ["show", memory, *whose],
        ["show", memory, *whose, "--json"],
        ["preview", QUESTIONS[0], *whose],
    ]


def look_at_copies(stack: Stack, ledger: Ledger, folder: Path) -> int:
    """An export, a backup and the list of erasures, taken by their commands; how many lines they have."""
    folder.mkdir()
    exported, backup, erasures = folder / "memories.jsonl", folder / "backup", folder / "erasures"
    for asked in (["export", str(exported)], ["backup", str(backup)], ["erasures", str(erasures)]):
        ledger.saw(NOBODY, run(stack, asked), began=0.0, where=f"what `semmem {asked[0]}` prints")
    ledger.saw(NOBODY, erasures.read_text(), began=0.0, where="the list of erasures")
    return look_at_export(exported, ledger) + look_at_backup(backup, ledger)


def run(stack: Stack, asked: Sequence[str]) -> str:
    """What a command prints, on both streams. Raises Failed."""
    where = [] if asked[0] == "check" else ["--config", str(_config(stack))]
    done = forked.finished("semmem", [*asked, *where], timeout_s=COMMAND_S)
    if done.returncode:
        raise Failed(f"semmem {asked[0]}: exit status {done.returncode}: {done.stderr[-300:]}")
    return f"{done.stdout}\n{done.stderr}"


def _config(stack: Stack) -> Path:
    return stack.sidecar.folder / "config.yaml"


def look_at_backup(folder: Path, ledger: Ledger) -> int:
    """Its journal, its memories and its manifest; how many rows and lines."""
    ledger.saw(NOBODY, (folder / MANIFEST).read_text(), began=0.0, where="a backup's manifest")
    return look_at_journal(folder, ledger) + look_at_export(folder / MEMORIES, ledger)


def look_at_export(path: Path, ledger: Ledger) -> int:
    """Each line is its user's; how many there are."""
    lines, began = 0, time.monotonic()
    with path.open(encoding="utf-8") as file:
        for line in file:
            lines += 1
            owner = _owner(json.loads(line), ledger)
            ledger.saw(owner, line, began=began, where=f"a line of {path.name}")
    return lines


def _owner(line: dict[str, Any], ledger: Ledger) -> int:
    name = line.get("memory", {}).get("user", "")
    return next((user for user, number in ledger.words.found(name) if number == 0), NOBODY)


def look_at_spans(bodies: Iterable[bytes], ledger: Ledger) -> int:
    """Everything that was sent to a collector of traces; how many spans there are. None of it may be of anybody."""
    spans = [span for body in bodies for span in decoded(body)]
    for span in spans:
        ledger.saw(NOBODY, str(span), began=0.0, where=f"the span {span.name}")
    return len(spans)


def purge(semmem: SemmemProcess) -> None:
    """For a user who has nothing: what others erased leaves the files."""
    receipt = semmem.api("DELETE", "/v1/memory", params={"user_id": "nobody at all", "purge": True}, timeout=300.0)
    if not receipt["purged"]:
        raise Failed("the files were not purged")


def look_at_disk(folder: Path, ledger: Ledger) -> int:
    """Search every file for what users had erased whole; how many files there are. What was erased ``IN_PART`` may stay
    where it came from (``after.SOURCES``)."""
    gone = {(fact.user, fact.number): fact for fact in ledger.all_facts() if _is_gone_from_disk(fact)}
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    for path in files:
        for canary in _found(path, ledger):
            if canary in gone:
                ledger.returned(gone[canary], f"the file {path.relative_to(folder)}")
    return len(files)


def _found(path: Path, ledger: Ledger) -> Iterator[tuple[int, int]]:
    for view in views(path):
        yield from ledger.words.found(view.decode("latin-1"))


def _is_gone_from_disk(fact: Fact) -> bool:
    return bool(fact.gone) and fact.gone not in IN_PART and fact.repeated <= fact.erased_at
