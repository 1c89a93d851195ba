"""What the figures were seen on: versions, commit, processor, load."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

from semmem import __version__

_PACKAGES = (
    "grpcio", "protobuf", "uvloop", "msgspec", "pymilvus", "milvus-lite", "onnxruntime", "torch",
    "sentence-transformers", "sqlalchemy"
)  # fmt: skip


def versions(envoy: Path, home: Path) -> dict[str, str]:
    """Of everything that takes part."""
    said = subprocess.run([str(envoy), "--version"], capture_output=True, text=True, timeout=20, check=True).stdout
    found = re.search(r"/(\d+\.\d+\.\d+[^/]*)/", said)
    return {
        "semmem": __version__,
        "commit": commit(home),
        "envoy": found[1] if found else said.strip(),
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
    }


def commit(home: Path) -> str:
    """The commit, with ``+changes`` when what is measured differs from it; ``unknown`` outside a clone."""

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(home), *arguments], capture_output=True, text=True, timeout=20, check=True
        )
        return done.stdout.strip()

    try:
        changed = git("status", "--porcelain", "--", "semmem", "bench", "deploy/envoy.yaml")
        return git("rev-parse", "--short", "HEAD") + ("+changes" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def machine() -> dict[str, Any]:
    """Cores that this process may use, processor, kernel, load averages (1, 5, 15 minutes) at this moment."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": model[1] if model else platform.machine(),
        "kernel": platform.release(),
        "load_average": list(os.getloadavg()),
    }
