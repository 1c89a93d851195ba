"""The child process of Milvus Lite with its engine imported, which it imports itself only when it is told to serve."""

from __future__ import annotations

import importlib
import os
import sys

from semmem.backends.milvus import lite_server
from semmem.backends.milvus.lite import BUFFER_BYTES_MAX

os.environ["MILVUS_LITE_MEMTABLE_MEMORY_LIMIT_BYTES"] = str(BUFFER_BYTES_MAX)
ENGINE = (
    "milvus_lite.cmdline",
    *(f"semmem.backends.milvus.lite_{part}" for part in ("engine", "files", "pruning")),
)
for name in ENGINE:
    importlib.import_module(name)


def main() -> int:
    """As ``python -m semmem.backends.milvus.lite_server``."""
    return lite_server.serve(*sys.argv[1:])
