"""Other spellings that are accepted, and secrets that stand in the environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from semmem.config.problems import NOTHING, REDACTED, Finding, Loc

ALIASES: Mapping[Loc, Loc] = {("memory", "embedding_model"): ("memory", "embedding", "model")}
"""The semantic router's spelling on the left."""

MODEL_ALIASES = {"bert": "all-MiniLM-L6-v2"}
"""What the semantic router's ``embedding_model`` calls the same model."""


def resolve_aliases(tree: dict[str, Any]) -> tuple[dict[str, Any], list[Finding]]:
    """The tree with ``memory.embedding_model`` moved to its own place."""
    memory = tree.get("memory")
    if not isinstance(memory, dict) or "embedding_model" not in memory:
        return tree, []
    rest = {key: value for key, value in memory.items() if key != "embedding_model"}
    model, embedding = memory["embedding_model"], {} if rest.get("embedding") is None else rest["embedding"]
    if not isinstance(embedding, dict):  # The schema refuses that section.
        return {**tree, "memory": rest}, []
    model = MODEL_ALIASES.get(model, model) if isinstance(model, str) else model
    resolved = {**tree, "memory": {**rest, "embedding": {"model": model, **embedding}}}
    if embedding.get("model", model) == model:
        return resolved, []
    reason = "differs from memory.embedding.model"
    return resolved, [
        Finding(("memory", "embedding_model"), memory["embedding_model"], reason, "keep memory.embedding.model alone")
    ]


def resolve_secrets(tree: dict[str, Any], environ: Mapping[str, str]) -> tuple[dict[str, Any], list[Finding]]:
    """The tree with every ``<secret>_env`` read into ``<secret>``."""
    findings: list[Finding] = []
    resolved = dict(tree)
    models, listeners, memory = tree.get("external_models"), tree.get("listeners"), tree.get("memory")
    if "journal" in tree:
        resolved["journal"] = _filled(tree["journal"], "password", ("journal",), environ, findings)
    if isinstance(models, list):
        resolved["external_models"] = [
            _filled(model, "api_key", ("external_models", index), environ, findings)
            for index, model in enumerate(models)
        ]
    if isinstance(listeners, dict) and "api" in listeners:
        api = _filled(listeners["api"], "admin_token", ("listeners", "api"), environ, findings)
        resolved["listeners"] = {**listeners, "api": api}
    if isinstance(memory, dict) and "rerank" in memory:
        rerank = _filled(memory["rerank"], "api_key", ("memory", "rerank"), environ, findings)
        resolved["memory"] = {**memory, "rerank": rerank}
    if isinstance(memory, dict) and isinstance(embedding := memory.get("embedding"), dict) and "remote" in embedding:
        remote = _filled(embedding["remote"], "api_key", ("memory", "embedding", "remote"), environ, findings)
        resolved["memory"] = {**resolved["memory"], "embedding": {**embedding, "remote": remote}}
    if isinstance(memory, dict) and isinstance(hot := memory.get("hot_cache"), dict) and "redis" in hot:
        redis = _filled(hot["redis"], "password", ("memory", "hot_cache", "redis"), environ, findings)
        resolved["memory"] = {**resolved["memory"], "hot_cache": {**hot, "redis": redis}}
    return resolved, findings


def _filled(section: Any, name: str, at: Loc, environ: Mapping[str, str], findings: list[Finding]) -> Any:
    variable = section.get(f"{name}_env") if isinstance(section, dict) else None
    if not isinstance(variable, str) or not variable.isidentifier():  # The schema refuses what is not a name.
        return section
    if section.get(name):
        findings.append(Finding((*at, name), REDACTED, f"is given, and so is {name}_env", "keep one of them"))
        return section
    if environ.get(variable):
        return {**section, name: environ[variable]}
    named = f" {variable}" if variable.isupper() else ""  # Anything else may be the secret itself, pasted.
    reason = f"names an environment variable{named} that is not set"
    findings.append(Finding((*at, f"{name}_env"), NOTHING, reason, f"set it, or clear {name}_env"))
    return section
