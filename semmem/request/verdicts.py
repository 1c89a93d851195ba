"""What filters before semmem have found out about a request: each verdict in a header, in Envoy's metadata, or both.

No client can forge metadata, so where it speaks about ``fact`` or ``tool`` the header is not asked. ``blocked`` and
``pii`` only ever restrict: either voice is enough.
"""

import math
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from semmem.request.head import RequestHead

WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
"""What a text may say, in any case and between any spaces; every other text says nothing."""


@dataclass(frozen=True, slots=True)
class VerdictSource:
    """Where one verdict is found: a header's lower-case name, and namespace and keys in metadata. Empty: nowhere."""

    header: str = ""
    metadata: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VerdictRules:
    """The operator's choice of sources; without one a verdict is never heard of."""

    fact: VerdictSource = VerdictSource()
    tool: VerdictSource = VerdictSource()
    blocked: VerdictSource = VerdictSource()
    pii: VerdictSource = VerdictSource()


NO_SOURCES = VerdictRules()


class Verdicts(Struct, frozen=True):
    """A question of general knowledge; a tool will answer (None: not said). Refused; holding personal data."""

    fact: bool | None = None
    tool: bool | None = None
    blocked: bool = False
    pii: bool = False


NO_VERDICTS = Verdicts()


def verdicts(rules: VerdictRules, head: RequestHead) -> Verdicts:
    """Everything that earlier filters say about this request."""
    return Verdicts(
        fact=_told(rules.fact, head),
        tool=_told(rules.tool, head),
        blocked=_stops(rules.blocked, head),
        pii=_stops(rules.pii, head),
    )


def _told(source: VerdictSource, head: RequestHead) -> bool | None:
    """Metadata's word, else that of a header that was sent once."""
    if not (source.header or source.metadata):
        return None
    said = read(head.metadata_at(source.metadata))
    return read(head.header(source.header)) if said is None and source.header else said


def _stops(source: VerdictSource, head: RequestHead) -> bool:
    if not (source.header or source.metadata):
        return False
    headers = head.headers.get(source.header, ()) if source.header else ()
    return any(read(said) for said in (head.metadata_at(source.metadata), *headers))


def read(value: Any) -> bool | None:
    """A verdict's value: a boolean, one of WORDS, or a number (0 is false). None: it says nothing."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return WORDS.get(value.strip().lower())
    if isinstance(value, int | float) and not math.isnan(value):
        return value != 0
    return None
