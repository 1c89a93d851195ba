"""``semmem backup`` of a process that goes on writing, and ``semmem restore`` elsewhere: the same answers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from semmem.backup import folder
from tests.support.copies import (
    Answers,
    answers,
    argv,
    ask,
    body,
    configured,
    person,
    questions,
    run,
    writing,
    written,
)
from tests.support.harness import SHIPPED_EMBEDDER, eventually, semmem_process

PEOPLE, QUESTIONS = 10, 20

Taken = tuple[Path, Answers, Path]


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Taken:
    """A backup that was taken under load, what was answered before it, and an export of then."""
    place = tmp_path_factory.mktemp("taken")
    with semmem_process(place / "old") as semmem:
        imported = ask(semmem, "import", written(place / "people.jsonl", PEOPLE))
        assert imported.code == 0, imported.err
        expected = answers(semmem, questions(QUESTIONS, PEOPLE))
        with writing(semmem) as ids:
            done, before = ask(semmem, "backup", place / "backup"), len(ids)
            eventually(lambda: len(ids) > before, within_s=60, what="writing goes on")
        assert done.code == 0, done.err
        assert done.told["memories"] >= PEOPLE * 8
        exported = ask(semmem, "export", place / "old.jsonl")
        assert exported.code == 0, exported.err
    return place / "backup", expected, place / "old.jsonl"


def test_what_was_backed_up_under_load_answers_the_same_elsewhere(taken: Taken, tmp_path: Path) -> None:
    backup, expected, old = taken
    assert all(expected)
    restored = run("restore", backup, "--json", "--config", configured(tmp_path / "new"))
    assert restored.code == 0, restored.err
    manifest = folder.read_manifest(backup)
    assert restored.told["memories"] == manifest["memories"]
    with semmem_process(tmp_path / "new") as semmem:
        assert answers(semmem, questions(QUESTIONS, PEOPLE)) == expected
        assert ask(semmem, "export", tmp_path / "new.jsonl").code == 0
        history = semmem.api("GET", "/v1/memory/mem_4_2/history", params={"user_id": person(4)})
    people = {line for line in body(old) if b'"user":"person-' in line}
    assert people == {line for line in body(tmp_path / "new.jsonl") if b'"user":"person-' in line}
    assert [version["content"] for version in history["versions"]] == ["User said otherwise before"]
    statuses = {json.loads(line)["memory"].get("status", "active") for line in people}
    assert statuses == {"active", "superseded", "quarantined"}


@pytest.mark.long(20)
def test_a_backup_of_another_model_is_restored_and_then_moved(taken: Taken, tmp_path: Path) -> None:
    config = str(configured(tmp_path / "new"))
    words = [sys.executable, "-m", SHIPPED_EMBEDDER, "restore", str(taken[0]), "--config", config]
    restored = subprocess.run(words, capture_output=True, text=True, check=False)
    assert restored.returncode == 0, restored.stderr
    with semmem_process(tmp_path / "new", program=SHIPPED_EMBEDDER) as semmem:
        eventually(lambda: semmem.api("GET", "/v1/memory/reindex")["state"] == "kept", within_s=60, what="moved")
        assert len(semmem.memories(person(1))) == 8
        who, question = questions(1, PEOPLE)[0]
        asked = {"user_id": who, "query": question}
        assert semmem.api("POST", "/v1/memory/search", json=asked)["memories"]


def test_a_flipped_byte_is_noticed_with_its_place(taken: Taken, tmp_path: Path) -> None:
    backup = taken[0]
    config = configured(tmp_path / "new")
    for name in (folder.JOURNAL, folder.MEMORIES, folder.FENCE, folder.MANIFEST):
        path = backup / name
        whole = path.read_bytes()
        place = len(whole) // 2
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            refused = run("restore", backup, "--config", config)
        finally:
            path.write_bytes(whole)
        assert refused.code == 1
        assert name in refused.err
        if name in (folder.JOURNAL, folder.MEMORIES):
            first = place // folder.BLOCK_BYTES * folder.BLOCK_BYTES
            assert f"between byte {first} and byte " in refused.err
        assert not (tmp_path / "new" / "data").exists()


def test_a_data_dir_with_anything_in_it_is_refused_and_left_alone(taken: Taken, tmp_path: Path) -> None:
    config = configured(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "journal.db").write_bytes(b"somebody's")
    refused = run("restore", taken[0], "--config", config)
    assert refused.code == 1
    assert "is not empty (journal.db)" in refused.err
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["journal.db"]


def test_a_restore_that_is_killed_is_not_served_and_begins_anew(taken: Taken, tmp_path: Path) -> None:
    config = configured(tmp_path)
    staging = tmp_path / "data" / "restoring"
    words = argv("restore", taken[0], "--config", config)
    with subprocess.Popen(words, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as restoring:
        eventually(lambda: (staging / "milvus").exists(), within_s=60, what="the restore is under way")
        os.kill(restoring.pid, signal.SIGKILL)
    assert not (tmp_path / "data" / "journal.db").exists()
    served = run("serve", "--config", config)
    assert served.code == 1
    assert "was not finished: run `semmem restore` again" in served.err
    again = run("restore", taken[0], "--config", config)
    assert again.code == 0, again.err
    assert not staging.exists()
    with semmem_process(tmp_path) as semmem:
        assert len(semmem.memories(person(1))) == 8


def test_a_backup_that_is_killed_leaves_nothing_with_its_name(tmp_path: Path) -> None:
    with semmem_process(tmp_path / "old") as semmem:
        assert ask(semmem, "import", written(tmp_path / "people.jsonl", 40, many=10)).code == 0
        config, destination = tmp_path / "old" / "config.yaml", tmp_path / "backup"
        words = argv("backup", destination, "--config", config, "--api", semmem.api_url)
        with subprocess.Popen(words, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as taking:
            eventually((tmp_path / "backup.part").exists, within_s=60, what="the backup is under way")
            os.kill(taking.pid, signal.SIGKILL)
        assert not destination.exists()
        refused = run("restore", tmp_path / "backup.part", "--config", configured(tmp_path / "new"))
        assert refused.code == 1
        assert "has no manifest.json" in refused.err
        eventually(lambda: not (semmem.data_dir / "backup.tmp").exists(), within_s=60, what="the copies of it are gone")
        again = ask(semmem, "backup", destination)
        assert again.code == 0, again.err
    assert not (tmp_path / "backup.part").exists()
    again = ask(semmem, "backup", destination)
    assert again.code == 1
    assert "is there already" in again.err
