"""Backups and exports of a real semmem process, and the lines that they are made of."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from semmem.backup import lines
from semmem.memory import Memory, MemoryStatus, MemoryType, Source
from tests.support import forked
from tests.support.fakes import HashEmbedder, bag_of_words
from tests.support.harness import BAG_OF_WORDS, SemmemProcess, eventually, semmem_config

Answers = list[list[tuple[str, str, float]]]

NOW = 1_790_000_000.0
COMMAND_S = 120.0

TOPICS = ("espresso", "bicycles", "opera", "chess", "gardens", "sailing", "pottery", "physics", "jazz", "falcons")
HABITS = ("likes", "avoids", "teaches", "collects", "studies", "paints", "repairs", "sells", "dreams of", "photographs")


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def told(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


def argv(*words: object) -> list[str]:
    return [sys.executable, "-m", BAG_OF_WORDS, *map(str, words)]


def run(*words: object) -> Ran:
    """The ``semmem`` command as a process, its embedder the tests' bag of words."""
    done = forked.finished(BAG_OF_WORDS, words, timeout_s=COMMAND_S)
    return Ran(done.returncode, done.stdout, done.stderr)


def ask(semmem: SemmemProcess, *words: object) -> Ran:
    """A command that asks a running semmem, and prints a document."""
    config = semmem.data_dir.parent / "config.yaml"
    return run(*words, "--json", "--config", config, "--api", semmem.api_url)


def configured(folder: Path, override: Mapping[str, Any] | None = None) -> Path:
    """A configuration for a semmem whose data is in ``folder``, as semmem_process writes it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(semmem_config(folder / "data", override or {})))
    return path


def person(number: int) -> str:
    return f"person-{number}"


def memories_of(number: int, *, many: int = 8) -> list[Memory]:
    """One person's memories: all of one kind but the first three, which are superseded, quarantined and updated."""
    told = []
    for place in range(many):
        topic, habit = TOPICS[(number + place) % len(TOPICS)], HABITS[place % len(HABITS)]
        content = f"User {habit} {topic} since {1990 + number}"
        status = {0: MemoryStatus.SUPERSEDED, 1: MemoryStatus.QUARANTINED}.get(place, MemoryStatus.ACTIVE)
        said = NOW + number * 100 + place
        told.append(
            Memory(
                id=f"mem_{number}_{place}",
                version=2 if place == 2 else 1,
                type=MemoryType.SEMANTIC,
                content=content,
                user=person(number),
                project="garden" if place == 3 else None,
                source=Source(session=f"s{number}", turn=f"t{number}.{place}", time=said),
                metadata={"superseded_by": f"mem_{number}_3"} if place == 0 else {},
                created_at=said,
                updated_at=said,
                status=status,
                embedding=bag_of_words(content),
            )
        )
    return told


def earlier(memory: Memory) -> Memory:
    """The version before one that was updated."""
    fields = {name: getattr(memory, name) for name in memory.__dataclass_fields__}
    return Memory(
        **fields | {"version": memory.version - 1, "content": "User said otherwise before", "embedding": None}
    )


def written(path: Path, people: int, *, many: int = 8, first: int = 0) -> Path:
    """An export of so many people."""
    everyone = [memories_of(number, many=many) for number in range(first, first + people)]
    text = [lines.digested(lines.Header(lines.FORMAT, NOW, HashEmbedder().signature, 384, people))]
    versions = 0
    for memories in everyone:
        for memory in memories:
            if memory.version > 1:
                text.append(lines.version_line(earlier(memory)))
                versions += 1
            text.append(lines.memory_line(memory))
    text.append(lines.digested(lines.End(people, sum(map(len, everyone)), versions)))
    path.write_bytes(b"".join(text))
    return path


def questions(many: int, people: int) -> list[tuple[str, str]]:
    """(person, question) about what they were told, no two alike."""
    asked = []
    for number in range(many):
        who, place = number % people, 3 + number // people % 5
        topic, habit = TOPICS[(who + place) % len(TOPICS)], HABITS[place % len(HABITS)]
        asked.append((person(who), f"User {habit} which {topic}? Question {number}"))
    return asked


def answers(semmem: SemmemProcess, asked: list[tuple[str, str]]) -> Answers:
    """What the search answers to each: id, content and cosine of every memory, in order. The score fades with time."""
    found = []
    for user, question in asked:
        told = semmem.api("POST", "/v1/memory/search", json={"user_id": user, "query": question, "limit": 10})
        found.append([(one["id"], one["content"], one["cosine"]) for one in told["memories"]])
    return found


def body(path: Path) -> list[bytes]:
    """The lines of an export or of a backup's memories, without the first."""
    return path.read_bytes().splitlines()[1:]


@contextmanager
def writing(semmem: SemmemProcess) -> Iterator[list[str]]:
    """Somebody is told new memories of again and again; gives the ids that were answered for."""
    stop, ids = threading.Event(), list[str]()

    def write() -> None:
        while not stop.is_set():
            number = len(ids)
            told = {"user_id": f"busy-{number % 7}", "content": f"User counted to {number}", "key": f"k{number % 40}"}
            ids.append(semmem.api("POST", "/v1/memory", json=told)["id"])

    thread = threading.Thread(target=write)
    thread.start()
    try:
        eventually(lambda: len(ids) > 5, within_s=60, what="memories are being written")
        yield ids
    finally:
        stop.set()
        thread.join(30)
