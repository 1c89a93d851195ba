"""Rules that tie keys of models together: language models, rerankers, embedding models."""

from __future__ import annotations

from semmem.config.problems import Conflicts
from semmem.config.settings import Settings


def rewriting_has_its_model(settings: Settings) -> Conflicts:
    mode = settings.memory.query.mode
    if mode != "prepend" and settings.external_model("memory_rewrite") is None:
        yield (
            "memory.query.mode",
            "needs an entry of external_models with model_role memory_rewrite",
            "add one, or use prepend",
            "external_models",
        )


def rerank_has_its_model(settings: Settings) -> Conflicts:
    rerank = settings.memory.rerank
    if bool(rerank.url) != bool(rerank.model):
        given, missing = ("url", "model") if rerank.url else ("model", "url")
        yield f"memory.rerank.{given}", f"is of no use without {missing}", "give both, or none"


def precision_has_its_library(settings: Settings) -> Conflicts:
    rules = settings.memory.embedding
    if rules.precision != "fp32" and rules.backend == "torch":
        yield (
            "memory.embedding.precision",
            "is for ONNX Runtime only, and backend is torch",
            "use fp32, or backend onnx",
            "memory.embedding.backend",
        )


def remote_embeddings_are_complete(settings: Settings) -> Conflicts:
    rules = settings.memory.embedding
    if bool(rules.remote.url) != bool(rules.remote.model):
        given, missing = ("url", "model") if rules.remote.url else ("model", "url")
        yield f"memory.embedding.remote.{given}", f"is of no use without {missing}", "give both, or none"
    for source, key, value in (("remote", "remote.url", rules.remote.url), ("static", "static_dir", rules.static_dir)):
        if rules.source == source and not value:
            yield ("memory.embedding.source", f"needs memory.embedding.{key}", "name it, or use auto")


def dimensions_agree(settings: Settings) -> Conflicts:
    store, model = settings.memory.milvus.dimension, settings.memory.embedding.dimension
    if store != model and settings.memory.backend != "qdrant":
        yield (
            "memory.milvus.dimension",
            f"differs from memory.embedding.dimension ({model})",
            f"set both to the length of {settings.memory.embedding.model}'s vectors",
            "memory.embedding.dimension",
        )


def engine_has_its_model(settings: Settings) -> Conflicts:
    if settings.memory.extraction.engine == "llm" and settings.external_model("memory_extraction") is None:
        yield (
            "memory.extraction.engine",
            "needs an entry of external_models with model_role memory_extraction",
            "add one, or use auto or rules",
            "external_models",
        )


def upstream_has_its_listener(settings: Settings) -> Conflicts:
    extraction = settings.memory.extraction
    if extraction.model != "upstream":
        return
    if settings.external_model("memory_extraction") is None:
        yield (
            "memory.extraction.model",
            "needs an entry of external_models with model_role memory_extraction",
            "add one whose llm_endpoint is Envoy's listener, or use configured",
            "external_models",
        )
    elif extraction.engine == "rules":
        yield (
            "memory.extraction.model",
            "is never asked with engine rules",
            "use engine auto or llm",
            "memory.extraction",
        )


def one_model_per_role(settings: Settings) -> Conflicts:
    seen: dict[str, int] = {}
    for index, model in enumerate(settings.external_models):
        first = seen.setdefault(model.model_role, index)
        if first != index:
            reason = f"is the role of external_models.{first} already"
            yield f"external_models.{index}.model_role", reason, "keep one model for each role", "external_models"


def endpoints_are_complete(settings: Settings) -> Conflicts:
    for index, model in enumerate(settings.external_models):
        at, endpoint = f"external_models.{index}.llm_endpoint", model.llm_endpoint
        if not endpoint.url and not endpoint.address:
            yield (at, "names no server", "give address (and port), or url")
        others = {"address", "port", "scheme", "path"} & endpoint.model_fields_set
        if endpoint.url and others:
            yield f"{at}.url", f"is given beside {', '.join(sorted(others))}", "keep url alone, or drop it"


def leases_outlast_calls(settings: Settings) -> Conflicts:
    model, extraction = settings.external_model("memory_extraction"), settings.memory.extraction
    if model is None or extraction.engine == "rules":
        return
    calls = 1 + extraction.episodic_summary + extraction.contradiction_check
    if extraction.lease_s <= calls * model.llm_timeout_seconds:
        yield (
            "memory.extraction.lease_s",
            f"is not longer than the calls of the extraction model for one batch ({calls} of up to "
            f"{model.llm_timeout_seconds:g} s), so another worker would begin the same batch",
            f"make it more than {calls * model.llm_timeout_seconds:g}",
            "external_models",
        )
