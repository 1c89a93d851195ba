"""From sentence-transformers to ONNX: once per model, at set-up or when an image is built.

PyTorch's own exporter traces the whole pipeline (transformer, pooling, normalisation, whatever else there is), so any
model goes that is made of PyTorch. Whether it went well is not assumed: what was exported is loaded as it will be
served, and has to make the vectors of the original, or nothing is left behind.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from semmem.backends.embedding.exported import DATA, MODEL, PRECISIONS, TOKENIZER, About, Exported, find, read
from semmem.backends.embedding.onnx_runtime import OnnxEmbedder
from semmem.backends.embedding.sentence_transformers import default_prompt, load_model
from semmem.backends.embedding.weights import WEIGHTS, Weights, resolve_weights, sha256_of
from semmem.ports.errors import EmbedderError

OPSET = 18
DIFFERENCE_MAX = 1e-5
"""Of any number of a vector of length 1, in fp32."""
COSINE_MIN = 0.9
"""Of a vector in int8 with its original; all-MiniLM-L6-v2 has 0.96 at worst."""
BYTES_APART = 1024
"""Smaller tensors stay in the graph."""
PROBES = (
    "hello",
    "",
    "  My sister Emma lives in Oslo,\n and my budget is $10,000. ",
    "Où habite ma sœur? Моя сестра живёт в Осло. 我妹妹住在奥斯陆。 😀",
    "many words and more words " * 200,
)
"""Texts by which an exported model is compared with its original: empty, long, of other scripts, in one batch."""


def export(model: str, root: Path, *, precision: str = "fp32") -> Exported:
    """Write ``model`` (a name or a directory) below ``root``, or find that it is there. Blocking, half a minute.

    Raises EmbedderError: it cannot be loaded or exported, or makes other vectors than the original; OSError: ``root``
    cannot be written.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"precision is one of {', '.join(PRECISIONS)}")
    weights = resolve_weights(model)
    if weights.local and (there := find(root, model, precision)) is not None:
        return there
    original = load_model(weights, attn_implementation="eager").eval()
    if not weights.local:  # it was downloaded just now
        weights = resolve_weights(model)
    about = _about(original, weights, precision)
    root.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=root))
    try:
        _write(original, about, unfinished)
        _require_same_vectors(original, Exported(unfinished, about))
        _let_others_read(unfinished)
        _move(unfinished, root / about.folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return Exported(root / about.folder, about)


def _about(original: Any, weights: Weights, precision: str) -> About:
    digest = sha256_of(Path(weights.source) / WEIGHTS)
    return About(weights.name, digest, precision, original.get_embedding_dimension(), default_prompt(original) or "")


def _write(original: Any, about: About, folder: Path) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of tracing, one by one; the vectors are what counts
            _trace(original, about.prompt, folder / "traced.onnx")
            graph = _quantized(folder) if about.precision == "int8" else folder / "traced.onnx"
            _save(graph, folder / MODEL)
        original.tokenizer.backend_tokenizer.save(str(folder / TOKENIZER))
    except ImportError as error:
        raise EmbedderError(f"exporting needs the package {error.name}: pip install {error.name}") from error
    except Exception as error:  # PyTorch, ONNX and ONNX Runtime raise what they like
        raise EmbedderError(f"cannot export {about.name}: {type(error).__name__}: {error}") from error
    for name in ("traced.onnx", "quantized.onnx"):
        (folder / name).unlink(missing_ok=True)
    about.write(folder)


def _trace(original: Any, prompt: str, file: Path) -> None:
    import torch

    # Two lengths, so that the trace has padding in it.
    features = original.preprocess(["hello there", "more words than that"], prompt=prompt or None)
    names = [name for name, value in features.items() if isinstance(value, torch.Tensor)]

    class Pipeline(torch.nn.Module):  # type: ignore[misc]  # torch is not seen by mypy
        def __init__(self) -> None:
            super().__init__()
            self.original = original

        def forward(self, *columns: Any) -> Any:
            return self.original(dict(zip(names, columns, strict=True)))["sentence_embedding"]

    with torch.inference_mode():
        torch.onnx.export(
            Pipeline().eval(),
            tuple(features[name] for name in names),
            str(file),
            input_names=names,
            output_names=["embedding"],
            opset_version=OPSET,
            dynamo=False,  # the other exporter needs one package more and takes a minute
            dynamic_axes={name: {0: "texts", 1: "tokens"} for name in names} | {"embedding": {0: "texts"}},
        )


def _quantized(folder: Path) -> Path:
    """Weights of matrices as bytes with a scale for each column; one scale for all of them loses every fourth hit."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    file = folder / "quantized.onnx"
    logging.disable(logging.WARNING)  # it recommends a step that changes nothing here
    try:
        quantize_dynamic(
            folder / "traced.onnx",
            file,
            per_channel=True,
            op_types_to_quantize=["MatMul"],
            weight_type=QuantType.QInt8,
        )
    finally:
        logging.disable(logging.NOTSET)
    return file


def _save(graph: Path, file: Path) -> None:
    import onnx

    onnx.save_model(
        onnx.load(str(graph)), str(file), save_as_external_data=True, location=DATA, size_threshold=BYTES_APART
    )


def _require_same_vectors(original: Any, exported: Exported) -> None:
    """Raises EmbedderError."""
    import torch

    about = exported.about
    served = OnnxEmbedder(exported, dimension=about.dimension)
    made = _unit(served.vectors(list(PROBES)))
    with torch.inference_mode():
        features = original.preprocess(list(PROBES), prompt=about.prompt or None)
        wanted = _unit(original(features)["sentence_embedding"].float().numpy())
    off = float(np.abs(made - wanted).max())
    cosine = float((made * wanted).sum(axis=1).min())
    if not (cosine >= COSINE_MIN if about.precision == "int8" else off <= DIFFERENCE_MAX):
        raise EmbedderError(
            f"{about.name} was exported, but makes other vectors: off by {off:.6f}, cosine {cosine:.4f}"
        )


def _unit(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    unit: npt.NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def _let_others_read(folder: Path) -> None:
    """Made by one user when an image is built, served by another."""
    folder.chmod(0o755)
    for file in folder.iterdir():
        file.chmod(0o644)


def _move(unfinished: Path, folder: Path) -> None:
    """Somebody else may have exported the same meanwhile: one is as good as the other."""
    if read(folder) is None:
        shutil.rmtree(folder, ignore_errors=True)
    try:
        os.rename(unfinished, folder)
    except OSError:
        if read(folder) is None:
            raise
