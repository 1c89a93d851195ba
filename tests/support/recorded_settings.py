"""Settings that remember which of their keys were read, and by which function."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType, FunctionType, MethodType
from typing import Any, cast

from semmem.config.settings import Settings
from semmem.config.values import Section

Reading = tuple[str, str]
"""A dotted key, and the qualified name of the function that read it."""


def recorded(settings: Settings, readings: set[Reading]) -> Settings:
    """The same settings; each reading of a key is added to ``readings``."""
    return cast(Settings, _Recorded(settings, "", readings.add))


class _Recorded:
    def __init__(self, section: Section, at: str, note: Callable[[Reading], None]) -> None:
        self._recorded = (section, at, note)

    def __getattr__(self, name: str) -> Any:
        section, at, note = self._recorded
        of_class = getattr(type(section), name, None)
        if isinstance(of_class, property) and name not in type(section).model_fields:
            assert of_class.fget is not None
            return of_class.fget(self)
        if isinstance(of_class, FunctionType) and of_class.__module__.startswith("semmem"):
            return MethodType(of_class, self)
        value = getattr(section, name)
        if name not in type(section).model_fields:
            return value
        path = f"{at}.{name}".lstrip(".")
        if isinstance(value, Section):
            return _Recorded(value, path, note)
        note((path, _reader(sys._getframe(1))))
        if isinstance(value, tuple) and value and isinstance(value[0], Section):
            return tuple(_Recorded(item, f"{path}.N", note) for item in value)
        return value


def _reader(frame: FrameType) -> str:
    """Who reads it, by itself or by having rules filled."""
    while frame.f_globals["__name__"] == Section.__module__ and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_qualname
