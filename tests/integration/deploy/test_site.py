"""The documentation as a site: MkDocs builds it strictly, and a reader's browser fetches nothing from elsewhere."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.integration.deploy.manifests import HOME, TOOLS

FETCHED = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=[\"']?(?:https?:)?//([^\"'\s>]+)")


def build(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    argv: list[str | Path] = [TOOLS / "mkdocs", "build", "--config-file", root / "mkdocs.yml", "--site-dir", site]
    told = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(argv, cwd=root, env=told, capture_output=True, text=True, timeout=120, check=False)


def build_pages(root: Path, links: str, text: str) -> subprocess.CompletedProcess[str]:
    """An index with these links, a page outside of docs/, and a guide with this text; built as the whole is."""
    for name in ("docs/decisions", "deploy"):
        (root / name).mkdir(parents=True)
    for name in ("mkdocs.yml", "deploy/docs_site.py"):
        shutil.copy(HOME / name, root / name)
    (root / "README.md").write_text("# Overview\n\nSee [the guide](docs/guide.md#first).\n")
    (root / "docs" / "README.md").write_text(f"# Index\n\n## Use it\n\n{links}, [c](decisions)\n")
    (root / "docs" / "guide.md").write_text(f"# Guide\n\n## First\n\n{text}\n")
    return build(root, root / "site")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(HOME, folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 80
    assert {found for page in pages for found in FETCHED.findall(page.read_text(encoding="utf-8"))} == set()
    styles = [style.read_text(encoding="utf-8") for style in site.rglob("*.css")]
    assert styles
    assert not [found for style in styles for found in re.findall(r"(?:url\(|@import )[\"']?(?:https?:)?//", style)]


def test_what_would_be_fetched_is_seen() -> None:
    assert FETCHED.findall('<link rel="stylesheet" href="https://fonts.example.com/css">') == ["fonts.example.com/css"]
    assert FETCHED.findall("<script src=//cdn.example.com/x.js></script>") == ["cdn.example.com/x.js"]
    assert FETCHED.findall('<a href="https://example.com"><img src="a.png"></a>') == []


def test_search_finds_every_page(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text())
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert found == {page.relative_to(site).as_posix() for page in site.rglob("*.html")} - {"404.html"}


@pytest.mark.parametrize(
    ("planted", "said"),
    [
        ("", ""),
        ("[a](guide.md#nowhere)", "no such anchor"),
        ("[a](missing.md)", "missing.md, which is not there"),
        ("![a](missing.png)", "missing.png, which is not there"),
        ("[a](../deploy/missing.yaml)", "missing.yaml, which is not there"),
        ("[a](/guide.md)", "/guide.md, which is not there"),
    ],
)
def test_a_link_or_an_anchor_that_leads_nowhere_fails(planted: str, said: str, tmp_path: Path) -> None:
    done = build_pages(tmp_path, "[a](../README.md), [b](guide.md)", planted)
    assert (done.returncode, said in done.stderr) == (1 if planted else 0, True), done.stderr


def test_a_page_that_no_door_leads_to_fails(tmp_path: Path) -> None:
    done = build_pages(tmp_path, "[a](../README.md)", "")
    assert done.returncode == 1
    assert 'not included in the "nav"' in done.stderr
