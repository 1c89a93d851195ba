"""What the API takes for names and metadata, and where each of them ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import AfterValidator, Field

from semmem.memory import OWN_METADATA
from semmem.ports.names import bounded, fits, usable
from semmem.ports.storable import depth_exceeds

USER_CHARS_MAX = 256
TOPIC_CHARS_MAX = 64
"""More than any topic has that extraction keeps."""
TYPES_MAX = 10
"""Types in one call; there are fewer."""


@dataclass(frozen=True, slots=True)
class MetadataLimits:
    """Levels of nesting, keys on all levels together, bytes as JSON in UTF-8."""

    depth_max: int = 8
    keys_max: int = 128
    bytes_max: int = 16_384


def metadata_problem(metadata: dict[str, Any], limits: MetadataLimits) -> str:
    """What is wrong with a caller's metadata, empty when nothing is. Never raises, however deep it is."""
    if taken := sorted(OWN_METADATA & metadata.keys()):
        return f"{', '.join(taken)}: only semmem itself writes this"
    if depth_exceeds(metadata, limits.depth_max):
        return f"is nested more than {limits.depth_max} levels deep"
    if sum(1 for _ in _keys(metadata)) > limits.keys_max:
        return f"has more than {limits.keys_max} keys"
    try:
        size = len(json.dumps(metadata, allow_nan=False, ensure_ascii=False).encode())
    except ValueError:
        return "holds NaN, Infinity or half a character, which are no JSON"
    return f"has {size} bytes, at most {limits.bytes_max} are kept" if size > limits.bytes_max else ""


def _keys(value: Any) -> Iterator[str]:
    """Of nesting that was found shallow."""
    if isinstance(value, dict):
        yield from value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _keys(child)


def _new_user(name: str | None) -> str | None:
    if name and not usable(name):
        raise ValueError("is too long, or has control characters")
    return name


def _any_user(name: str | None) -> str | None:
    """As stored by whatever version: what cannot be named cannot be listed, nor erased."""
    if name and not fits(name):
        raise ValueError("is too long")
    return name


def _scope_name(name: str | None) -> str | None:
    """As Envoy's door keeps it: an unusable name under its digest. Empty is not the same as absent."""
    return bounded(name) if name else name


def _memory_id(name: str) -> str:
    if not fits(name):
        raise ValueError("is too long")
    return name


NewUser = Annotated[str | None, Field(max_length=USER_CHARS_MAX), AfterValidator(_new_user)]
"""A user in a body."""
UserId = Annotated[str | None, Query(max_length=USER_CHARS_MAX), AfterValidator(_any_user)]
"""A user in a query string."""
ScopeName = Annotated[str | None, AfterValidator(_scope_name)]
"""A project, agent or session in a body."""
ProjectId = Annotated[str | None, Query(), AfterValidator(_scope_name)]
"""A project in a query string."""
MemoryId = Annotated[str, Path(), AfterValidator(_memory_id)]
