"""What one exchange may cost."""

from __future__ import annotations

from dataclasses import dataclass, field

from semmem.dialects.reading import ReadingLimits


@dataclass(frozen=True, slots=True)
class ExchangeLimits:
    """Bytes, and seconds for ``phase_s``: the whole request phase after the body arrived.

    Bodies above ``inline_body_bytes_max`` are read and rewritten beside the event loop. ``reading``: what a request may
    hold.
    """

    request_body_bytes_max: int = 16 * 1024 * 1024
    answer_bytes_max: int = 64 * 1024
    response_body_bytes_max: int = 4 * 1024 * 1024
    decoded_bytes_max: int = 64 * 1024 * 1024
    turn_chars_max: int = 64 * 1024
    phase_s: float = 0.35
    inline_body_bytes_max: int = 64 * 1024
    reading: ReadingLimits = field(default_factory=ReadingLimits)
