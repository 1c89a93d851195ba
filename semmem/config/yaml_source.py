"""Reading YAML strictly: every key once, every key text, and a line and column for every value."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from semmem.config.problems import Loc, Problem, Refused, dotted

FILE_BYTES_MAX = 1024 * 1024

_CORE_TYPES = frozenset({"null", "bool", "int", "float", "str", "seq", "map"})


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed YAML source: its data (without keys that are not text), and its nodes, which know where they stand."""

    name: str
    tree: Any
    root: yaml.Node | None = None
    problems: tuple[Problem, ...] = ()

    def position(self, loc: Loc) -> str:
        """``name:line:column`` of a value, or of the nearest section around it; empty without a file."""
        node = self.root
        for part in loc:
            child = _child(node, part)
            if child is None:
                break
            node = child
        return _position(self.name, node.start_mark) if node is not None else ""


class _Loader(yaml.SafeLoader):
    """YAML's core types only: no dates (they are text), no sets, and no merge keys (their cost can double per line)."""

    yaml_implicit_resolvers = {  # noqa: RUF012  (PyYAML's own way)
        first: [(tag, regexp) for tag, regexp in rules if tag.rpartition(":")[2] in _CORE_TYPES]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    yaml_constructors = {  # noqa: RUF012
        tag: construct
        for tag, construct in yaml.SafeLoader.yaml_constructors.items()
        if tag is None or tag.rpartition(":")[2] in _CORE_TYPES
    }

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, LookupError, AttributeError, TypeError, OverflowError):
            # PyYAML lets the errors of int() and the like through, and they quote the value.
            raise yaml.constructor.ConstructorError(
                problem="is not a valid value of its type", problem_mark=node.start_mark
            ) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        mapping = super().construct_mapping(node, deep=deep)
        return {key: value for key, value in mapping.items() if isinstance(key, str)}


def read_file(path: Path) -> Document:
    """Raises Refused when the file cannot be read, is not YAML, or is not a mapping."""
    name = path.name
    try:
        with path.open("rb") as file:
            raw = file.read(FILE_BYTES_MAX + 1)
        text = raw.decode("utf-8-sig")
    except OSError as error:
        why = (error.strerror or "cannot be read").lower()
        raise Refused("", why, "name a file that semmem may read", str(path)) from None
    except UnicodeDecodeError as error:
        raise Refused("", f"byte {error.start} is not UTF-8", "save it as UTF-8", name) from None
    except ValueError:
        raise Refused("", "is not a file name", "name a file", repr(str(path))) from None
    if len(raw) > FILE_BYTES_MAX:
        raise Refused("", "is larger than 1 MiB", "shorten it", name)
    document = parse(text, name)
    if document.tree is None:
        return replace(document, tree={})
    if not isinstance(document.tree, dict):
        raise Refused("", "is not a mapping", "begin with a key such as memory:", f"{name}:1:1")
    return document


def parse(text: str, name: str) -> Document:
    """Any YAML. Keys given twice (the last holds) or not text are problems of the document. Raises Refused with line
    and column, never with the text itself."""
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        # deep, because only deep construction refuses a list that contains itself
        tree = loader.construct_object(root, deep=True) if root is not None else None
    except (yaml.YAMLError, RecursionError) as error:
        raise _syntax_error(error, text, name) from None
    problems = () if root is None else tuple(_inspect(root, (), name, set()))
    return Document(name, tree, root, problems)


def _syntax_error(error: Exception, text: str, name: str) -> Refused:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        reason = error.problem or error.context or "is not YAML"
        where = _position(name, mark) if mark else name
        advice = "correct the file there; a value with : or # in it needs quotes"
        return Refused(
            "", f"not valid YAML: {reason}", "indent with spaces, not tabs" if "\\t" in reason else advice, where
        )
    if isinstance(error, yaml.reader.ReaderError):
        before = text[: error.position].split("\n")
        where = f"{name}:{len(before)}:{len(before[-1]) + 1}"
        return Refused("", "not valid YAML: a control character", "remove it", where)
    return Refused("", "is nested too deeply", "remove levels", name)


def _inspect(node: yaml.Node, loc: Loc, name: str, seen: set[int]) -> Iterator[Problem]:
    """Keys that are given twice, or are no text."""
    if id(node) in seen:  # an alias: already looked at
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _inspect(item, (*loc, index), name, seen)
    first: dict[str, int] = {}
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        where = _position(name, key.start_mark)
        if key.tag != "tag:yaml.org,2002:str":
            yield Problem(dotted(loc), "", "has a key that is not text", "put the key in quotes", where)
            continue
        here = (*loc, key.value)
        if key.value in first:
            reason = f"is given twice, first in line {first[key.value]}"
            yield Problem(dotted(here), "", reason, "keep one of them", where)
        first.setdefault(key.value, key.start_mark.line + 1)
        yield from _inspect(value, here, name, seen)


def _child(node: yaml.Node | None, part: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == part), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        item: yaml.Node = node.value[part]
        return item
    return None


def _position(name: str, mark: Any) -> str:
    return f"{name}:{mark.line + 1}:{mark.column + 1}"
