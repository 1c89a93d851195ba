"""What MkDocs is told about docs/: the navigation, and where links lead on the site."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from demo.stack import HOME
from deploy.docs_site import github_anchor, linked, navigation, site_name, sources

DOCS = HOME / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


def pages(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    for part in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from pages(part)


def test_the_navigation_has_each_page_once_behind_the_three_doors() -> None:
    nav = navigation(DOCS)
    assert [name for section in nav for name in section] == ["Start", "Use it", "Run it", "Change it"]
    named = Counter(pages(nav))
    assert set(named.values()) == {1}
    outside = {"overview.md", "deploy.md", "tests.md", "security.md", "contributing.md", "changelog.md"}
    in_docs = {page.relative_to(DOCS).as_posix() for page in PAGES}
    assert named.keys() == in_docs | outside | {"decisions/index.md"}


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("stores.md", "stores.md"),
        ("decisions", "decisions/index.md"),
        ("../README.md", "overview.md"),
        ("../tests/README.md", "tests.md"),
        ("../SECURITY.md", "security.md"),
    ],
)
def test_a_page_has_its_name_on_the_site(target: str, name: str) -> None:
    assert site_name(target) == name


@pytest.mark.parametrize(
    ("source", "link", "there"),
    [
        ("docs/backup.md", "[a](running.md#ready)", "[a](running.md#ready)"),
        ("docs/decisions/0001-two-filters-one-sidecar.md", "[a](../quality.md)", "[a](../quality.md)"),
        ("docs/decisions/0001-two-filters-one-sidecar.md", "[a](../../README.md)", "[a](../overview.md)"),
        ("CONTRIBUTING.md", "[a](docs/decisions)", "[a](decisions/index.md)"),
        ("deploy/README.md", "[a](../docs/attach.md#kubernetes)", "[a](attach.md#kubernetes)"),
        ("deploy/README.md", "the [`file`](envoy.yaml), [x](#image)", "the `file`, [x](#image)"),
        ("docs/api.md", "[a](https://example.com/x.md) ![b](studio/c.png)", None),
        ("docs/api.md", "```\n[a](envoy.yaml)\n```\n", None),
        ("docs/api.md", "| `a\\|b` | c\\|d |", "| `a|b` | c\\|d |"),
    ],
)
def test_a_link_leads_on_the_site_where_it_leads_in_the_repository(source: str, link: str, there: str | None) -> None:
    names = {path.relative_to(HOME).as_posix(): name for name, path in sources(DOCS).items()}
    name = names.get(source, source.removeprefix("docs/"))
    text, broken = linked(link.replace("studio/c.png", "bench-mem0.svg"), HOME / source, name, DOCS)
    assert (text, broken) == ((there or link).replace("studio/c.png", "bench-mem0.svg"), [])


def test_a_link_that_leads_nowhere_is_told() -> None:
    assert linked("[a](envoy.yml)", HOME / "deploy" / "README.md", "deploy.md", DOCS)[1] == ["envoy.yml"]


def test_headings_have_the_anchors_of_github() -> None:
    assert github_anchor("What a pod asks for: `cpu` & memory (1 GiB)", "-") == "what-a-pod-asks-for-cpu--memory-1-gib"


@pytest.mark.parametrize("page", [*PAGES, *sources(DOCS).values()], ids=lambda page: str(page.relative_to(HOME)))
def test_a_list_begins_after_an_empty_line(page: Path) -> None:
    """Elsewhere than on GitHub it would be the end of the paragraph before it."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    blocks = re.split(r"\n\s*\n", text)
    assert not [
        block for block in blocks if re.match(r"(?!\s*([-*]|\d+\.) |#)", block) and re.search(r"\n[-*] ", block)
    ]
