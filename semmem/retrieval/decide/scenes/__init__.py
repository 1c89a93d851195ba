"""Our own labelled requests: people with their memories, and what each request of theirs wants of these.

Scenes are {"about", "memories": [{"text", "kind", "topics"}], "requests": [{"text", "class", "wanted"}]}, with
``wanted`` the places of memories; sentences (sentences*.jsonl) are {"text", "class"}."""

import json
from pathlib import Path
from typing import Any

from semmem.retrieval.decide.fitting import Material

HERE = Path(__file__).parent
SENTENCES = sorted(HERE.glob("sentences*.jsonl"))
CLASSES = {
    "personal": "recall", "general": "knowledge", "social": "courtesy", "creation": "creation", "task": "task",
}  # fmt: skip
"""What the words of the sentences are among the classes of requests."""
WEIGHT = 2.0


def material() -> Material:
    """All of them, ready to be learnt from."""
    files = sorted(set(HERE.glob("*.jsonl")) - set(SENTENCES))
    found = Material([row for file in files for row in _rows(file)])
    for row in (row for file in SENTENCES for row in _rows(file)):
        found.classes.append((row["text"], CLASSES[row["class"]], WEIGHT))
        found.asking.append((row["text"], row["class"] == "personal", WEIGHT))
    return found


def _rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
