"""The kinds of vector index: how each is built and searched, and which servers have it.

FLAT compares a request with every vector of its user. IVF_SQ8 does too, with vectors of one byte per number instead of
four: it has a single list, because several would be searched in part, and a user's few memories may lie in the others.
HNSW and HNSW_SQ (one byte per number) follow a graph, and may miss some."""

import re
from dataclasses import dataclass
from typing import Any

from semmem.ports.errors import StoreError

EF_MIN = 64
"""The least breadth of a search in a graph (the usual default of 64 neighbours)."""
LITE_PREFIX = "milvus_lite"
_GRAPH: dict[str, Any] = {"M": 16, "efConstruction": 200}


@dataclass(frozen=True, slots=True)
class Index:
    """``since``: the oldest server that may have it, by major and minor version; Milvus Lite has all of them."""

    build: dict[str, Any]
    is_graph: bool = False
    since: tuple[int, int] = (2, 3)

    @property
    def creation(self) -> dict[str, Any]:
        """As one member, which servers and Milvus Lite both read; pymilvus would send each by itself, and Milvus Lite
        does not look at those."""
        return {"params": self.build} if self.build else {}

    @property
    def is_exact(self) -> bool:
        """Whether a search finds the nearest, whatever else the collection holds."""
        return not self.build

    def search(self, limit: int) -> dict[str, int]:
        if self.is_graph:
            return {"ef": max(EF_MIN, limit)}
        return {"nprobe": 1} if "nlist" in self.build else {}


INDEXES = {
    "FLAT": Index({}),
    "HNSW": Index(_GRAPH, is_graph=True),
    "IVF_SQ8": Index({"nlist": 1}),
    "HNSW_SQ": Index({**_GRAPH, "sq_type": "SQ8"}, is_graph=True, since=(2, 5)),
}


def check_server_has(index: str, version: str) -> None:
    """Raises StoreError when a server of this version cannot have the index. An unknown version is let pass: the
    server itself will say so."""
    found = re.match(r"v?(\d+)\.(\d+)", version)
    since = INDEXES[index].since
    if version.startswith(LITE_PREFIX) or found is None or (int(found[1]), int(found[2])) >= since:
        return
    needed = ".".join(map(str, since))
    raise StoreError(f"a Milvus server {version[:20]} has no index {index}: use {needed} or later, or another index")
