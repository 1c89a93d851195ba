"""Models that were exported to ONNX: where they lie, and what is known of each.

A folder each, ``<name>.<digest of the weights>.<precision>``, made once and never changed: what is there is whole, and
other weights of the same name lie beside it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from semmem.backends.embedding.weights import (
    E5,
    E5_SHA256,
    HUB_PREFIX,
    MINILM,
    MINILM_SHA256,
    MULTILINGUAL,
    WEIGHTS,
    name_by_digest,
    sha256_of,
)

FORMAT = 1
"""Of these folders. What another version of semmem wrote in another format is exported anew."""
MODEL, DATA, TOKENIZER, ABOUT = "model.onnx", "model.bin", "tokenizer.json", "about.json"
"""The graph; its weights, beside it so that they are mapped into memory and not read; the tokenizer; About."""
PRECISIONS = ("fp32", "int8")
DIGEST_CHARS = 16
KNOWN = {MINILM: MINILM_SHA256, E5: E5_SHA256}
"""Weights of which there is one kind."""


@dataclass(frozen=True, slots=True)
class About:
    """What was exported. ``prompt`` stands in front of every text; how much of one is read, the tokenizer knows."""

    name: str
    weights_sha256: str
    precision: str
    dimension: int
    prompt: str = ""
    format: int = FORMAT

    @property
    def signature(self) -> str:
        """That of sentence-transformers with the same weights; another precision makes vectors of its own."""
        return f"{HUB_PREFIX}{self.name}/{self.dimension}/{self.precision}"

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return f"{_slug(self.name)}.{self.weights_sha256[:DIGEST_CHARS]}.{self.precision}"

    def write(self, folder: Path) -> None:
        (folder / ABOUT).write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Exported:
    """An exported model on this machine."""

    folder: Path
    about: About


def find(root: Path, model: str, precision: str) -> Exported | None:
    """The exported ``model`` (a name or a directory) in a folder of such; of several, the newest.

    Blocking: a directory is known by the digest of its weights. Raises EmbedderError where it holds none.
    """
    found = [exported for folder in _candidates(root, model, precision) if (exported := read(folder)) is not None]
    return max(found, key=lambda exported: (exported.folder / ABOUT).stat().st_mtime, default=None)


def read(folder: Path) -> Exported | None:
    """None where there is none, or one of another format."""
    try:
        told: dict[str, Any] = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        return Exported(folder, About(**told)) if told.get("format") == FORMAT else None
    except (OSError, ValueError, TypeError):
        return None


def _candidates(root: Path, model: str, precision: str) -> list[Path]:
    if Path(model).is_dir():
        name, digest = name_by_digest(Path(model)), sha256_of(Path(model) / WEIGHTS)[:DIGEST_CHARS]
    else:
        name = E5 if model == MULTILINGUAL else model.removeprefix(HUB_PREFIX)
        digest = KNOWN.get(name, "*")[:DIGEST_CHARS]
    return list(root.glob(f"{_slug(name)}.{digest}.{precision}"))


def _slug(name: str) -> str:
    return name.replace("/", "--")
