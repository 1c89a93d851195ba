"""Embeddings in process, by ONNX Runtime on the CPU, with a model that was written for it (``export``).

The same vectors as PyTorch makes, to 1e-6, in a third of the time, without PyTorch's memory and start. The libraries
are imported when the embedder is opened.

An exported model lies in a folder of its own, ``<name>.<digest of the weights>.<precision>``, made once and never
changed: what is there is whole, and other weights of the same name lie beside it."""

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from semmem.backends.embedding import weights
from semmem.backends.embedding.local import Limits, LocalEmbedder
from semmem.backends.embedding.unigram import PIECES, load_pieces
from semmem.backends.embedding.weights import E5, E5_SHA256, HUB_PREFIX, MINILM, MINILM_SHA256, MULTILINGUAL, WEIGHTS
from semmem.ports.errors import EmbedderError

FORMAT = 2
"""Of these folders. What another version of semmem wrote in another format is exported anew."""
MODEL, DATA, TOKENIZER, ABOUT = "model.onnx", "model.bin", "tokenizer.json", "about.json"
"""The graph; its weights, beside it so that they are mapped into memory, not read; a tokenizer of the library of that
name, or else PIECES; About."""
PRECISIONS = ("fp32", "int8")
DIGEST_CHARS = 16
KNOWN = {MINILM: MINILM_SHA256, E5: E5_SHA256}
"""Weights of which there is one kind."""
ERRORS_ONLY = 3
"""ONNX Runtime's severity: it warns on stderr of what nobody can change."""
SLOWER_ON_A_CPU = "SkipLayerNormFusion"
"""It makes one operator of two: 16 texts in 8 bits take 45 ms with it and 34 without; fp32 has none of it."""
Tokens = Callable[[list[str]], list[list[int]]]
"""Ids of each text's tokens, the special ones among them, no more than the model reads. Called from several threads."""


@dataclass(frozen=True, slots=True)
class About:
    """What was exported. ``prompt`` stands in front of every text; ``tokens_max`` of one are read."""

    name: str
    weights_sha256: str
    precision: str
    dimension: int
    tokens_max: int
    prompt: str = ""
    format: int = FORMAT

    @property
    def signature(self) -> str:
        """That of sentence-transformers with the same weights; another precision makes vectors of its own."""
        return f"{HUB_PREFIX}{self.name}/{self.dimension}/{self.precision}"

    @property
    def folder(self) -> str:
        return f"{_slug(self.name)}.{self.weights_sha256[:DIGEST_CHARS]}.{self.precision}"

    def write(self, folder: Path) -> None:
        (folder / ABOUT).write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Exported:
    folder: Path
    about: About


def find(root: Path, model: str, precision: str) -> Exported | None:
    """The exported ``model`` (a name or a directory) in a folder of such; of several, the newest. Blocking: a directory
    is known by the digest of its weights. Raises EmbedderError where it holds none."""
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
        name, digest = weights.name_by_digest(Path(model)), weights.sha256_of(Path(model) / WEIGHTS)[:DIGEST_CHARS]
    else:
        name = E5 if model == MULTILINGUAL else model.removeprefix(HUB_PREFIX)
        digest = KNOWN.get(name, "*")[:DIGEST_CHARS]
    return list(root.glob(f"{_slug(name)}.{digest}.{precision}"))


def _slug(name: str) -> str:
    return name.replace("/", "--")


class OnnxEmbedder(LocalEmbedder):
    """``threads`` is ONNX Runtime's, per call: one, because the workers are the parallelism."""

    def __init__(self, exported: Exported, *, dimension: int = 384, threads: int = 1, **limits: Unpack[Limits]) -> None:
        super().__init__(exported.about.signature, dimension=dimension, **limits)
        self._exported = exported
        self._threads = threads
        self._session: Any = None
        self._tokens: Tokens | None = None
        self._inputs: tuple[str, ...] = ()

    async def close(self) -> None:
        await super().close()
        self._session = self._tokens = None

    def _load(self) -> None:
        folder, about = self._exported.folder, self._exported.about
        self._require_dimension(about.name, about.dimension)
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # its thread pool would compete with the workers
        try:
            self._tokens = _tokens(folder, about)
            self._session = _session(str(folder / MODEL), self._threads)
        except Exception as error:  # both libraries raise what they like, ImportError among it
            raise EmbedderError(f"cannot load the exported model in {folder}: {error}") from error
        self._inputs = tuple(each.name for each in self._session.get_inputs())

    def _encode(self, texts: list[str]) -> npt.NDArray[np.float32]:
        if self._exported.about.precision == "fp32":
            return self._batch(texts)
        # In 8 bits a batch has one scale, so a text's vector would depend on its neighbours; nor is a batch faster.
        return np.concatenate([self._batch([text]) for text in texts])

    def _batch(self, texts: list[str]) -> npt.NDArray[np.float32]:
        tokens, prompt = self._tokens, self._exported.about.prompt
        assert tokens is not None
        read = tokens([prompt + text for text in texts])
        ids, mask = np.zeros((2, len(read), max(map(len, read))), dtype=np.int64)
        for at, row in enumerate(read):
            ids[at, : len(row)], mask[at, : len(row)] = row, 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        rows: npt.NDArray[np.float32] = self._session.run(None, {name: feed[name] for name in self._inputs})[0]
        return rows


def _tokens(folder: Path, about: About) -> Tokens:
    if (pieces := folder / PIECES).exists():
        return load_pieces(pieces, about.tokens_max)
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))  # cuts as its file says
    return lambda texts: [read.ids for read in tokenizer.encode_batch(texts)]


def _session(path: str, threads: int) -> Any:
    import onnxruntime

    onnxruntime.set_default_logger_severity(ERRORS_ONLY)
    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = ERRORS_ONLY
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # A thread that waits in a busy loop takes the core that the event loop wants.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(
        path, options, providers=["CPUExecutionProvider"], disabled_optimizers=[SLOWER_ON_A_CPU]
    )
