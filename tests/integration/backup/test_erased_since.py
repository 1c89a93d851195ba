"""What was erased after a backup or an export was taken does not come back with it, as far as anybody knows of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.copies import Ran, ask, configured, person, run, written
from tests.support.harness import semmem_process

PEOPLE = 4
GONE, WITHOUT = person(1), person(2)
ERASED_MEMORY = "mem_2_4"


@pytest.fixture(scope="module")
def erased(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a backup, an export of before, the data of afterwards, and a file of erasures."""
    place = tmp_path_factory.mktemp("erased")
    with semmem_process(place / "old") as semmem:
        assert ask(semmem, "import", written(place / "people.jsonl", PEOPLE)).code == 0
        assert ask(semmem, "backup", place / "backup").code == 0
        assert ask(semmem, "export", place / "before.jsonl").code == 0
        semmem.api("DELETE", "/v1/memory", params={"user_id": GONE})
        semmem.api("DELETE", f"/v1/memory/{ERASED_MEMORY}", params={"user_id": WITHOUT})
        marked = ask(semmem, "erasures", place / "erasures.json")
        assert (marked.code, marked.told["marks"]) == (0, 2)
        again = ask(semmem, "import", place / "before.jsonl")
        assert again.code == 0, again.err
        told = again.told
        assert (told["erased"], told["imported"], told["updated"], told["conflicts"]) == (8 + 1 + 1, 0, 0, [])
        assert told["unchanged"] == PEOPLE * 8 - 9
        assert (semmem.memories(GONE), len(semmem.memories(WITHOUT))) == ([], 7)
    return place


def restored(place: Path, tmp_path: Path, *known: Path) -> Ran:
    words = [word for path in known for word in ("--erasures", path)]
    done = run("restore", "--json", place / "backup", "--config", configured(tmp_path), *words)
    assert done.code == 0, done.err
    return done


@pytest.mark.parametrize("known", ["old/data", "old/data/journal.db", "erasures.json"])
def test_what_the_newer_data_or_a_file_tells_of_is_not_restored(erased: Path, tmp_path: Path, known: str) -> None:
    done = restored(erased, tmp_path, erased / known)
    assert (done.told["memories"], done.told["erased_memories"], done.told["users"]) == (PEOPLE * 8 - 9, 9, PEOPLE - 1)
    with semmem_process(tmp_path) as semmem:
        assert semmem.memories(GONE) == []
        assert ERASED_MEMORY not in {memory["id"] for memory in semmem.memories(WITHOUT)}
        assert len(semmem.memories(WITHOUT)) == 7
        again = ask(semmem, "import", erased / "before.jsonl")
        assert again.told["erased"] == 10, "the marks came along"
        assert semmem.memories(GONE) == []


def test_without_anything_that_tells_of_it_it_is_back_and_said_so_before(erased: Path, tmp_path: Path) -> None:
    done = restored(erased, tmp_path)
    assert (done.told["memories"], done.told["erased_memories"]) == (PEOPLE * 8, 0)
    assert "what was erased after the backup was taken comes back with it" in done.err


def test_a_file_of_erasures_that_was_changed_is_refused(erased: Path, tmp_path: Path) -> None:
    changed = tmp_path / "erasures.json"
    changed.write_text((erased / "erasures.json").read_text().replace('"at":1', '"at":2', 1))
    refused = run("restore", erased / "backup", "--config", configured(tmp_path / "new"), "--erasures", changed)
    assert refused.code == 1
    assert "was changed" in refused.err
    assert not (tmp_path / "new" / "data").exists()
