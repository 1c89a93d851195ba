"""The ``passages:`` section: what users said, kept as they said it, for what memories do not hold."""

from __future__ import annotations

from pydantic import Field

from semmem.config.values import Days, Section


class PassagesSection(Section):
    """``passages``: users' own messages and the gist of what was answered, found where memories do not answer."""

    retention_days: Days = Field(default=365, description="how long what was said is kept; 0: nothing is kept or shown")
    per_user_max: int = Field(
        default=10_000, ge=1, le=15_000, description="passages of one user; beyond them the oldest go, once a day"
    )
