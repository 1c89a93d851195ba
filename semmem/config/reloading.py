"""What a running semmem takes up of another configuration, and why it does not take up the rest; each section says so
itself (``Section.restart``)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from semmem.config import schema
from semmem.config.loading import effective
from semmem.config.settings import Settings
from semmem.config.values import Section

DIGEST_CHARS = 16


def restart_reasons() -> Mapping[str, str]:
    """Every key, dotted: why it needs a restart, or an empty text."""
    return {".".join(path): _section_of(path).restart_reason(path[-1]) for path, _ in schema.leaves()}


def _section_of(path: tuple[str, ...]) -> type[Section]:
    section: type[Section] = schema.type_at(tuple(0 if part == "N" else part for part in path[:-1]))
    return section


def changed_keys(before: Settings, after: Settings) -> list[str]:
    """The keys that differ, dotted, in the order of the schema; a list of sections as one."""
    paths = [path for path, _ in schema.leaves() if "N" not in path]
    return [".".join(path) for path in paths if _at(before, path) != _at(after, path)]


def digest(settings: Settings) -> str:
    """The same for two processes with the same configuration; of secrets it says only which are set."""
    plain = json.dumps(effective(settings), sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:DIGEST_CHARS]


def _at(settings: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        settings = getattr(settings, name)
    return settings
