"""What callers may hang on a memory: where each limit is, told with its name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from semmem.memory import OWN_METADATA
from semmem.ports.storable import depth_exceeds


class MetadataRefused(Exception):
    """Metadata that a call would leave is beyond a limit, though what the call brought is not."""


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
        return f"is nested deeper than listeners.api.metadata_depth_max ({limits.depth_max} levels)"
    if sum(1 for _ in _keys(metadata)) > limits.keys_max:
        return f"has more keys than listeners.api.metadata_keys_max ({limits.keys_max})"
    try:
        size = len(json.dumps(metadata, allow_nan=False, ensure_ascii=False).encode())
    except ValueError:
        return "holds NaN, Infinity or half a character, which are no JSON"
    too_large = f"has {size} bytes, more than listeners.api.metadata_bytes_max ({limits.bytes_max})"
    return too_large if size > limits.bytes_max else ""


def _keys(value: Any) -> Iterator[str]:
    """Of nesting that was found shallow."""
    if isinstance(value, dict):
        yield from value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _keys(child)
