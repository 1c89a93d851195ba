"""Data that an earlier build has written goes through backup and restore."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from semmem.backup import folder
from tests.core.backends.test_journal_schema import written_by_an_earlier_build
from tests.support.copies import ask, configured, run, written
from tests.support.harness import semmem_process


def rows(path: Path, table: str) -> set[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as journal:
        return set(journal.execute(f"SELECT * FROM {table}"))


def test_a_journal_of_an_earlier_build_goes_through_backup_and_restore(tmp_path: Path) -> None:
    data = tmp_path / "old" / "data"
    data.mkdir(parents=True)
    written_by_an_earlier_build(data / "journal.db")
    learns_nothing = {"memory": {"extraction": {"poll_interval_s": 3600.0}}}
    with semmem_process(tmp_path / "old", learns_nothing) as semmem:
        assert ask(semmem, "import", written(tmp_path / "people.jsonl", 2)).code == 0
        done = ask(semmem, "backup", tmp_path / "backup")
        assert done.code == 0, done.err
    restored = run("restore", tmp_path / "backup", "--config", configured(tmp_path / "new"))
    assert restored.code == 0, restored.err
    for table in ("turns", "versions", "accesses", "batches", "answers"):
        kept = rows(tmp_path / "backup" / folder.JOURNAL, table)
        assert kept
        assert rows(tmp_path / "new" / "data" / "journal.db", table) == kept
    with semmem_process(tmp_path / "new", learns_nothing) as semmem:
        assert len(semmem.memories("person-1")) == 8


def test_a_backup_of_an_earlier_build_is_restored_and_brought_up_to_date(tmp_path: Path) -> None:
    """Its journal is put into a backup as it was then."""
    with semmem_process(tmp_path / "old") as semmem:
        assert ask(semmem, "import", written(tmp_path / "people.jsonl", 1)).code == 0
        assert ask(semmem, "backup", tmp_path / "backup").code == 0
    backup = tmp_path / "backup"
    (backup / folder.JOURNAL).unlink()
    written_by_an_earlier_build(backup / folder.JOURNAL)
    manifest = {**folder.read_manifest(backup), "files": folder.describe_all(backup)}
    folder.write_manifest(backup, folder.signed({name: manifest[name] for name in manifest if name != "digest"}))
    restored = run("restore", backup, "--config", configured(tmp_path / "new"), "--erasures", backup)
    assert restored.code == 0, restored.err
    with semmem_process(tmp_path / "new") as semmem:
        assert len(semmem.memories("person-0")) == 8
        assert semmem.turns("ada")
