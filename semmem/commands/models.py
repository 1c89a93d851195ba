"""``semmem model``, ``calibrate`` and ``reindex``: the embedding model, the numbers that are learnt for it, and the
vectors of all memories anew, by a running semmem, or here where none runs."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from semmem.commands.asking import NO_SERVER, NO_TOKEN, TIMEOUT_S, Api, Told, asking, connected, given_only, settings_of
from semmem.commands.command import Command, Failure, argument, misused, one_of
from semmem.commands.terminal import Progress, answer, bar, document, members, say, write

MODEL_FILES = (("config.yaml", "named by --config: which model, and the folder of those for ONNX Runtime"),)
POLL_S = 0.5
REINDEX_PATH = "/v1/memory/reindex"
ENDED = frozenset({"none", "kept", "paused"})
"""States in which nothing more comes by itself."""

CONFIG = argument("--config", type=Path, metavar="FILE", help="config.yaml that names the embedding model")


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
    answer(given, told, [f"{signature}: {folder}"])
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
    answer(given, told, members(told))
    return 0


def _calibrate(given: argparse.Namespace) -> int:
    from semmem.ports.errors import EmbedderError
    from semmem.wiring.calibration import NotCalibrated, calibrate  # imports every backend

    settings = settings_of(given)
    try:
        asyncio.run(calibrate(settings, given.out, say))
    except (EmbedderError, NotCalibrated) as error:
        raise Failure("NOT_CALIBRATED", "", f"not calibrated: {error}") from error
    answer(given, {"weights": str(given.out)}, [str(given.out)])
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
            arguments=(
                argument("--model", help="name or directory; without it the configured one"),
                argument("--int8", action="store_true", help="in 8 bits (memory.embedding.precision)"),
                CONFIG,
            ),
            examples=(("semmem model export --config config.yaml", "before semmem is started"),),
            prints="the model's signature, and its folder",
            files=MODEL_FILES,
        ),
        Command(
            name="show",
            does="which model a semmem with this configuration would use",
            about="Exit status 1, with the reason, where it could not be used on this machine.",
            run=_show,
            arguments=(CONFIG,),
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
    arguments=(
        argument("--out", type=Path, required=True, metavar="FILE", help="what to write (signals.weights)"),
        CONFIG,
    ),
    examples=(("semmem calibrate --config config.yaml --out weights.npz", "for signals.weights"),),
    prints="the file that was written",
    files=MODEL_FILES,
)


# --- reindex ---------------------------------------------------------------------------------------------------------


def _reindex(given: argparse.Namespace) -> int:
    if given.limit is not None and given.limit < 1:
        raise misused("--limit", "is at least 1")
    progress = Progress("reindex")
    told = _done(given, document if given.json else lambda told: drawn(progress, told))
    progress.end()
    if given.json and given.drop_old:  # the others' last state was told with their progress
        document(told)
    elif not given.json:
        write(members(told) if given.drop_old else [summary(told)])
    return 0


def _done(given: argparse.Namespace, show: Callable[[Told], None]) -> dict[str, Any]:
    """By the semmem that runs, or here when none does."""
    from semmem.ports.errors import SemmemError
    from semmem.wiring.stores import run  # imports every backend

    settings = settings_of(given)
    asked: dict[str, Any] = {"force": given.force, "limit": given.limit, "drop": given.drop_old}
    try:
        if not given.rollback:
            return ask(connected(given, settings, timeout_s=2 * TIMEOUT_S), **asked, show=show)
    except Failure as failure:
        if failure.code not in (NO_SERVER, NO_TOKEN):
            raise
        say(f"no semmem runs here ({failure.reason}): this command does it")
    try:
        return asyncio.run(run(settings, **asked, back=given.rollback, say=show))
    except SemmemError as error:
        raise Failure("NOT_REINDEXED", "", str(error)) from error


def ask(api: Api, *, force: bool, limit: int | None, drop: bool, show: Callable[[Told], None]) -> dict[str, Any]:
    """Begin, or drop what is kept, and wait for the end; how it ended. Raises Failure."""
    if drop:
        dropped: dict[str, Any] = api.call("DELETE", REINDEX_PATH)
        return dropped
    told: dict[str, Any] = api.call("POST", REINDEX_PATH, json={"force": force, **given_only(limit=limit)})
    while told["state"] not in ENDED:
        show(told)
        time.sleep(POLL_S)
        told = api.call("GET", REINDEX_PATH)
    show(told)
    return told


def drawn(progress: Progress, told: Told) -> None:
    """How far it is."""
    if users := int(told.get("users", 0)):
        progress.at(int(told.get("users_done", 0)), _counted(told), users)


def summary(told: Told) -> str:
    """How it ended, on one line."""
    if not (users := int(told.get("users", 0))):
        return f"{told['state']:8} {told['collection']} holds vectors of {told['signature']}"
    return bar(f"{told['state']:8}", int(told.get("users_done", 0)), users, _counted(told))


def _counted(told: Told) -> str:
    done, users = told.get("users_done", 0), told.get("users", 0)
    return f"{done} of {users} users, {told.get('memories_done', 0)} memories, {told.get('embedded', 0)} embedded"


REINDEX = asking(
    name="reindex",
    does="make vectors of the configured embedding model for all memories",
    about=(
        "A running semmem does it while it serves; where none runs, this command does it itself. Until a user's"
        " memories have new vectors they are found by their words. The former vectors are kept for a way back, until"
        " --drop-old. It may be interrupted, and goes on where it was."
    ),
    run=_reindex,
    arguments=(
        one_of(
            argument("--force", action="store_true", help="also where they are of this model already"),
            argument("--rollback", action="store_true", help="only back to a former model's vectors that are kept"),
            argument("--drop-old", action="store_true", help="drop the former collection, and the way back with it"),
        ),
        argument("--limit", type=int, metavar="N", help="embed at most so many memories, then pause"),
    ),
    examples=(
        ("semmem reindex --config config.yaml", "after memory.embedding.model was changed"),
        ("semmem reindex --rollback --config config.yaml", "back to the former model, with its configuration"),
    ),
    prints="JSON Lines: how far it is, the last line how it ended",
)
