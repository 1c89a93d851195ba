"""What time it is, also where a clock was set back."""

import time
from collections.abc import Callable

from msgspec import Struct


class Clock(Struct, frozen=True):
    """``now``: seconds since 1970. ``after(user, now)``: the same, or a moment after the user's last erasure where the
    clock was ahead at that: what is said from then on is not erased with it."""

    now: Callable[[], float] = time.time
    after: Callable[[str, float], float] = lambda _user, now: now
