"""Which requests are read, and what one exchange may cost."""

from __future__ import annotations

from dataclasses import dataclass, field

from semmem.dialects import Paths
from semmem.dialects.parsing import ParseLimits


@dataclass(frozen=True, slots=True)
class ExchangeRules:
    """Bytes, and seconds for ``phase_s``: the whole request phase after the body arrived.

    ``reading``: what a request may hold; ``paths``: those of the APIs.
    """

    request_body_bytes_max: int = 16 * 1024 * 1024
    answer_bytes_max: int = 64 * 1024
    response_body_bytes_max: int = 4 * 1024 * 1024
    decoded_bytes_max: int = 64 * 1024 * 1024
    phase_s: float = 0.35
    reading: ParseLimits = field(default_factory=ParseLimits)
    paths: Paths = field(default_factory=Paths)
