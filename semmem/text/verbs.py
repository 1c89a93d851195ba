"""English verbs whose past is not formed with -ed. Data only (verbs.json)."""

from __future__ import annotations

import json
from pathlib import Path

_FORMS = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
IRREGULAR_VERBS: dict[str, tuple[str, str]] = {base: (past, participle) for base, (past, participle) in _FORMS.items()}
"""Base form -> past, participle, where they are not formed with -ed."""

SAME_FORM = frozenset(base for base, forms in IRREGULAR_VERBS.items() if base in forms)
"""Base forms that are a past or a participle as well ("put", "come")."""
