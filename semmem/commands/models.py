"""``semmem model`` and ``semmem calibrate``: the embedding model, and the numbers that are learnt for it."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from semmem.commands.asking import settings_of
from semmem.commands.command import Command, Parser
from semmem.commands.failure import Failure
from semmem.commands.terminal import document, members, say, write

MODEL_FILES = (("config.yaml", "named by --config: which model, and the folder of those for ONNX Runtime"),)


def _add_config(parser: Parser) -> None:
    parser.add_argument("--config", type=Path, metavar="FILE", help="config.yaml that names the embedding model")


def _export_arguments(parser: Parser) -> None:
    parser.add_argument("--model", help="name or directory; without it the configured one")
    parser.add_argument("--int8", action="store_true", help="in 8 bits (memory.embedding.precision)")
    _add_config(parser)


def _export(given: argparse.Namespace) -> int:
    from semmem.ports.errors import EmbedderError
    from semmem.wiring.models import export_model  # imports every embedder

    settings = settings_of(given)
    model = given.model or settings.memory.embedding.model
    try:
        signature, folder = export_model(settings, model=model, precision="int8" if given.int8 else "fp32")
    except EmbedderError as error:
        raise Failure("NOT_EXPORTED", "", f"not exported: {error}") from error
    told = {"signature": signature, "folder": str(folder)}
    document(told) if given.json else write([f"{signature}: {folder}"])
    return 0


def _show(given: argparse.Namespace) -> int:
    from semmem.ports.errors import EmbedderError
    from semmem.wiring.models import embedder  # imports every embedder

    settings = settings_of(given)
    rules = settings.memory.embedding
    try:
        made = embedder(settings)
    except EmbedderError as error:
        raise Failure("NO_MODEL", "memory.embedding", str(error)) from error
    told = {
        "signature": made.signature,
        "source": rules.source,
        "model": rules.remote.model if rules.remote.url else rules.model,
        "dimension": rules.dimension,
        "precision": rules.computed_in,
        "exported_to": str(rules.onnx_folder),
    }
    document(told) if given.json else write(members(told))
    return 0


def _calibrate_arguments(parser: Parser) -> None:
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="what to write (signals.weights)")
    _add_config(parser)


def _calibrate(given: argparse.Namespace) -> int:
    from semmem.ports.errors import EmbedderError
    from semmem.wiring.calibration import NotCalibrated, calibrate  # imports every backend

    settings = settings_of(given)
    try:
        asyncio.run(calibrate(settings, given.out, say))
    except (EmbedderError, NotCalibrated) as error:
        raise Failure("NOT_CALIBRATED", "", f"not calibrated: {error}") from error
    document({"weights": str(given.out)}) if given.json else write([str(given.out)])
    return 0


MODEL = Command(
    name="model",
    does="the embedding model: export, show",
    about="What makes vectors of texts. Nothing is fetched but by export, of a model that is not here.",
    inside=(
        Command(
            name="export",
            does="write a model for ONNX Runtime, which semmem then serves it with",
            about=(
                "For BERT and its kind. A model that is on this machine is written by itself when it is first served;"
                " this does it before, in a second, and fetches a model that is not here from the Hugging Face hub."
            ),
            run=_export,
            arguments=_export_arguments,
            examples=(("semmem model export --config config.yaml", "before semmem is started"),),
            prints="the model's signature, and its folder",
            files=MODEL_FILES,
        ),
        Command(
            name="show",
            does="which model a semmem with this configuration would use",
            about="Exit status 1, with the reason, where it could not be used on this machine.",
            run=_show,
            arguments=_add_config,
            examples=(("semmem model show --config config.yaml", "what `memory.embedding` comes to here"),),
            prints="signature, source, model, dimension and folder",
            files=MODEL_FILES,
        ),
    ),
)
CALIBRATE = Command(
    name="calibrate",
    does="learn which memories a request needs, for the configured embedding model",
    about=(
        "Weights come with semmem for its own model. For another one this learns them from semmem's own labelled"
        " requests, in minutes of one core; needs scikit-learn. Name the file in signals.weights afterwards."
    ),
    run=_calibrate,
    arguments=_calibrate_arguments,
    examples=(("semmem calibrate --config config.yaml --out weights.npz", "for signals.weights"),),
    prints="the file that was written",
    files=MODEL_FILES,
)
