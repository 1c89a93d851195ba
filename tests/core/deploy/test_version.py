"""The version is said in semmem/__init__.py. What must repeat it repeats it, and CHANGELOG.md begins with it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from demo.stack import HOME
from deploy import version
from deploy.artefacts import Broken, Source, build_notes
from semmem import __version__
from semmem.backends.milvus import connection
from semmem.backends.qdrant import collection
from semmem.backends.sql import schema, tables
from semmem.backup import erasures, folder, lines
from semmem.cli import main

CHANGES = (HOME / "CHANGELOG.md").read_text()
TOP = re.split(r"^## ", CHANGES, flags=re.MULTILINE)[1]


def test_every_copy_of_the_version_is_the_version() -> None:
    said = {name: set(version.versions_in(HOME / name)) for name in (version.SOURCE, *version.COPIES)}
    assert said == {name: {__version__} for name in said}


def test_nothing_else_that_is_shipped_or_read_names_a_version_of_semmem() -> None:
    files = [*(HOME / "deploy").rglob("*"), *(HOME / "docs").rglob("*.md"), *HOME.glob("*.md"), *HOME.glob("*.toml")]
    texts = [file for file in files if file.is_file() and file.suffix not in {".lock", ".json", ".pyc"}]
    named = {str(file.relative_to(HOME)) for file in texts if version.versions_in(file)}
    assert len(texts) > 100
    assert named == set(version.COPIES)


def test_the_command_says_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"semmem {__version__}\n")


def test_another_version_is_written_everywhere_at_once(tmp_path: Path) -> None:
    for name in (version.SOURCE, *version.COPIES):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HOME / name, tmp_path / name)
    version.main("12.34.56rc1", tmp_path)
    for name in (version.SOURCE, *version.COPIES):
        assert (tmp_path / name).read_text().replace("12.34.56rc1", __version__) == (HOME / name).read_text()
        assert set(version.versions_in(tmp_path / name)) == {"12.34.56rc1"}


def test_the_changelog_begins_with_it_and_with_the_formats_of_its_data() -> None:
    assert re.match(rf"{re.escape(__version__)}, (not released yet|\d+ [A-Z][a-z]+ 20\d\d)\n", TOP)
    (lite,) = re.findall(r"^milvus-lite==(\d+\.\d+)", (HOME / "constraints.txt").read_text(), re.MULTILINE)
    (collections,) = {connection.SCHEMA_VERSION, collection.SCHEMA_VERSION}
    assert (
        f"Data formats: journal {tables.SCHEMA_VERSION} (revision {schema.HEAD}), collections {collections},"
        f" backups {folder.FORMAT}, exports {lines.FORMAT}, lists of erasures {erasures.FORMAT}, Milvus Lite {lite}."
    ) in TOP.split("\n\n")


def test_the_promise_about_earlier_data_names_the_tests_that_hold_it() -> None:
    (promise,) = re.findall(r"^\*\*Upgrades\.\*\*.*?(?=^## )", CHANGES, re.MULTILINE | re.DOTALL)
    builds = {file.name for file in (HOME / "tests").rglob("*_of_???????.*")}
    assert {re.split(r"_of_|\.", name)[1] for name in builds} == set(re.findall(r"\b[0-9a-f]{7}\b", promise))
    tests = re.findall(r"`(tests/[\w/.]+)`", promise)
    assert len(tests) == 3
    assert all((HOME / name).exists() for name in tests)


def test_the_notes_of_a_release_are_its_part_of_the_changelog(tmp_path: Path) -> None:
    build_notes(Source(HOME, "", 0), tmp_path)
    (notes,) = tmp_path.iterdir()
    text = notes.read_text()
    assert text.startswith(f"# semmem {__version__}, ")
    assert len(text.splitlines()) == len(TOP.strip().splitlines())
    assert "What there is: docs/features.md (docs/features.md)." in text
    assert "](" not in text


def test_a_version_that_the_changelog_does_not_know_has_no_notes(tmp_path: Path) -> None:
    (tmp_path / "semmem").mkdir()
    (tmp_path / version.SOURCE).write_text('__version__ = "0.0.9"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGES)
    with pytest.raises(Broken, match=r"no part for 0\.0\.9"):
        build_notes(Source(tmp_path, "", 0), tmp_path)
