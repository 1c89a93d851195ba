"""Another embedding model, with real processes: refused, by command, while requests come, killed, and undone."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest
import yaml

from semmem.memory import Scope
from tests.reindex.story import FORMER, NEW, fill, override, play, store_of
from tests.reindex.traffic import Person, people
from tests.support import forked
from tests.support.fakes import HashEmbedder
from tests.support.harness import BAG_OF_WORDS, semmem_config, semmem_process
from tests.support.ports import free_port


def configured(folder: Path, backend: str, dimension: int = NEW.dimension) -> Path:
    model, nowhere = {"dimension": dimension}, {"address": f"127.0.0.1:{free_port()}"}
    memory = {"backend": backend, "embedding": model, "milvus": model, "reindex": {"start": "manual"}}
    file = folder / "config.yaml"
    told = semmem_config(folder / "data", {"memory": memory, "listeners": {"api": nowhere}})
    file.write_text(yaml.safe_dump(told))
    return file


def semmem(*words: object) -> subprocess.CompletedProcess[str]:
    return forked.finished(BAG_OF_WORDS, words, timeout_s=100)


async def kept(folder: Path, collection: str, model: HashEmbedder, users: list[str], backend: str) -> dict[str, bool]:
    """The contents in one collection, and whether each has a vector."""
    store = store_of(folder, collection, model, backend)
    await store.open()
    found = [one for user in users for one in await store.list(Scope(user), limit=1000)]
    await store.close()
    return {one.content: one.embedding is not None for one in found}


def told(everybody: list[Person]) -> dict[str, bool]:
    return {thing.content: True for person in everybody for thing in person.things}


@pytest.mark.long(30)
@pytest.mark.timeout(400)
def test_hundreds_of_memories_under_traffic_with_two_kills(tmp_path: Path) -> None:
    """``make reindex-test`` takes 20,000."""
    seen = play(tmp_path, persons=24, things=30, kills=2)
    assert seen.is_right, seen.lines
    assert seen.kills == 2
    assert seen.counted.asked > 480


@pytest.mark.long(30)
@pytest.mark.timeout(400)
def test_qdrants_local_mode_under_traffic_with_a_kill(tmp_path: Path) -> None:
    seen = play(tmp_path, persons=20, things=20, kills=1, backend="qdrant")
    assert seen.is_right, seen.lines
    assert seen.kills == 1
    assert seen.counted.asked > 500


@pytest.mark.long(20)
@pytest.mark.parametrize("backend", ["milvus", "qdrant"])
def test_by_command_while_nothing_runs_in_parts_and_back_again(tmp_path: Path, backend: str) -> None:
    everybody = people(4, 10)
    asyncio.run(fill(tmp_path, everybody, backend))
    names = [person.name for person in everybody]

    refused = semmem("serve", "--config", configured(tmp_path, backend))
    assert refused.returncode == 1
    assert "vectors of hash/words/64" in refused.stderr
    assert "run `semmem reindex`" in refused.stderr

    nothing = semmem("reindex", "--rollback", "--config", configured(tmp_path, backend))
    assert (nothing.returncode, "is kept to go back to" in nothing.stderr) == (1, True)

    part = semmem("reindex", "--limit", "15", "--json", "--config", configured(tmp_path, backend))
    assert part.returncode == 0, part.stderr
    status = json.loads(part.stdout.splitlines()[-1])
    assert (status["state"], status["embedded"], status["users_done"]) == ("paused", 15, 1)

    rest = semmem("reindex", "--config", configured(tmp_path, backend))
    assert rest.returncode == 0, rest.stderr
    assert "100%  4 of 4 users, 40 memories, 40 embedded" in rest.stdout
    assert asyncio.run(kept(tmp_path, "agentic_memory_g2", NEW, names, backend)) == told(everybody)

    back = semmem("reindex", "--rollback", "--json", "--config", configured(tmp_path, backend, FORMER.dimension))
    assert back.returncode == 0, back.stderr
    assert json.loads(back.stdout.splitlines()[-1])["embedded"] == 0
    dropped = semmem("reindex", "--drop-old", "--json", "--config", configured(tmp_path, backend, FORMER.dimension))
    assert json.loads(dropped.stdout)["dropped"] == 1
    assert asyncio.run(kept(tmp_path, "agentic_memory", FORMER, names, backend)) == told(everybody)


@pytest.mark.long(15)
def test_a_running_semmem_shows_how_far_it_is_and_makes_every_vector_anew_when_told(tmp_path: Path) -> None:
    everybody = people(3, 5)
    asyncio.run(fill(tmp_path, everybody))
    with semmem_process(tmp_path, override(15)) as process:
        done = semmem("reindex", "--json", "--config", tmp_path / "config.yaml", "--api", process.api_url)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout.splitlines()[-1])["state"] == "kept"
        assert process.metric("semmem_reindex_state", state="kept") == 1
        assert process.api("GET", "/v1/status")["store"]["reindex"] == "kept"
        assert process.metric("semmem_reindex_memories_done") == 15
        assert process.api("DELETE", "/v1/memory/reindex")["dropped"] == 1
        assert process.api("GET", "/v1/memory/reindex")["state"] == "none"
        process.api("POST", "/v1/memory/reindex", json={"force": True})
        forced = semmem("reindex", "--json", "--config", tmp_path / "config.yaml", "--api", process.api_url)
        status = json.loads(forced.stdout.splitlines()[-1])
        assert (status["state"], status["source"], status["target"], status["embedded"]) == (
            "kept",
            "agentic_memory_g2",
            "agentic_memory_g3",
            15,
        )
        answer = process.http.get(f"{process.api_url}/v1/memory/reindex")
        assert answer.status_code == 401
