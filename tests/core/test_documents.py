"""README.md and docs/ against the repository: what they name exists, and what they tell the reader to do can be done.

Looked at are links, and what stands in backticks: paths, code (``retrieval.recall.Recall.search``, below semmem/),
configuration keys, ``python -m`` and ``make``. Pages that tell of what was may name what is gone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

import semmem
from semmem.commands.table import root_parser
from semmem.config import schema
from semmem.config.names import ALIASES
from tests.support.configuration import check
from tests.support.readme import written_configuration

ROOT = Path(semmem.__file__).parents[1]
SEMMEM = ROOT / "semmem"
OF_OTHERS = sorted([*(ROOT / "adapters").glob("*/README.md"), *(ROOT / "examples").glob("*/README.md")])
PAGES = {
    str(page.relative_to(ROOT)): page.read_text(encoding="utf-8")
    for page in (
        ROOT / "README.md",
        *sorted(ROOT.glob("*/README.md")),
        *OF_OTHERS,
        *sorted((ROOT / "docs").rglob("*.md")),
    )
}
PAST = {"docs/history.md", "docs/decisions/0013-the-second-floor-plan.md"} | {
    name for name, text in PAGES.items() if "\n**Superseded by" in text
}
"""Pages that tell of what was: the history, the move itself, and decisions that no longer hold."""
PRESENT = sorted(PAGES.keys() - PAST)
FOLDERS = ("semmem", "demo", "bench", "quality", "training", "tests", "docs", "deploy", "proto", "adapters", "examples")
ROOMS = {path.stem for path in SEMMEM.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
SECTIONS = {path[0] for path, *_ in schema.leaves()}
OTHERS = {"semmem.mutate", "semmem.observe", "semmem.strip_identity", "envoy.filters.http.jwt_authn", "msgspec.Meta"}
"""Names of Envoy's filters, and of other people's code."""
OF_THE_READER = {"config.yaml", "semmem.yaml", "envoy.yaml", "kustomization.yaml", "pyproject.toml"}
"""Files that lie in the reader's folder, or in the root of the repository."""
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?:\.?\*)?")
_SPAN = re.compile(r'\.(?:step|begin|resume|gather|past)\("(semmem\.[a-z_]+)"')
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def ticked(text: str) -> list[str]:
    """What stands in backticks outside of fenced blocks, less a call's brackets and arguments."""
    spans: list[str] = re.findall(r"`([^`\n]+)`", _FENCED.sub("", text))
    return [name for span in spans if (name := re.sub(r"\(.*\)$", "", span))]


# --- what there is ---------------------------------------------------------------------------------------------------


@cache
def paths() -> tuple[str, ...]:
    """Every file and folder below FOLDERS, with a slash in front."""
    found = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts)
    return tuple(f"/{path.relative_to(ROOT)}" for path in found)


@cache
def names_of(module: Path) -> Mapping[str, ast.AST]:
    """What a module defines or imports at its top."""
    return dict(_names(ast.parse(module.read_text(encoding="utf-8")).body))


def _names(body: list[ast.stmt]) -> Iterator[tuple[str, ast.AST]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Assign):
            yield from ((target.id, node) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node
        elif isinstance(node, ast.ImportFrom | ast.Import):
            yield from ((alias.asname or alias.name, node) for alias in node.names)


@cache
def classes() -> Mapping[str, list[ast.ClassDef]]:
    """Every class of semmem by its name."""
    found: dict[str, list[ast.ClassDef]] = {}
    for module in SEMMEM.rglob("*.py"):
        for name, node in names_of(module).items():
            if isinstance(node, ast.ClassDef):
                found.setdefault(name, []).append(node)
    return found


@cache
def spans() -> frozenset[str]:
    """Names of the spans of traces, as the code spells them."""
    texts = (module.read_text(encoding="utf-8") for module in SEMMEM.rglob("*.py"))
    return frozenset(name for text in texts for name in _SPAN.findall(text))


@cache
def keys() -> frozenset[str]:
    """Every configuration key and section, dotted."""
    leaves = [path for path, *_ in schema.leaves()]
    return frozenset(".".join(path[:length]) for path in leaves for length in range(1, len(path) + 1))


def is_path(name: str) -> bool:
    """Whether a file or folder ends so; ``*`` stands for anything."""
    wanted = "*/" + name.rstrip("/")
    return name.rstrip("/") in FOLDERS or any(fnmatch(path, wanted) for path in paths())


def is_key(name: str) -> bool:
    """Whether it is a configuration key, whose lists are written with N or without."""
    path = tuple(name.split("."))
    asked = ".".join(str(part) for part in ALIASES.get(path, path))
    return any(fnmatch(key.replace(".N", ""), asked.replace(".N", "")) for key in keys())


def is_code(name: str) -> bool:
    """Whether a dotted name below semmem leads to a room, a module, or something that a module or its class defines."""
    parts = name.removeprefix("semmem.").split(".")
    place = SEMMEM
    while parts and (place / parts[0]).is_dir():
        place /= parts.pop(0)
    if not parts:
        return True
    module = place / f"{parts[0]}.py"
    if module.exists():
        parts.pop(0)
    else:
        module = place / "__init__.py"
    if not parts:
        return True
    node = names_of(module).get(parts[0])
    return node is not None and (len(parts) == 1 or (len(parts) == 2 and has_member(node, parts[1])))


def has_member(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.ClassDef) and name in dict(_names(node.body))


# --- links -----------------------------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """The headings of a page, as GitHub spells them in links."""
    headings = re.findall(r"^#+ (.+)$", _FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", sorted(PAGES))
def test_every_link_leads_somewhere(name: str) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", _FENCED.sub("", PAGES[name]))
    broken = []
    for link in (link for link in links if "://" not in link):
        path, _, anchor = link.partition("#")
        target = (ROOT / name).parent / path if path else ROOT / name
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


def test_the_index_leads_to_every_page() -> None:
    linked = set(re.findall(r"\]\(([^)\s#]+)", PAGES["docs/README.md"]))
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages <= linked
    assert "decisions" in linked


def test_one_person_can_read_the_pages() -> None:
    """Without the history and the decisions."""
    words = {page.name: len(page.read_text(encoding="utf-8").split()) for page in (ROOT / "docs").glob("*.md")}
    assert sum(words.values()) - words["history.md"] <= 60_000


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESENT)
def test_every_path_exists(name: str) -> None:
    endings = (".py", ".md", ".yaml", ".jsonl", ".txt", ".toml")
    spans = {span.split("#")[0] for span in ticked(PAGES[name]) if not {" ", "<"} & set(span) and span[0] != "/"}
    looks_like_one = {
        span for span in spans if span.endswith(endings) or (span.split("/")[0] in FOLDERS and span.count("/"))
    }
    assert not {span for span in looks_like_one - OF_THE_READER if not is_path(span)}


def test_every_span_has_a_row_on_the_page_of_traces() -> None:
    assert len(spans()) > 10
    assert spans() <= set(ticked(PAGES["docs/tracing.md"]))


@pytest.mark.parametrize("name", PRESENT)
def test_every_dotted_name_is_code_or_a_configuration_key(name: str) -> None:
    endings = (".py", ".md", ".yaml", ".db", ".key")
    dotted = {span for span in ticked(PAGES[name]) if _DOTTED.fullmatch(span) and not span.endswith(endings)}
    ours = {span for span in dotted if span.split(".")[0] in {"semmem"} | ROOMS | SECTIONS} - OTHERS - spans()
    assert not {span for span in ours if not is_code(span) and not is_key(span)}


@pytest.mark.parametrize("name", PRESENT)
def test_every_member_that_is_named_with_its_class_is_there(name: str) -> None:
    pairs = {span for span in ticked(PAGES[name]) if re.fullmatch(r"[A-Z]\w*[a-z]\w*\.[A-Za-z_]\w*", span)}
    for owner, member in (span.split(".") for span in sorted(pairs)):
        assert any(has_member(node, member) for node in classes().get(owner, [])), f"{owner}.{member}"


def test_the_walk_through_the_rooms_names_places_in_the_code() -> None:
    named = {span for span in ticked(PAGES["docs/ARCHITECTURE.md"]) if _DOTTED.fullmatch(span) and is_code(span)}
    assert len(named) > 50
    assert {name.split(".")[0] for name in named} > {"exchange", "turns", "retrieval", "extraction", "lifecycle"}


def test_a_name_that_is_not_in_the_code_is_seen() -> None:
    assert is_code("exchange.exchange.Exchange.request")
    assert is_code("semmem.retrieval.index.hot_memories.HotMemories")
    assert not is_code("exchange.exchange.Exchange.reqest")
    assert not is_code("retrieval.index.cold_memories")
    assert not is_code("exchange.exchange.Exchange.request.more")
    assert is_key("memory.milvus.address")
    assert is_key("signals.blocked_*")
    assert not is_key("memory.milvus.adress")
    assert is_path("semmem/exchange/exchange.py")
    assert is_path("retrieval/recall.py")
    assert not is_path("recal.py")


# --- what the reader is told to do -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESENT)
def test_every_command_exists(name: str) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    code = "\n".join([*re.findall(r"`([^`\n]+)`", PAGES[name]), *_FENCED.findall(PAGES[name])])
    assert set(re.findall(r"\bmake ([a-z][a-z0-9-]+)", code)) <= targets
    modules = set(re.findall(r"python[3]? -m ([a-z_][\w.]*)", code)) - {"pip", "venv", "pytest"}
    bases = {module: ROOT / module.replace(".", "/") for module in modules}
    assert not [
        m for m, base in bases.items() if not base.with_suffix(".py").exists() and not (base / "__main__.py").exists()
    ]


def commands() -> set[str]:
    """semmem's own commands."""
    return set(root_parser().named)


@pytest.mark.parametrize("name", PRESENT)
def test_every_command_of_semmem_that_is_shown_exists(name: str) -> None:
    shown = re.findall(r"(?:`|\$ |bin/)semmem ([a-z]+)", PAGES[name])
    assert set(shown) <= commands()


def test_the_readmes_defaults_are_those_of_the_configuration() -> None:
    told = dict(re.findall(r"^\| `([\w.]+)` \| ([^|]+?) \|", PAGES["README.md"], re.MULTILINE))
    defaults = {".".join(path): field.get_default() for path, field, _ in schema.leaves() if not field.is_required()}
    plain = {key: cell.strip("`") for key, cell in told.items() if key in defaults and " " not in cell}
    assert len(plain) > 5
    for key, cell in plain.items():
        value = defaults[key]
        assert cell == (f"{value:g}" if isinstance(value, float) else str(value or "none")), key


def test_the_configuration_that_the_readme_has_written_is_accepted(tmp_path: Path) -> None:
    config = tmp_path / "semmem.yaml"
    config.write_text(written_configuration(), encoding="utf-8")
    assert check(config, {}, here=False) == []


def test_the_readme_is_short_enough_to_be_read() -> None:
    assert len(PAGES["README.md"].splitlines()) <= 150
