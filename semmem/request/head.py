"""The head of a request, read once: by every door in the same way, so that a user is the same."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct, field

OWN_HEADER_PREFIX = "x-semmem-"
LENGTH_DIGITS_MAX = 18
"""More digits than any body has; a header may have thousands."""


class RequestHead(Struct, frozen=True):
    """What is known of a request before its body. Header names are lower-case; a header sent twice has two values.
    ``metadata`` is Envoy's dynamic metadata by namespace."""

    method: str
    path: str
    headers: Mapping[str, tuple[str, ...]]
    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def header(self, name: str) -> str | None:
        """The value of a header that was sent exactly once and is not empty."""
        values = self.headers.get(name, ())
        return values[0].strip() or None if len(values) == 1 else None

    def first_header(self, names: tuple[str, ...]) -> str | None:
        """The value of the first of these headers that has one."""
        for name in names:
            if name in self.headers and (value := self.header(name)):
                return value
        return None

    @property
    def own_headers(self) -> list[str]:
        """Names of semmem's own request headers: they are read here, and the model's API never sees them."""
        return [name for name in self.headers if name.startswith(OWN_HEADER_PREFIX)]

    @property
    def is_encoded(self) -> bool:
        """Whether the body is compressed, or otherwise not as it is written."""
        return (self.header("content-encoding") or "identity").lower() != "identity"

    @property
    def announced_bytes(self) -> float:
        """The body's announced length; 0 when nothing sensible is announced, infinite when it has too many digits."""
        length = self.header("content-length") or ""
        if not (length.isascii() and length.isdigit()):
            return 0
        return int(length) if len(length) <= LENGTH_DIGITS_MAX else math.inf

    def metadata_at(self, path: tuple[str, ...]) -> Any:
        """The value at a namespace and the keys below it; None for an empty path and where there is none."""
        node: Any = self.metadata if path else None
        for key in path:
            if type(node) is not dict and not isinstance(node, Mapping):  # the first is the usual, and the cheaper
                return None
            node = node.get(key)
        return node


def read_headers(pairs: Sequence[tuple[str, bytes]]) -> dict[str, tuple[str, ...]]:
    """Header values by lower-case name, in the order they came. The same for every door, so that a user is the same.
    Bytes that are not UTF-8 are read as Latin-1, as HTTP once had it."""
    with suppress(UnicodeDecodeError):
        once: dict[str, tuple[str, ...]] = {key.lower(): (raw.decode(),) for key, raw in pairs}
        if len(once) == len(pairs):  # no header twice, as nearly always
            return once
    values: dict[str, list[str]] = {}
    for key, raw in pairs:
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            text = raw.decode("latin-1")
        values.setdefault(key.lower(), []).append(text)
    return {name: tuple(texts) for name, texts in values.items()}
