"""Attacks and ordinary texts that the screen was never trained on: screen/*.txt, lines below the kind they are of."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

FOLDER = Path(__file__).with_name("screen")


def by_kind(name: str) -> dict[str, list[str]]:
    """The lines of ``attacks`` or ``benign`` by kind."""
    found: dict[str, list[str]] = defaultdict(list)
    kind = ""
    for line in (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            kind = line.removeprefix("## ")
        else:
            found[kind].append(line)
    return dict(found)
