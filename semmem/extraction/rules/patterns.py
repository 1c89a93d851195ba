"""How the rule tables are written: one pattern over several lines."""

from __future__ import annotations

import re


def folded(block: str) -> re.Pattern[str]:
    """Compiles the lines of ``block``, indentation stripped, as one pattern that ignores case.

    Write ``(?-i:[A-Z])`` for a capital that must be one.
    """
    return re.compile("".join(line.strip() for line in block.splitlines()), re.IGNORECASE)
