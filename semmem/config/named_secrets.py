"""Secrets that stand in environment variables which the configuration names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from semmem.config.problems import NOTHING, REDACTED, Finding, Loc


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
