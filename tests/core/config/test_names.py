"""Names of other systems: each is taken with effect, or refused with its reason; docs/names.md says which."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from semmem.config import Settings, effective, load, remarks, schema
from semmem.config.names import NAMES, Kind, Name
from semmem.memory import Controls
from semmem.request.asker import AskerRules, read_asker
from semmem.request.head import RequestHead
from semmem.request.permission import PermissionRules
from semmem.wiring import request
from tests.support.configuration import LONG_SECRET, at, check, loaded, only, problems, write
from tests.support.configuration_pages import names_page

HOME = Path(__file__).parents[3]

SAMPLES: dict[str, tuple[Any, Any]] = {
    "memory.enabled": (False, False),
    "memory.auto_store": (False, False),
    "memory.milvus.address": ("milvus:19530", "milvus:19530"),
    "memory.milvus.collection": ("theirs", "theirs"),
    "memory.milvus.dimension": (768, 768),
    "memory.embedding.model": ("all-mpnet-base-v2", "all-mpnet-base-v2"),
    "memory.embedding.dimension": (768, 768),
    "memory.embedding_model": ("all-mpnet-base-v2", "all-mpnet-base-v2"),
    "memory.default_retrieval_limit": (7, 7),
    "memory.default_similarity_threshold": (0.6, 0.6),
    "memory.extraction_batch_size": (3, 3),
    "external_models.N.llm_provider": ("vllm", "vllm"),
    "external_models.N.model_role": ("memory_rewrite", "memory_rewrite"),
    "external_models.N.llm_endpoint.address": ("other", "other"),
    "external_models.N.llm_endpoint.port": (8001, 8001),
    "external_models.N.llm_model_name": ("small", "small"),
    "external_models.N.llm_timeout_seconds": (7, 7),
    "external_models.N.max_tokens": (77, 77),
    "external_models.N.temperature": (0.7, 0.7),
    "memoryEnabled": (False, False),
    "memoryMaxTokens": (500, 500),
    "memoryRetentionDays": (30, 30),
    "memoryStrategy": ("exact", "recent"),
    "memoryEmbeddingSource": ("transformers", "local"),
    "memoryVectorStore": ("qdrant", "qdrant"),
    "memoryRerankModel": ("reranker", "reranker"),
    "qdrantHost": ("qdrant:6333", "qdrant:6333"),
    "qdrantApiKey": (LONG_SECRET, "(secret)"),
    "qdrantCollection": ("omniroute_memory", "omniroute_memory"),
    "qdrantQuantization": ("int8", "int8"),
    "MEMORY_EMBEDDING_CACHE_TTL_MS": ("60000", 60.0),
    "MEMORY_EMBEDDING_CACHE_MAX": ("50", 50),
    "MEMORY_TRANSFORMERS_MODEL": ("Xenova/other", "Xenova/other"),
    "ENABLE_MEMORY": ("0", False),
    "RAG_CONTEXT_LIMIT": ("3", 3),
    "ENABLE_METRICS": ("1", True),
    "METRICS_BATCH_SIZE": ("50", 50),
    "DAILY_STATS_UPDATE_INTERVAL": ("1800", 1800.0),
    "RAG_SIMILARITY_THRESHOLD": ("0.7", 0.7),
    "EMBEDDING_MODEL": ("all-mpnet-base-v2", "all-mpnet-base-v2"),
}
"""What is written, and what the setting then is: something else than its default."""
BESIDE = {
    "memoryRerankModel": "memory: {rerank: {url: 'http://reranker/v1'}}",
    "qdrantApiKey": "memory: {backend: qdrant, qdrant: {address: 'qdrant:6333'}}",
    "qdrantQuantization": "memory: {backend: qdrant, qdrant: {address: 'qdrant:6333'}}",
    "memory.milvus.dimension": "memory: {embedding: {dimension: 768}}",
    "memory.embedding.dimension": "memory: {milvus: {dimension: 768}}",
}
"""What else must be written for that to be a whole configuration."""
MODEL = {"model_role": "memory_extraction", "llm_endpoint": {"address": "qwen"}, "llm_model_name": "qwen3"}


def of(kind: Kind, *, refused: bool = False) -> list[Name]:
    return [name for name in NAMES if name.kind is kind and bool(name.becomes) is not refused]


def named(name: Name) -> str:
    return name.name


def test_the_page_is_the_table() -> None:
    assert (HOME / "docs" / "names.md").read_text() == names_page(), (
        "put what tests.support.configuration_pages prints there"
    )


def test_every_name_is_known_once() -> None:
    assert len({(name.kind, name.name) for name in NAMES}) == len(NAMES)


def test_every_name_leads_to_a_key_or_has_a_reason_and_a_way_out() -> None:
    leaves = {".".join(path) for path, *_ in schema.leaves()}
    for name in NAMES:
        assert name.becomes in leaves if name.becomes else (name.reason and name.instead), name.name


@pytest.mark.parametrize("name", of(Kind.KEY), ids=named)
def test_a_key_changes_the_setting_that_it_means(tmp_path: Path, name: Name) -> None:
    given, wanted = SAMPLES[name.name]
    tree = yaml.safe_load(BESIDE.get(name.name, "{}"))
    tree.setdefault("external_models", [dict(MODEL)] if name.name.startswith("external_models") else [])
    place = tree
    for part in (parts := name.name.split("."))[:-1]:
        place = place[0] if part == "N" else place.setdefault(part, {})
    place[parts[-1]] = given
    if name.name.endswith("address"):
        tree["external_models"] = [MODEL | {"llm_endpoint": {"address": given}}] if "external" in name.name else []
    target = tuple(0 if part == "N" else part for part in name.target)
    assert at(effective(loaded(tmp_path, yaml.safe_dump(tree))), target) == wanted
    field = schema.field_at(target)
    assert field is not None
    assert field.is_required() or wanted != field.get_default()


@pytest.mark.parametrize("name", of(Kind.VARIABLE), ids=named)
def test_a_variable_changes_the_setting_that_it_means_and_beats_the_file(tmp_path: Path, name: Name) -> None:
    given, wanted = SAMPLES[name.name]
    assert at(effective(Settings()), name.target) != wanted
    shipped = HOME / "config.yaml"
    assert at(effective(load(shipped, {name.name: given})), name.target) == wanted
    assert load(shipped, {name.name: ""}) == Settings(), "empty is not set"


@pytest.mark.parametrize("name", of(Kind.KEY, refused=True), ids=named)
def test_a_key_that_means_nothing_is_refused_with_its_reason(tmp_path: Path, name: Name) -> None:
    problem = only(problems(tmp_path, f"{name.name}: 1"))
    assert str(problem) == f"{name.name} = 1 (config.yaml:1:{len(name.name) + 3}): {name.reason}; {name.instead}"


@pytest.mark.parametrize("name", of(Kind.VARIABLE, refused=True), ids=named)
def test_a_variable_that_means_nothing_stops_nothing_and_is_told_with_its_reason(name: Name) -> None:
    environ = {name.name: "1"}
    assert check(None, environ) == []
    told = f"{name.name}, a name of {name.origin}, is not obeyed: {name.reason}; {name.instead}"
    assert told in list(remarks(load(None, environ), environ, here=False))
    assert told not in list(remarks(load(None, {}), {}, here=False))


# --- two names for one thing -----------------------------------------------------------------------------------------


def test_two_keys_that_disagree_are_refused_with_both_names(tmp_path: Path) -> None:
    problem = only(problems(tmp_path, "memoryMaxTokens: 5\nmemory: {injection: {max_inject_tokens: 6}}"))
    assert str(problem) == (
        "memoryMaxTokens = 5 (config.yaml:1:18): differs from memory.injection.max_inject_tokens; "
        "keep memory.injection.max_inject_tokens alone"
    )
    agreed = loaded(tmp_path, "memoryMaxTokens: 6\nmemory: {injection: {max_inject_tokens: 6}}")
    assert agreed.memory.injection.max_inject_tokens == 6


def test_two_variables_that_disagree_are_refused_with_both_names() -> None:
    both = {"ENABLE_MEMORY": "0", "SEMMEM_MEMORY__ENABLED": "true"}
    assert str(only(check(None, both))) == (
        "memory.enabled (ENABLE_MEMORY): differs from SEMMEM_MEMORY__ENABLED, which sets the same; keep one of them"
    )
    assert load(None, both | {"ENABLE_MEMORY": "1"}).memory.enabled
    theirs = {"EMBEDDING_MODEL": "a", "MEMORY_TRANSFORMERS_MODEL": "b"}
    assert "EMBEDDING_MODEL" in str(problem := only(check(None, theirs)))
    assert "MEMORY_TRANSFORMERS_MODEL" in str(problem)
    same = {"EMBEDDING_MODEL": "Xenova/all-MiniLM-L6-v2", "MEMORY_TRANSFORMERS_MODEL": "bert"}
    assert load(None, same).memory.embedding.model == "all-MiniLM-L6-v2"


def test_a_variable_of_ours_beats_a_key_of_theirs_in_the_file(tmp_path: Path) -> None:
    assert loaded(tmp_path, "memoryMaxTokens: 5", {"SEMMEM_MEMORY__INJECTION__MAX_INJECT_TOKENS": "6"}) == loaded(
        tmp_path, "memory: {injection: {max_inject_tokens: 6}}"
    )


def test_a_value_that_the_key_does_not_take_is_refused_where_it_stands(tmp_path: Path) -> None:
    assert str(only(problems(tmp_path, "memoryStrategy: best"))) == (
        "memory.retrieval_strategy = 'best' (config.yaml:1:17): is not one of hybrid, semantic, keyword, recent; "
        "the default is 'hybrid'"
    )
    found = only(check(None, {"RAG_CONTEXT_LIMIT": "500"}))
    assert (found.path, found.source) == ("memory.default_retrieval_limit", "RAG_CONTEXT_LIMIT")


def test_a_check_says_which_variables_of_others_are_obeyed() -> None:
    environ = {"RAG_CONTEXT_LIMIT": "3", "HOME": "/"}
    said = [remark for remark in remarks(load(None, environ), environ, here=False) if "RAG" in remark]
    assert said == ["RAG_CONTEXT_LIMIT, a name of local AI router, sets memory.default_retrieval_limit"]


def test_the_models_of_all_systems_are_one_model(tmp_path: Path) -> None:
    for given in ("bert", "sentence-transformers/all-MiniLM-L6-v2", "Xenova/all-MiniLM-L6-v2"):
        for found in (
            load(None, {"SEMMEM_MEMORY__EMBEDDING_MODEL": given}),
            load(write(tmp_path, f"memory: {{embedding_model: {given}}}"), {}),
        ):
            assert found.memory.embedding.model == "all-MiniLM-L6-v2"


def test_a_name_of_theirs_inside_what_is_no_section_is_left_to_the_schema(tmp_path: Path) -> None:
    assert only(problems(tmp_path, "memory: {embedding_model: bert, embedding: 7}")).path == "memory.embedding"
    assert only(problems(tmp_path, "memoryEnabled: true\nmemory: 7")).path == "memory"


# --- headers ---------------------------------------------------------------------------------------------------------

USER = {"x-authz-user-id", "x-jwt-sub", "x-user-id"}
"""Headers that say who asks."""


def asked(settings: Settings, **headers: str) -> Any:
    sent = {name.replace("_", "-"): (value,) for name, value in headers.items()}
    rules = AskerRules(request.identity(settings), settings.memory.fill(PermissionRules))
    return read_asker(rules, RequestHead("POST", "/v1/chat/completions", sent), Controls())


@pytest.mark.parametrize("name", [name for name in of(Kind.HEADER) if name.name.lower() in USER], ids=named)
def test_a_header_that_names_the_user_is_believed_where_it_is_named_and_nowhere_else(name: Name) -> None:
    header = name.name.lower()
    told = load(None, {"SEMMEM_IDENTITY__TRUSTED_HEADERS": f"[{header}]"})
    assert asked(told, **{header: "ada"}).scope.user == "ada"
    assert asked(Settings(), **{header: "ada"}).scope is None
    assert name.becomes == "identity.trusted_headers"


@pytest.mark.parametrize("name", [name for name in of(Kind.HEADER) if name.name.lower() not in USER], ids=named)
def test_a_header_that_says_how_has_its_effect(name: Name) -> None:
    header = name.name.lower()
    trusting = {"SEMMEM_IDENTITY__TRUSTED_HEADERS": "[x-user-id]"}
    usual = load(None, trusting)
    if header == "x-conversation-id":
        assert asked(usual, x_user_id="ada", **{header: "c1"}).scope.session == "c1"
    elif header == "x-enable-memory":
        opt_in = load(None, trusting | {"SEMMEM_MEMORY__OPT_IN": "true"})
        assert not asked(opt_in, x_user_id="ada").allowed.read
        assert asked(opt_in, x_user_id="ada", **{header: "true"}).allowed.read
        off = load(None, trusting | {"SEMMEM_MEMORY__ENABLED": "false"})
        assert not asked(off, x_user_id="ada", **{header: "true"}).allowed.read
    else:
        assert asked(usual, x_user_id="ada").allowed.read
        allowed = asked(usual, x_user_id="ada", **{header: "true"}).allowed
        assert (allowed.read, allowed.store) == (False, False)
