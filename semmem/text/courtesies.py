"""Words of courtesy that may stand before an order, in ten languages: "hey, could you please", "kannst du mal bitte".

They are data (courtesies.json).
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

COURTESIES_MAX = 8
"""So many may stand before an order."""


def behind_courtesies(said: str) -> list[int]:
    """The places behind words of courtesy, the last one first; the beginning is one of them. Linear in their length."""
    places = [0]
    while len(places) <= COURTESIES_MAX and (found := _courtesy().match(said, places[-1])) is not None:
        places.append(found.end())
    return places[::-1]


@cache
def _courtesy() -> re.Pattern[str]:
    words = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
    wide = r"(?=[\s,.!?:;，。！？、]|$|[\u3040-\u30ff\u3400-\u9fff])"
    return re.compile(rf"(?:{'|'.join(words)}){wide}[\s,.!?:;，。！？、]*", re.IGNORECASE)
