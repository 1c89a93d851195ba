"""What is shown of memories that have nothing to do with a question, although they share words with it."""

from __future__ import annotations

from collections import defaultdict

from quality.folder import Folder
from quality.scores import Json, Share, mean
from quality.wiring import DAY_S, NOW, Semmem

KINDS = {"cross_domain": "leak_cross_domain", "sycophancy": "leak_sycophancy", "beneficial": "beneficial"}
"""Kind of row -> key of its figure; of the last one the memories belong into the answer."""


async def leakage(folder: Folder, semmem: Semmem) -> tuple[dict[str, float | None], Json]:
    """Each row a user of its own with its memories; the share of queries for which any of them is shown."""
    lines: dict[str, list[int]] = defaultdict(list)
    shown: dict[str, list[Json]] = defaultdict(list)
    for number, row in enumerate(folder.rows("leakage")):
        user = f"leakage/{number}"
        for index, text in enumerate(row["memories"]):
            await semmem.remember(user, f"mem_leakage_{number:04d}_{index:03d}", text, at=NOW - DAY_S + index)
        notes = await semmem.notes(row["query"], user)
        lines[row["kind"]].append(len(notes))
        if notes:
            shown[row["kind"]].append({"query": row["query"], "notes": notes})
    figures: dict[str, float | None] = {}
    for kind, key in KINDS.items():
        figures[key] = Share.of(count > 0 for count in lines[kind]).percent
        figures[f"{key}_lines"] = mean(lines[kind])
    return figures, {kind: {"queries": len(lines[kind]), "shown": shown[kind]} for kind in KINDS}
