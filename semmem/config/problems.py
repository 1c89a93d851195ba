"""What is wrong with a configuration, said so that it can be put right without reading code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, SecretStr

Loc = tuple[str | int, ...]
"""Where a value stands: keys, and list indices from 0."""

NOTHING: Any = object()
"""There is no value to show."""

REDACTED = "(secret)"
_SHOWN_CHARS_MAX = 80
_SECRET_NAME = re.compile(r"secret|token(?!s)|passw|credential|(?:api|fence)_?-?key|authorization", re.IGNORECASE)
_USER_INFO = re.compile(r"//[^/@\s]*@")
_PASSWORD = re.compile(r"(?<=password=)[^&\s'\"]+")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong at a place. ``other`` are further places that took part in it."""

    at: Loc
    value: Any
    reason: str
    remedy: str
    other: tuple[Loc, ...] = ()

    def in_words(self, source: str) -> Problem:
        value = "" if self.value is NOTHING else shown(self.value, self.at)
        return Problem(dotted(self.at), value, self.reason, self.remedy, source)


Conflicts = Iterator[tuple[str, ...]]
"""What rules find: the dotted key that is wrong, a reason, a remedy, and further keys that took part in it."""


def found(settings: object, key: str, reason: str, remedy: str, *other: str) -> Finding:
    """A conflict as a finding, with the key's value as far as that may be shown."""
    at = _loc(key)
    value: Any = settings
    for part in at:
        value = value[part] if isinstance(part, int) else getattr(value, part)
    is_shown = not isinstance(value, SecretStr | BaseModel)
    return Finding(at, value if is_shown else NOTHING, reason, remedy, tuple(map(_loc, other)))


def _loc(key: str) -> Loc:
    return tuple(int(part) if part.isdigit() else part for part in key.split("."))


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to put right, in words. ``path`` is dotted (``memory.milvus.dimension``), empty for the file as a
    whole. ``value`` is how the refused value is shown: shortened, secrets redacted, empty when there is none.
    ``source`` is ``file:line:column`` or an environment variable."""

    path: str
    value: str
    reason: str
    remedy: str
    source: str = ""

    def __str__(self) -> str:
        named = " = ".join(part for part in (self.path, self.value) if part)
        origin = f" ({self.source})" if named and self.source else self.source
        return f"{named}{origin}: {self.reason}; {self.remedy}"


class Refused(Exception):
    """A file or a variable cannot be used; ``problem`` says why."""

    def __init__(self, path: str, reason: str, remedy: str, source: str) -> None:
        super().__init__(reason)
        self.problem = Problem(path, "", reason, remedy, source)


class ConfigError(ValueError):
    """The configuration cannot be used. ``problems`` has every reason; the message has one line for each."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        super().__init__("\n  ".join([f"the configuration has {count}:", *map(str, self.problems)]))


def dotted(loc: Loc) -> str:
    """``("memory", "milvus")`` as ``memory.milvus``; odd or long keys are quoted and shortened."""
    return ".".join(str(part) if isinstance(part, int) else _key(part) for part in loc)


def shown(value: Any, loc: Loc) -> str:
    """A refused value as it may be shown: never a secret, never the inside of a mapping or list."""
    if isinstance(value, dict):
        return "(a mapping)"
    if isinstance(value, list | tuple):
        return "(a list)"
    if value is None:
        return "null"
    if is_secret(loc):
        return REDACTED
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value.bit_length() > 64:
        return "(a huge number)"  # Python refuses to print integers beyond 4300 digits.
    return _shortened(_PASSWORD.sub(REDACTED, _USER_INFO.sub(f"//{REDACTED}@", repr(value))))


def is_secret(loc: Loc) -> bool:
    """Whether the innermost key, known to the schema or not, is named like a secret."""
    key = next((part for part in reversed(loc) if isinstance(part, str)), "")
    return _SECRET_NAME.search(key) is not None


def _key(part: str) -> str:
    return part if re.fullmatch(r"[\w-]{1,64}", part, re.ASCII) else _shortened(ascii(part))


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS_MAX else text[: _SHOWN_CHARS_MAX - 3] + "..."
