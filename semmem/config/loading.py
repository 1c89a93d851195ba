"""From a file and an environment to Settings, or to the list of everything that is wrong with them; and what a running
semmem takes up of others."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import partial, reduce
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import SecretStr, ValidationError
from pydantic_core import ErrorDetails

from semmem.config import schema
from semmem.config.environment import Overridden, override
from semmem.config.names import adopt, without
from semmem.config.problems import NOTHING, REDACTED, ConfigError, Finding, Loc, Problem, found, put, shown
from semmem.config.rules import RULES
from semmem.config.settings import Settings
from semmem.config.surroundings import surroundings
from semmem.config.yaml_source import Document, Unreadable, read_file

ENDING = "_env"
DIGEST_CHARS = 16


def resolve_secrets(tree: dict[str, Any], environ: Mapping[str, str]) -> tuple[dict[str, Any], list[Finding]]:
    """The tree (left as it was) with every ``<secret>_env`` of the schema read into ``<secret>``."""
    findings: list[Finding] = []
    for leaf in schema.leaves():
        if leaf.path[-1].endswith(ENDING):
            name = leaf.path[-1].removesuffix(ENDING)
            tree = _mapped(tree, leaf.path[:-1], (), partial(_filled, name, environ, findings))
    return tree, findings


def _mapped(tree: Any, path: tuple[str, ...], at: Loc, change: Callable[[Any, Loc], Any]) -> Any:
    """A copy with what stands at ``path`` changed, wherever it is there; ``N``: every element of a list."""
    if not path:
        return change(tree, at)
    head, rest = path[0], path[1:]
    if head == "N" and isinstance(tree, list):
        return [_mapped(item, rest, (*at, index), change) for index, item in enumerate(tree)]
    if not isinstance(tree, dict) or head not in tree:
        return tree
    return {**tree, head: _mapped(tree[head], rest, (*at, head), change)}


def _filled(name: str, environ: Mapping[str, str], findings: list[Finding], section: Any, at: Loc) -> Any:
    variable = section.get(f"{name}_env") if isinstance(section, dict) else None
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


class Validated(NamedTuple):
    """``settings`` has the default in place of every refused value, and of every list that holds one."""

    settings: Settings
    findings: list[Finding]


def validate(tree: dict[str, Any]) -> Validated:
    """Every refused value is a finding, and is left out, so that rules can still be tried on the rest."""
    try:
        return Validated(Settings.model_validate(tree), [])
    except ValidationError as error:
        details = error.errors(include_url=False)
    for detail in details:
        tree = without(tree, detail["loc"])
    # Only elements of lists have required keys, so nothing can be missing now.
    return Validated(Settings.model_validate(tree), [_finding(detail) for detail in details])


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
    """The settings of a YAML file (None: the defaults) under the overrides in ``environ``.

    Raises ConfigError with every problem there is; of a file that is not YAML, only that.
    """
    settings, problems = examine(path, environ)
    if problems or settings is None:
        raise ConfigError(problems)
    return settings


def check(path: Path | None, environ: Mapping[str, str], *, here: bool = False) -> list[Problem]:
    """Everything that would keep ``load`` from succeeding, and ``here``: what this machine lacks."""
    return examine(path, environ, here=here)[1]


def effective(settings: Settings) -> dict[str, Any]:
    """The settings as plain JSON values, each secret shown as ``(secret)`` when set and as an empty text when not."""
    plain: dict[str, Any] = _plain(settings.model_dump(mode="python"))
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, SecretStr):
        return REDACTED if value.get_secret_value() else ""
    return value


def examine(
    path: Path | None, environ: Mapping[str, str], *, here: bool = False
) -> tuple[Settings | None, list[Problem]]:
    """The settings, with defaults in place of what was refused (None: the file is unreadable), and every problem."""
    try:
        document = read_file(path) if path is not None else Document("", {})
    except Unreadable as unreadable:
        return None, [unreadable.problem]
    adopted = adopt(document.tree)
    overridden = override(adopted.tree, environ)
    tree, secret_findings = resolve_secrets(overridden.tree, environ)
    settings, findings = validate(tree)
    findings = [*adopted.findings, *secret_findings, *findings]
    told = chain.from_iterable((*(rule(settings) for rule in RULES), surroundings(settings, environ) if here else ()))
    conflicts = [found(settings, *conflict) for conflict in told]
    findings += [conflict for conflict in conflicts if not _involves(conflict, findings)]
    placed = [put(finding, _source(finding, document, overridden, adopted.written)) for finding in findings]
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


def restart_reasons() -> Mapping[str, str]:
    """Every key, dotted: why a running semmem does not take up another value; an empty text: it does."""
    return {".".join(leaf.path): leaf.section.restart_reason(leaf.path[-1]) for leaf in schema.leaves()}


def changed_keys(before: Settings, after: Settings) -> list[str]:
    """The keys that differ, dotted, in the order of the schema; a list of sections as one."""
    paths = [leaf.path for leaf in schema.leaves() if "N" not in leaf.path]
    return [".".join(path) for path in paths if reduce(getattr, path, before) != reduce(getattr, path, after)]


def digest(settings: Settings) -> str:
    """The same for two processes with the same configuration; of secrets it says only which are set."""
    plain = json.dumps(effective(settings), sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:DIGEST_CHARS]
