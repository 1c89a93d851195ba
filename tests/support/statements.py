"""SQLAlchemy compiles a statement once for each engine, in milliseconds; the tests make thousands of engines."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Engine

_Key = tuple[Any, ...]


class _OfEveryEngine(dict[_Key, Any]):
    """An engine's cache, where dialects of one kind and one server's version are one."""

    def get(self, key: _Key, default: Any = None) -> Any:
        return super().get(_shared(key), default)

    def __setitem__(self, key: _Key, compiled: Any) -> None:
        super().__setitem__(_shared(key), compiled)


def share_statements() -> None:
    """From here on an engine takes what another one has compiled."""
    every = _OfEveryEngine()
    setattr(Engine, "_compiled_cache", property(lambda _: every, lambda _, own: None))  # noqa: B010  # mypy: no property


def _shared(key: _Key) -> _Key:
    dialect, *statement = key
    return dialect.name, dialect.driver, dialect.server_version_info, *statement
