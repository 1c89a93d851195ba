"""How many examples hypothesis tries, by HYPOTHESIS_PROFILE.

``quick``: a tenth, for every save (``make quick``). ``default``: for ``make test``. ``nightly``: ten times as many.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

SHARES = {"quick": 0.1, "default": 1.0, "nightly": 10.0}
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "default")
EXAMPLES = 100
"""Where a test names no number, in the default profile."""


def examples(count: int) -> int:
    """So many in the default profile, as the profile in use has it. Raises KeyError for a profile nobody knows."""
    return max(10, round(count * SHARES[PROFILE]))


def use_profile() -> None:
    """For every test from here on. Neither deadlines nor slow drawing are failures: the machine may be busy."""
    settings.register_profile(
        PROFILE, max_examples=examples(EXAMPLES), deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile(PROFILE)
