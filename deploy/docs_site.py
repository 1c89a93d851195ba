"""What MkDocs is told about docs/ beyond mkdocs.yml: a hook of it, and nothing that semmem imports.

The navigation is docs/README.md: its headings are the doors, its links the pages, in that order. Pages that it names
outside of docs/ (README.md, CHANGELOG.md, ...) are pages of the site as well. A link to any other file of the
repository is only its words here; a file that is not there is a warning, which ``strict`` makes an error. Headings have
GitHub's anchors, and ``\\|`` in a cell's code is a bar, as it is there.
"""

from __future__ import annotations

import logging
import posixpath
import re
from pathlib import Path
from typing import Any

log = logging.getLogger("mkdocs.hooks.docs_site")
INDEX, DECISIONS = "README.md", "decisions"
_DOOR = re.compile(r"^## (.+)$", re.MULTILINE)
_LINK = re.compile(r"\[([^\[\]]*)\]\(([^)\s#]*)(#[^)\s]*)?\)")
_ROW, _CODE = re.compile(r"^\|.*", re.MULTILINE), re.compile(r"`[^`\n]+`")
_FENCE = re.compile(r"^( *```.*?^ *```)", re.MULTILINE | re.DOTALL)


def doors(docs: Path) -> dict[str, list[str]]:
    """Links of docs/README.md by heading, in its order; those above the first heading under ``""``."""
    before, *rest = _DOOR.split((docs / INDEX).read_text(encoding="utf-8"))
    parts = {"": before} | dict(zip(rest[::2], rest[1::2], strict=True))
    return {door: [target for _, target, _ in _LINK.findall(text)] for door, text in parts.items()}


def site_name(target: str) -> str:
    """What a page that docs/README.md names is called on the site, relative to docs/."""
    if target == DECISIONS:
        return f"{DECISIONS}/index.md"
    if not target.startswith("../"):
        return target
    folder, name = posixpath.split(target.removeprefix("../"))
    return f"{folder or 'overview'}.md" if name == INDEX else name.lower()


def decisions(docs: Path) -> list[str]:
    return sorted(f"{DECISIONS}/{page.name}" for page in (docs / DECISIONS).glob("*.md"))


def navigation(docs: Path) -> list[Any]:
    """As MkDocs has it: pages, and sections by name."""
    by_door = doors(docs)
    first = {"Start": [INDEX, *map(site_name, by_door.pop(""))]}
    return [first, *({door: [_entry(docs, each) for each in targets]} for door, targets in by_door.items())]


def _entry(docs: Path, target: str) -> Any:
    name = site_name(target)
    return {"Decisions": [name, *decisions(docs)]} if target == DECISIONS else name


def sources(docs: Path) -> dict[str, Path]:
    """Files of the pages that lie outside of docs/, by their names on the site."""
    named = [target for targets in doors(docs).values() for target in targets]
    return {site_name(each): (docs / each).resolve() for each in named if each.startswith("../")}


def linked(text: str, source: Path, name: str, docs: Path) -> tuple[str, list[str]]:
    """A page with the site's links, and those of its links that lead nowhere.

    ``source`` is its file, ``name`` what the site calls it; both say where its links begin.
    """
    names = {path: each for each, path in sources(docs).items()} | {docs / DECISIONS: site_name(DECISIONS)}
    broken = []

    def rewritten(link: re.Match[str]) -> str:
        words, target, anchor = link[1], link[2], link[3] or ""
        if not target or ":" in target:
            return link[0]
        path = (source.parent / target).resolve()
        if not path.exists():
            broken.append(target)
        found = names.get(path)
        if found is None and path.is_file() and path.is_relative_to(docs):
            found = path.relative_to(docs).as_posix()
        return f"[{words}]({posixpath.relpath(found, posixpath.dirname(name) or '.')}{anchor})" if found else words

    parts = _FENCE.split(text)
    parts[::2] = [_LINK.sub(rewritten, _ROW.sub(_with_plain_bars, part)) for part in parts[::2]]
    return "".join(parts), broken


def _with_plain_bars(row: re.Match[str]) -> str:
    return _CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0])


def github_anchor(heading: str, _separator: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


# --- called by MkDocs ------------------------------------------------------------------------------------------------


def on_config(config: Any) -> Any:
    config.nav = navigation(Path(config.docs_dir))
    config.mdx_configs.setdefault("toc", {})["slugify"] = github_anchor
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File  # in the environment of MkDocs alone

    docs = Path(config.docs_dir)
    index = ["# Decisions", ""]
    for name in decisions(docs):
        title = (docs / name).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        index.append(f"- [{title}]({posixpath.basename(name)})")
    files.append(File.generated(config, site_name(DECISIONS), content="\n".join(index)))
    for name, source in sources(docs).items():
        files.append(File.generated(config, name, abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    docs, name = Path(config.docs_dir), page.file.src_uri
    if name == site_name(DECISIONS):
        return markdown
    text, broken = linked(markdown, sources(docs).get(name, docs / name), name, docs)
    for target in broken:
        log.warning("%s links to %s, which is not there", name, target)
    return text
