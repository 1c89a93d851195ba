"""Settings -> what makes vectors, with the command that prepares it, and clients of language and reranking models."""

import asyncio
import logging
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Unpack

from semmem.backends.embedding.bag_of_words import SIGNATURE_PREFIX, BagOfWords
from semmem.backends.embedding.cached import CachedEmbedder
from semmem.backends.embedding.local import Limits
from semmem.backends.embedding.onnx_runtime import Exported, OnnxEmbedder, find
from semmem.backends.embedding.sentence_transformers import SentenceTransformersEmbedder
from semmem.backends.embedding.static import StaticEmbedder
from semmem.backends.embedding.weights import is_missing, resolve_weights
from semmem.backends.models.embeddings import HttpEmbedder
from semmem.backends.models.openai import OpenAIModel
from semmem.backends.models.rerank import HttpReranker
from semmem.config.backends_section import MULTILINGUAL, EmbeddingSection, ExternalModel, RerankSection
from semmem.config.settings import Settings
from semmem.config.surroundings import TORCH_LIBRARY, WITHOUT_A_MODEL
from semmem.management.engine_api import EmbeddingProvider
from semmem.ports.embedder import Embedder
from semmem.ports.errors import EmbedderError
from semmem.ports.models import Reranker, ServedModel
from semmem.telemetry.metering import MeteredEmbedder, MeteredModel, MeteredReranker
from semmem.telemetry.metrics import Metrics
from semmem.text.terms import terms
from semmem.text.words import words

log = logging.getLogger(__name__)


def embedder(settings: Settings) -> Embedder:
    """What is configured to make vectors, behind its cache. Blocking: may read 90 MB. Raises EmbedderError."""
    rules = settings.memory.embedding
    return rules.fill(CachedEmbedder, chosen(rules), prefix="cache_")


def chosen(rules: EmbeddingSection, **others: Unpack[Limits]) -> Embedder:
    """Decided before anything is opened, by what is configured and there: another source makes other vectors, so none
    stands in for another that is away. Blocking, as ``local_embedder``. Raises EmbedderError."""
    match _first_there(rules) if rules.source == "auto" else rules.source:
        case "remote":
            return _remote(rules)
        case "static":
            log.info("embedding with the static model in %s", rules.static_dir)
            return rules.fill(StaticEmbedder, Path(rules.static_dir), **_limits(rules, others))
        case "none":
            log.warning("no embedding model: %s (memory.embedding.source)", WITHOUT_A_MODEL)
            return rules.fill(BagOfWords, lambda text: terms(words(text)), **_limits(rules, others))
        case _:
            return local_embedder(rules, **others)


def has_no_model(signature: str) -> bool:
    """Whether vectors of this signature are made of words alone."""
    return signature.startswith(SIGNATURE_PREFIX)


def _first_there(rules: EmbeddingSection) -> str:
    """What ``auto`` stands for. Raises EmbedderError."""
    if rules.remote.url:
        return "remote"
    if _is_here(rules):
        return "local"
    return "static" if rules.static_dir else "none"


def _is_here(rules: EmbeddingSection) -> bool:
    """Whether the model is on this machine. One that is damaged, of a kind that nothing here computes, or asked for by
    another key, counts as here: it is not passed over, since what was stored with it is of no use to another."""
    if rules.backend == "onnx" or rules.precision != "fp32":
        return True
    try:
        if rules.backend != "torch" and find(rules.onnx_folder, rules.model, rules.computed_in) is not None:
            return True
        return not is_missing(rules.model) and resolve_weights(rules.model).local
    except EmbedderError:
        return True


_SOURCE_OF = {"openai": "remote", "static": "static", "none": "none"}
"""What a signature begins with; any other is a model in this process."""


def providers(rules: EmbeddingSection, signature: str) -> list[EmbeddingProvider]:
    """Where vectors can come from. ``signature``: of those that are made. Blocking."""
    active = _SOURCE_OF.get(signature.partition("/")[0], "local")
    wanted = {"remote", "local", "static"} if rules.source == "auto" else {rules.source}
    has_table = bool(rules.static_dir) and Path(rules.static_dir).is_dir()
    return [
        {
            "name": name,
            "model": model,
            "configured": name in wanted and bool(model),
            "available": is_there,
            "active": name == active,
        }
        for name, model, is_there in (
            ("remote", rules.remote.model, bool(rules.remote.url)),
            ("local", rules.model, _is_here(rules)),
            ("static", rules.static_dir, has_table),
        )
    ]


def _remote(rules: EmbeddingSection) -> HttpEmbedder:
    remote = rules.remote
    log.info("embedding with %s on a server", remote.model)
    api_key = remote.api_key.get_secret_value() or None
    return remote.fill(HttpEmbedder, remote.url, remote.model, dimension=rules.dimension, api_key=api_key)


def _limits(rules: EmbeddingSection, others: Limits) -> dict[str, Any]:
    """The configured ones, but for ``others``."""
    names = ("workers", "batch_max", "background_batch_max")
    return {name: getattr(rules, name) for name in names} | others


def local_embedder(rules: EmbeddingSection, **others: Unpack[Limits]) -> OnnxEmbedder | SentenceTransformersEmbedder:
    """The model in this process, by the library that is configured; both make the same vectors. Blocking: may read 90
    MB, or write as much when a model is served for the first time. Raises EmbedderError. ``others``: limits other than
    the configured ones."""
    limits = _limits(rules, others)
    if rules.backend != "torch":
        try:
            there = _for_onnx(rules)
        except EmbedderError as error:
            if rules.backend == "onnx" or rules.precision != "fp32" or find_spec(TORCH_LIBRARY) is None:
                raise
            log.info("embedding with %s on PyTorch, which is slower: %s", rules.model, error)
        else:
            log.info("embedding with %s on ONNX Runtime, %s", rules.model, there.about.precision)
            return rules.fill(OnnxEmbedder, there, **limits)
    return rules.fill(SentenceTransformersEmbedder, **limits)


def _for_onnx(rules: EmbeddingSection) -> Exported:
    """What was written for ONNX Runtime, or is now. Raises EmbedderError: the model is not here, or of another kind."""
    if (there := find(rules.onnx_folder, rules.model, rules.computed_in)) is not None:
        return there
    if not resolve_weights(rules.model).local:
        raise EmbedderError(f"{rules.model} is not on this machine; semmem model export fetches it from the hub")
    log.info("writing %s for ONNX Runtime to %s, this once", rules.model, rules.onnx_folder)
    return _export(rules.model, rules.onnx_folder, rules.computed_in)


def _export(model: str, folder: Path, precision: str) -> Exported:
    """Raises EmbedderError."""
    from semmem.backends.embedding.export import export  # not needed where it was written before

    try:
        return export(model, folder, precision=precision)
    except OSError as error:
        raise EmbedderError(
            f"cannot write {folder} ({error}): name another one in memory.embedding.onnx_dir"
        ) from error


def export_model(settings: Settings, *, model: str, precision: str) -> tuple[str, Path]:
    """Write a model to where this configuration looks for it: its signature, and its folder. Blocking, a second or two
    and a download. Raises EmbedderError."""
    computed_in = "int8" if model == MULTILINGUAL else precision
    done = _export(model, settings.memory.embedding.onnx_folder, computed_in)
    return done.about.signature, done.folder


def metered(settings: Settings, vectors: Embedder, metrics: Metrics) -> MeteredEmbedder:
    rules = settings.memory.embedding
    is_remote = bool(rules.remote.url) and rules.source in ("auto", "remote")
    return MeteredEmbedder(
        vectors, metrics, model=rules.remote.model if is_remote else rules.model, is_remote=is_remote
    )


RETRIES = {"memory_rewrite": 0, "memory_extraction": 2, "compression": 1}
"""A request has no time for a second try, and another query at hand."""


class ModelClients:
    """Every client that was made and is not closed. One whose settings did not change is kept, with its connections
    and what it knows of its server; one that is not wanted any more still ends what it was asked."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._models: dict[ExternalModel, ServedModel] = {}
        self._rerankers: dict[RerankSection, Reranker] = {}

    def of(self, settings: Settings) -> tuple[Mapping[str, ServedModel], Reranker | None]:
        """The models by role, and the reranker where there is one. Raises ValueError for an endpoint that is none."""
        rerank, wanted = settings.memory.rerank, settings.external_models
        self._models |= {rules: model(rules, self._metrics) for rules in wanted if rules not in self._models}
        if rerank.url and rerank not in self._rerankers:
            client = HttpReranker(rerank.url, rerank.model, api_key=rerank.api_key.get_secret_value() or None)
            self._rerankers[rerank] = MeteredReranker(client, self._metrics)
        return {rules.model_role: self._models[rules] for rules in wanted}, self._rerankers.get(rerank)

    async def close_others(self, settings: Settings, *, after_s: float) -> None:
        """Close what these settings have no use for, when its last calls have ended."""
        others = self._without({*settings.external_models, settings.memory.rerank})
        try:
            if others:
                await asyncio.sleep(after_s)
        finally:
            for client in others:
                await client.close()

    async def close(self) -> None:
        for client in self._without(set()):
            await client.close()

    def _without(self, wanted: set[ExternalModel | RerankSection]) -> list[ServedModel | Reranker]:
        """The clients of other rules, which are forgotten here."""
        models, rerankers = self._models.keys() - wanted, self._rerankers.keys() - wanted
        return [*map(self._models.pop, models), *map(self._rerankers.pop, rerankers)]


def model(rules: ExternalModel, metrics: Metrics) -> ServedModel:
    """One language model. Raises ValueError for an endpoint that is none."""
    client = rules.fill(
        OpenAIModel,
        rules.llm_endpoint.base_url,
        rules.llm_model_name,
        api_key=rules.api_key.get_secret_value() or None,
        max_tokens=rules.output_tokens_max,
        retries=RETRIES[rules.model_role],
    )
    return MeteredModel(client, metrics, rules.model_role, name=rules.llm_model_name)
