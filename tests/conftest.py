"""What holds for every level: how many examples hypothesis tries (tests/support/examples.py)."""

from __future__ import annotations

from tests.support.examples import use_profile

use_profile()
