"""What every dialect shares: semmem's own members of a request, and reading single fields leniently.

A field of another type than expected says nothing; that is never a reason to refuse a request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from semmem.dialects.json_splice import UNREADABLE
from semmem.memory import Controls, MemoryType
from semmem.ports.names import bounded, usable

T = TypeVar("T")
Fields = Mapping[str, msgspec.Raw] | Mapping[str, bytes]

LIMIT_MAX = 50
"""The most memories a request may ask for."""

OWN_MEMBERS = ("memory_config", "memory_context")
"""semmem's members of a request body: read, then removed, whatever comes of them."""

FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
ARRAY = msgspec.json.Decoder(list[Any])
STRING = msgspec.json.Decoder(str)
BOOLEAN = msgspec.json.Decoder(bool)
INTEGER = msgspec.json.Decoder(int)
NUMBER = msgspec.json.Decoder(float)

_MEMORY_TYPES = {kind.value: kind for kind in MemoryType}


def controls(top: Mapping[str, bytes]) -> Controls:
    """What a request's members ask of memory: ``memory_config``, ``memory_context``, and who it says it is."""
    config, context = object_of(top, "memory_config"), object_of(top, "memory_context")
    limit = field_of(config, "retrieval_limit", INTEGER)
    threshold = field_of(config, "similarity_threshold", NUMBER)
    types = field_of(config, "memory_types", ARRAY)
    return Controls(
        enabled=field_of(config, "enabled", BOOLEAN),
        auto_store=field_of(config, "auto_store", BOOLEAN),
        types=None if types is None else tuple(dict.fromkeys(_known_types(types))),
        limit=None if limit is None else min(max(limit, 0), LIMIT_MAX),
        threshold=None if threshold is None else min(max(threshold, 0.0), 1.0),
        project=name_of(context, "project_id"),
        claimed_user=field_of(context, "user_id", STRING)
        or field_of(object_of(top, "metadata"), "user_id", STRING)
        or field_of(top, "user", STRING)
        or None,
    )


def _known_types(names: list[Any]) -> list[MemoryType]:
    return [_MEMORY_TYPES[name] for name in names if isinstance(name, str) and name in _MEMORY_TYPES]


def object_of(fields: Fields, name: str) -> dict[str, msgspec.Raw]:
    """A field that is an object, by its members; empty when it is not there."""
    return field_of(fields, name, FIELDS) or {}


def name_of(fields: Fields, name: str) -> str | None:
    """A field that names something other than a user: bounded (``ports.names``), None when empty or not there."""
    return bounded(field_of(fields, name, STRING))


def model_of(fields: Fields) -> str:
    """The name of the model that is asked; empty for a name that is none."""
    return usable(field_of(fields, "model", STRING)) or ""


def field_of(fields: Fields, name: str, decoder: msgspec.json.Decoder[T]) -> T | None:
    """A field's value, or None when it is absent or of another type, which both mean that nothing was said."""
    raw = fields.get(name)
    if raw is None:
        return None
    try:
        return decoder.decode(raw)
    except UNREADABLE:
        return None
