"""``python -m deploy.version VERSION``: semmem's version, in semmem/__init__.py and wherever a file must repeat it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
SOURCE = "semmem/__init__.py"
COPIES = (
    "deploy/Dockerfile",
    "deploy/README.md",
    "deploy/chart/Chart.yaml",
    "deploy/compose/compose.yaml",
    "deploy/k8s/base/kustomization.yaml",
    "deploy/k8s/base/stateful-set.yaml",
)
_BEFORE = r'^__version__ = "|^version: |^appVersion: "|\bsemmem:|newTag: "|image\.version="'
VERSION = re.compile(rf"({_BEFORE})(\d+\.\d+\.\d+[\w.]*)", re.MULTILINE)
"""What stands before semmem's version, and the version."""


def versions_in(file: Path) -> list[str]:
    return [version for _, version in VERSION.findall(file.read_text(encoding="utf-8"))]


def main(version: str, home: Path = HOME) -> None:
    """CHANGELOG.md is written by hand."""
    for file in (home / name for name in (SOURCE, *COPIES)):
        text = file.read_text(encoding="utf-8")
        file.write_text(VERSION.sub(lambda found: found[1] + version, text), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
