"""FastAPI makes a pydantic adapter for each parameter of each route of an application; the tests make 500 of these."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from fastapi._compat import v2
from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

_made: dict[Hashable, TypeAdapter[Any]] = {}


def share_adapters() -> None:
    """From here on parameters of the same type and bounds share one, in whichever application. They keep nothing of
    what they check."""
    setattr(v2, "TypeAdapter", _shared)  # noqa: B010  # to mypy it is a class


def _shared(wanted: Any, *, config: Any = None) -> TypeAdapter[Any]:
    key = (wanted.__origin__, repr(config), *map(_key, wanted.__metadata__))
    try:
        known = _made.get(key)
    except TypeError:  # it holds what is told apart by identity alone
        return TypeAdapter(wanted, config=config)
    if known is None:
        known = _made[key] = TypeAdapter(wanted, config=config)
    return known


def _key(bound: Any) -> Hashable:
    return repr(bound) if isinstance(bound, FieldInfo) else bound
