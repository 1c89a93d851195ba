"""From a file and an environment to Settings, or to the list of everything that is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from semmem.config.aliases import adopt
from semmem.config.environment import Overridden, override
from semmem.config.named_secrets import resolve_secrets
from semmem.config.problems import REDACTED, ConfigError, Finding, Loc, Problem, found, put
from semmem.config.rules import RULES
from semmem.config.settings import Settings
from semmem.config.surroundings import surroundings
from semmem.config.validation import validate
from semmem.config.yaml_source import Document, Unreadable, read_file


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
