"""From a file and an environment to Settings, or to the list of everything that is wrong with them; and what a running
semmem takes up of others.

Environment variables override the file: ``SEMMEM_MEMORY__MILVUS__ADDRESS`` sets ``memory.milvus.address``. Two
underscores step into a section, a number names a list's element, case does not matter. Text is taken as it stands;
everything else is read as YAML (``true``, ``7``, ``[a, b]``). Variables of other systems are in names.py.
"""

import difflib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain
from pathlib import Path
from typing import Any, Literal, get_origin

from pydantic import SecretStr, ValidationError
from pydantic_core import ErrorDetails

from semmem.config import schema
from semmem.config.names import ALIASES, Name, adopt, keys, value_at, without
from semmem.config.names import variables as names_of_others
from semmem.config.problems import NOTHING, REDACTED, ConfigError, Finding, Loc, Problem, Refused, dotted, found, shown
from semmem.config.rules import conflicts
from semmem.config.settings import Settings
from semmem.config.surroundings import surroundings
from semmem.config.yaml_source import Document, parse, read_file

PREFIX = "SEMMEM_"
RESERVED = frozenset({"SEMMEM_CONFIG"})
"""Read by the command line: the path of the configuration file."""

_KUBERNETES = re.compile(r"SEMMEM(_[A-Z0-9]+)*_(SERVICE_(HOST|PORT(_[A-Z0-9]+)*)|PORT(_\d+_(TCP|UDP|SCTP)(_[A-Z]+)?)?)")
"""Variables that Kubernetes puts into every pod beside a Service named semmem or semmem-..."""


@dataclass(frozen=True, slots=True)
class Overridden:
    """A tree with the overrides in it, which variable set which place, and what could not be set."""

    tree: dict[str, Any]
    variables: dict[Loc, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def variable_name(loc: Loc) -> str:
    """The environment variable that sets a place."""
    return PREFIX + "__".join(str(part).upper() for part in loc)


def override(tree: dict[str, Any], environ: Mapping[str, str]) -> Overridden:
    """The tree (left as it was) with every ``SEMMEM_`` variable applied; whole lists before their elements."""
    variables: dict[Loc, str] = {}
    problems: list[Problem] = []
    for name, text in sorted(_ours(environ), key=_whole_lists_first):
        try:
            loc = _place(name)
            if loc in variables:
                raise Refused(dotted(loc), f"sets what {variables[loc]} sets too", "keep one of them", name)
            tree = _with(tree, loc, _translated(name, _value(name, loc, text)), name, loc)
        except Refused as refused:
            problems.append(refused.problem)
        else:
            variables[loc] = name
    for other in names_of_others().values():
        given = environ.get(other.name)
        if not given or not other.becomes:  # maybe meant for another program beside this one: remarks() tells of it
            continue
        try:
            tree = _adopted(tree, variables, other, given)
        except Refused as refused:
            problems.append(refused.problem)
    return Overridden(tree, variables, tuple(problems))


def _adopted(tree: dict[str, Any], variables: dict[Loc, str], other: Name, text: str) -> dict[str, Any]:
    """The tree with what another system's variable means; of the rank of our own. Raises Refused."""
    loc = other.target
    value = other.value(_value(other.name, loc, text))
    if (first := variables.get(loc)) is None:
        variables[loc] = other.name
        return _with(tree, loc, value, other.name, loc)  # type: ignore[no-any-return]
    if value_at(tree, loc) != value:
        raise Refused(dotted(loc), f"differs from {first}, which sets the same", "keep one of them", other.name)
    return tree


def _ours(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, text in environ.items():
        upper = name.upper()
        if upper.startswith(PREFIX) and upper not in RESERVED and not _KUBERNETES.fullmatch(upper):
            yield name, text


def _whole_lists_first(item: tuple[str, str]) -> tuple[list[tuple[int, str]], str]:
    parts = item[0].lower().split("__")
    return [(int(part) if _is_index(part) else -1, part) for part in parts], item[0]


def _is_index(part: str) -> bool:
    return re.fullmatch(r"[0-9]{1,4}", part) is not None


def _place(name: str) -> Loc:
    loc: Loc = tuple(int(part) if _is_index(part) else part for part in name[len(PREFIX) :].lower().split("__"))
    loc = ALIASES.get(loc, loc)
    annotation = schema.type_at(loc)
    if annotation is None:
        raise Refused(dotted(loc), "names no key of the configuration", _nearest_variable(name), name)
    if schema.is_section(annotation):
        example = variable_name((*loc, next(iter(annotation.model_fields))))
        raise Refused(dotted(loc), "names a whole section", f"set its keys one by one, for example {example}", name)
    return loc


def _translated(name: str, value: Any) -> Any:
    """A value of another system's, where the variable is made of its key."""
    return next((key.value(value) for key in keys() if key.becomes and variable_name(key.loc) == name.upper()), value)


def _nearest_variable(name: str) -> str:
    known = (variable_name(leaf.path) for leaf in schema.leaves())
    flat = {variable.replace("__", "_"): variable for variable in known}
    near = difflib.get_close_matches(name.upper().replace("__", "_"), flat, n=1, cutoff=0.75)
    return f"did you mean {flat[near[0]]}?" if near else "unset it, or see docs/configuration.md for the keys"


def _value(name: str, loc: Loc, text: str) -> Any:
    annotation = schema.type_at(loc)
    if annotation in (str, SecretStr) or get_origin(annotation) is Literal:  # nothing else is read into its spelling
        return text
    try:
        document = parse(text, name)
    except Refused as refused:
        raise Refused(dotted(loc), refused.problem.reason, f"give {schema.describe(loc)}", name) from None
    for problem in document.problems:
        raise Refused(dotted(loc), f"{problem.path}: {problem.reason}", problem.remedy, name)
    return document.tree


def _with(tree: Any, path: Loc, value: Any, name: str, loc: Loc) -> Any:
    """A copy with one value set. Aliased YAML nodes are shared, so nothing is changed in place."""
    if not path:
        return value
    head, rest = path[0], path[1:]
    container: Any = [] if isinstance(head, int) else {}
    if tree is not None and not isinstance(tree, type(container)):
        raise Refused(dotted(loc), "cannot be set inside a value of another kind", "correct the file first", name)
    if isinstance(head, str):
        section: dict[str, Any] = tree or {}
        return {**section, head: _with(section.get(head), rest, value, name, loc)}
    items: list[Any] = list(tree or ())
    if head > len(items):
        raise Refused(dotted(loc), f"skips elements: the list has {len(items)}", "number them from 0 on", name)
    items[head : head + 1] = [_with(items[head] if head < len(items) else None, rest, value, name, loc)]
    return items


ENDING = "_env"
DIGEST_CHARS = 16


def resolved(tree: Any, annotation: Any, at: Loc, environ: Mapping[str, str], findings: list[Finding]) -> Any:
    """The tree (left as it was) with every ``<secret>_env`` of the schema read into ``<secret>``."""
    if isinstance(tree, list) and schema.is_section(item := schema.item_type(annotation)):
        return [resolved(each, item, (*at, index), environ, findings) for index, each in enumerate(tree)]
    if not (isinstance(tree, dict) and schema.is_section(annotation)):
        return tree
    for name, declared in annotation.model_fields.items():
        if name.endswith(ENDING):
            tree = _filled(name.removesuffix(ENDING), tree, at, environ, findings)
        elif name in tree:
            tree = {**tree, name: resolved(tree[name], declared.annotation, (*at, name), environ, findings)}
    return tree


def _filled(
    name: str, section: dict[str, Any], at: Loc, environ: Mapping[str, str], findings: list[Finding]
) -> dict[str, Any]:
    variable = section.get(f"{name}_env")
    if not isinstance(variable, str) or not variable.isidentifier():  # The schema refuses what is not a name.
        return section
    if section.get(name):
        findings.append(Finding((*at, name), REDACTED, f"is given, and so is {name}_env", "keep one of them"))
        return section
    if environ.get(variable):
        return {**section, name: environ[variable]}
    named = f" {variable}" if variable.isupper() else ""  # Anything else may be the secret itself, pasted.
    reason = f"names an environment variable{named} that is not set"
    findings.append(Finding((*at, f"{name}_env"), NOTHING, reason, f"set it, or clear {name}_env"))
    return section


def validate(tree: dict[str, Any]) -> tuple[Settings, list[Finding]]:
    """Every refused value is a finding, and the default stands in its place, as in that of every list that holds one:
    rules can still be tried on the rest."""
    try:
        return Settings.model_validate(tree), []
    except ValidationError as error:
        details = error.errors(include_url=False)
    for detail in details:
        tree = without(tree, detail["loc"])
    # Only elements of lists have required keys, so nothing can be missing now.
    return Settings.model_validate(tree), [_finding(detail) for detail in details]


def _finding(detail: ErrorDetails) -> Finding:
    loc, kind, value = detail["loc"], detail["type"], detail["input"]
    if kind == "extra_forbidden":
        return Finding(loc, value, "unknown key", schema.nearest_key(loc))
    wanted = schema.describe(loc)
    if kind == "missing":
        return Finding(loc, NOTHING, "is required", f"give {wanted}")
    return Finding(loc, value, *_reason_and_remedy(loc, kind, value, wanted, detail.get("ctx", {})))


def _reason_and_remedy(loc: Loc, kind: str, value: Any, wanted: str, context: Mapping[str, Any]) -> tuple[str, str]:
    if kind == "refused":
        return context["reason"], context["remedy"]
    if kind in ("too_long", "string_too_long"):
        return f"is longer than {context['max_length']}", "shorten it"
    if value in (None, ""):
        return "is empty", f"give {wanted}"
    if kind == "string_type" and isinstance(value, bool | int | float):
        return f"is not {wanted}", "put it in quotes"
    return f"is not {wanted}", _hint(loc, wanted)


def _hint(loc: Loc, wanted: str) -> str:
    field = schema.field_at(loc)
    if field is None or field.is_required() or schema.is_section(field.annotation) or isinstance(loc[-1], int):
        return f"give {wanted}"
    if schema.item_type(field.annotation) is not None:
        return "write it as [a, b]"
    return f"the default is {shown(field.get_default(), ())}"


def load(path: Path | None, environ: Mapping[str, str]) -> Settings:
    """The settings of a YAML file (None: the defaults) under the overrides in ``environ``. Raises ConfigError with
    every problem there is; of a file that is not YAML, only that."""
    settings, problems = examine(path, environ)
    if problems or settings is None:
        raise ConfigError(problems)
    return settings


def effective(settings: Settings) -> dict[str, Any]:
    """The settings as plain JSON values, each secret shown as ``(secret)`` when set and as an empty text when not."""
    return settings.model_dump(mode="json")


def examine(
    path: Path | None, environ: Mapping[str, str], *, here: bool = False
) -> tuple[Settings | None, list[Problem]]:
    """The settings, with defaults in place of what was refused (None: the file is unreadable), and every problem that
    would keep ``load`` from succeeding; ``here``: also what this machine lacks."""
    try:
        document = read_file(path) if path is not None else Document("", {})
    except Refused as refused:
        return None, [refused.problem]
    adopted = adopt(document.tree)
    overridden = override(adopted.tree, environ)
    findings = [*adopted.findings]
    tree = resolved(overridden.tree, Settings, (), environ, findings)
    settings, invalid = validate(tree)
    findings += invalid
    told = chain(conflicts(settings), surroundings(settings, environ) if here else ())
    broken = [found(settings, *conflict) for conflict in told]
    findings += [conflict for conflict in broken if not _involves(conflict, findings)]
    placed = [finding.in_words(_source(finding, document, overridden, adopted.written)) for finding in findings]
    return settings, [*document.problems, *overridden.problems, *placed]


def _involves(conflict: Finding, refused: list[Finding]) -> bool:
    """Whether a refused value took part, so that the rule saw something else than what was written."""
    places = (conflict.at, *conflict.other)
    return any(
        finding.at[: len(place)] == place or place[: len(finding.at)] == finding.at
        for finding in refused
        for place in places
    )


def _source(finding: Finding, document: Document, overridden: Overridden, written: Mapping[Loc, Loc]) -> str:
    """The variable that set the value or something around it, else its place in the file."""
    for length in range(len(finding.at), 0, -1):
        if (variable := overridden.variables.get(finding.at[:length])) is not None:
            return variable
    return document.position(written.get(finding.at, finding.at))


def changed_keys(before: Settings, after: Settings) -> list[str]:
    """The keys that differ, dotted, in the order of the schema; a list of sections as one."""
    paths = [leaf.path for leaf in schema.leaves() if "N" not in leaf.path]
    return [".".join(path) for path in paths if reduce(getattr, path, before) != reduce(getattr, path, after)]


def digest(settings: Settings) -> str:
    """The same for two processes with the same configuration; of secrets it says only which are set."""
    plain = json.dumps(effective(settings), sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:DIGEST_CHARS]
