"""Configuration: what is accepted and how it is shown; every problem at once; secrets never."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from semmem.config import Settings, effective, load
from semmem.wiring import doors, request
from tests.support.configuration import LONG_SECRET, MODEL, loaded, only, problems


def test_the_semantic_routers_own_example_is_understood(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path,
        """
        memory:
          enabled: true
          auto_store: true
          milvus: {address: "milvus:19530", collection: agentic_memory, dimension: 384}
          embedding: {model: all-MiniLM-L6-v2, dimension: 384}
          default_retrieval_limit: 5
          default_similarity_threshold: 0.6
          extraction_batch_size: 10
        external_models:
          - {llm_provider: vllm, model_role: memory_rewrite, llm_endpoint: {address: qwen, port: 8000},
             llm_model_name: qwen3, llm_timeout_seconds: 30, max_tokens: 100, temperature: 0.1}
          - {llm_provider: vllm, model_role: memory_extraction, llm_endpoint: {address: qwen, port: 8000},
             llm_model_name: qwen3, llm_timeout_seconds: 30, max_tokens: 500, temperature: 0.1}
        """,
    )
    assert settings.memory.default_similarity_threshold == 0.6
    assert [model.model_role for model in settings.external_models] == ["memory_rewrite", "memory_extraction"]
    rewrite = settings.external_model("memory_rewrite")
    assert rewrite is not None
    assert rewrite.llm_endpoint.base_url == "http://qwen:8000/v1"


def test_a_section_whose_keys_are_commented_out_keeps_its_defaults(tmp_path: Path) -> None:
    text = "memory:\n  # enabled: false\nlisteners:\n  api:\nexternal_models:\nlog: {level: debug}"
    settings = loaded(tmp_path, text)
    assert settings == Settings().model_copy(update={"log": settings.log})
    assert settings.log.level == "debug"


@pytest.mark.parametrize(("text", "model"), [("bert", "all-MiniLM-L6-v2"), ("all-mpnet-base-v2", "all-mpnet-base-v2")])
def test_embedding_model_is_another_spelling_of_embedding_dot_model(tmp_path: Path, text: str, model: str) -> None:
    assert loaded(tmp_path, f"memory: {{embedding_model: {text}}}").memory.embedding.model == model
    variable = {"SEMMEM_MEMORY__EMBEDDING_MODEL": "all-mpnet-base-v2"}
    assert load(None, variable).memory.embedding.model == "all-mpnet-base-v2"


def test_two_spellings_that_disagree_are_refused(tmp_path: Path) -> None:
    problem = only(problems(tmp_path, "memory: {embedding_model: bert, embedding: {model: other}}"))
    assert str(problem) == (
        "memory.embedding_model = 'bert' (config.yaml:1:27): differs from memory.embedding.model; "
        "keep memory.embedding.model alone"
    )


def test_an_endpoint_is_an_address_or_a_url(tmp_path: Path) -> None:
    text = "external_models: [{model_role: memory_rewrite, llm_endpoint: %s, llm_model_name: m}]"
    secure = loaded(tmp_path, text % "{address: '::1', port: 443, scheme: https, path: /v2}").external_models[0]
    url = loaded(tmp_path, text % "{url: https://models.internal/v1/}").external_models[0]
    assert secure.llm_endpoint.base_url == "https://[::1]:443/v2"
    assert url.llm_endpoint.base_url == "https://models.internal/v1"


def test_output_tokens_default_to_what_the_role_needs(tmp_path: Path) -> None:
    rewrite = MODEL.replace("memory_extraction", "memory_rewrite")
    models = loaded(tmp_path, f"external_models: [{rewrite}, {MODEL}]").external_models
    assert [model.output_tokens_max for model in models] == [100, 500]


def test_embedded_paths_lie_below_the_data_directory(tmp_path: Path) -> None:
    settings = loaded(tmp_path, "data_dir: /var/lib/semmem\njournal: {path: /journal/j.db}")
    assert settings.milvus_dir == Path("/var/lib/semmem/milvus")
    assert settings.journal_file == Path("/journal/j.db")


def test_a_listener_knows_its_host_and_port(tmp_path: Path) -> None:
    api = loaded(tmp_path, "listeners: {api: {address: '[::1]:0'}}").listeners.api
    assert (api.host, api.port) == ("::1", 0)


def test_the_in_process_backend_is_allowed(tmp_path: Path) -> None:
    assert loaded(tmp_path, "memory: {backend: in_process}").memory.backend == "in_process"


def test_listeners_may_all_ask_for_a_free_port(tmp_path: Path) -> None:
    text = (
        "listeners: {grpc: {address: '127.0.0.1:0'}, api: {address: '127.0.0.1:0'}, health: {address: '127.0.0.1:0'}}"
    )
    assert problems(tmp_path, text) == []


def test_dates_are_text(tmp_path: Path) -> None:
    assert loaded(tmp_path, "memory: {milvus: {data_dir: 2026-01-31}}").memory.milvus.data_dir == "2026-01-31"


def test_an_alias_may_repeat_a_section_and_an_override_changes_only_one_of_the_two(tmp_path: Path) -> None:
    text = (
        "external_models:\n"
        "- {model_role: memory_rewrite, llm_endpoint: &qwen {address: qwen}, llm_model_name: m}\n"
        "- {model_role: memory_extraction, llm_endpoint: *qwen, llm_model_name: m}\n"
    )
    models = loaded(tmp_path, text, {"SEMMEM_EXTERNAL_MODELS__1__LLM_ENDPOINT__PORT": "9"}).external_models
    assert [model.llm_endpoint.port for model in models] == [8000, 9]


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().memory.enabled = False


def test_elements_are_appended_in_the_order_of_their_numbers() -> None:
    variables = {f"SEMMEM_IDENTITY__TRUSTED_HEADERS__{n}": f"x-{n}" for n in reversed(range(12))}
    assert load(None, variables).identity.trusted_headers == tuple(f"x-{n}" for n in range(12))


def test_no_secret_is_ever_shown(tmp_path: Path) -> None:
    text = f"""
    memory:
      milvus: {{address: 'milvus:19530', token: {LONG_SECRET}}}
      injection: {{fence_key: {LONG_SECRET}, fence_key_former: {LONG_SECRET}}}
    identity: {{api_key: {{enabled: true, hmac_secret: {LONG_SECRET}}}}}
    listeners: {{api: {{admin_token: {LONG_SECRET}}}}}
    journal: {{url: 'postgresql://db/semmem', password: {LONG_SECRET}}}
    external_models: [{MODEL[:-1]}, api_key: {LONG_SECRET}}}]
    """
    settings = loaded(tmp_path, text)
    assert settings.external_models[0].api_key.get_secret_value() == LONG_SECRET
    shown = json.dumps(effective(settings))
    assert LONG_SECRET not in repr(settings) + str(settings) + shown
    assert shown.count("(secret)") == 7


@pytest.mark.parametrize("url", ["postgresql://ada:PASS@db/x", "postgres://db/x?sslmode=require&password=PASS"])
def test_a_password_in_the_journals_url_is_refused_and_not_shown(tmp_path: Path, url: str) -> None:
    problem = str(only(problems(tmp_path, f"journal: {{url: '{url.replace('PASS', LONG_SECRET)}'}}")))
    assert "holds a password; leave it out, and put it into journal.password" in problem
    assert LONG_SECRET not in problem


def test_the_journals_password_may_stand_in_the_environment(tmp_path: Path) -> None:
    text = "journal: {url: 'postgresql://db/semmem', password_env: DATABASE_PASSWORD}"
    assert loaded(tmp_path, text, {"DATABASE_PASSWORD": LONG_SECRET}).journal.password.get_secret_value() == LONG_SECRET


@pytest.mark.parametrize("url", ["redis://:PASS@valkey/0", "rediss://ada:PASS@v:1", "redis://v?password=PASS"])
def test_a_password_in_the_url_of_redis_is_refused_and_not_shown(tmp_path: Path, url: str) -> None:
    text = f"memory: {{hot_cache: {{redis: {{url: '{url.replace('PASS', LONG_SECRET)}'}}}}}}"
    problem = str(only(problems(tmp_path, text)))
    assert "holds a password; leave it out, and put it into memory.hot_cache.redis.password" in problem
    assert LONG_SECRET not in problem


@pytest.mark.parametrize(
    "url", ["redis://valkey", "redis://ada@valkey:6379/2", "rediss://[::1]:7", "unix:///run/v.sock"]
)
def test_the_password_of_redis_may_stand_in_the_environment(tmp_path: Path, url: str) -> None:
    text = f"memory: {{hot_cache: {{redis: {{url: '{url}', password_env: VALKEY_PASSWORD}}}}}}"
    redis = loaded(tmp_path, text, {"VALKEY_PASSWORD": LONG_SECRET}).memory.hot_cache.redis
    assert (redis.url, redis.password.get_secret_value()) == (url, LONG_SECRET)


@pytest.mark.parametrize("url", ["valkey:6379", "http://valkey", "unix://run", "redis://", "redis://a b"])
def test_what_is_no_url_of_redis_is_refused(tmp_path: Path, url: str) -> None:
    problem = str(only(problems(tmp_path, f"memory: {{hot_cache: {{redis: {{url: '{url}'}}}}}}")))
    assert "is no redis://, rediss:// or unix:/// URL" in problem


def test_not_even_the_schemas_own_error_shows_a_secret() -> None:
    with pytest.raises(ValidationError) as error:
        Settings.model_validate({"listeners": {"api": {"admin_token": [LONG_SECRET]}}})
    assert LONG_SECRET not in str(error.value)


def test_an_unset_secret_is_shown_as_unset() -> None:
    assert effective(Settings())["listeners"]["api"]["admin_token"] == ""


def test_the_effective_configuration_is_plain_json(tmp_path: Path) -> None:
    shown = effective(loaded(tmp_path, f"external_models: [{MODEL}]"))
    assert json.loads(json.dumps(shown)) == shown
    assert shown["external_models"][0]["llm_endpoint"]["address"] == "qwen"


@pytest.mark.parametrize(
    "text",
    [
        f"memory: {{milvus: {{tokn: {LONG_SECRET}, token: [{LONG_SECRET}]}}}}",
        f"memory: {{milvus: {{access_token: {LONG_SECRET}}}}}",
        f"memory: {{milvus: {{token: '{LONG_SECRET} {LONG_SECRET}'}}}}",
        f"memory: {{milvus: {{address: 'http://root:{LONG_SECRET}@milvus:19530'}}}}",
        f"identity: {{api_key: {LONG_SECRET}}}",
        f"listeners: {{api: {{admin_token_env: {LONG_SECRET}}}}}",
        f"listeners: {{api: {{admin_token_env: k{LONG_SECRET.replace('-', '_')}}}}}",
        f"external_models: [{{api_key: {{a: {LONG_SECRET}}}}}]",
        f"external_models: [{{bearer: {{a: {LONG_SECRET}}}}}]",
        f"listeners: {{api: {{admin_token: {LONG_SECRET}: {LONG_SECRET}}}}}",
    ],
)
def test_a_refused_secret_is_redacted(tmp_path: Path, text: str) -> None:
    shown = "\n".join(str(problem) for problem in problems(tmp_path, text.replace("tokn", "admin_tokn_password")))
    assert shown
    assert "s3cr3t" not in shown


def test_a_secret_may_stand_in_a_variable_that_the_file_names(tmp_path: Path) -> None:
    text = f"listeners: {{api: {{admin_token_env: ADMIN}}}}\nexternal_models: [{MODEL[:-1]}, api_key_env: KEY}}]"
    settings = loaded(tmp_path, text, {"ADMIN": LONG_SECRET, "KEY": "sk-1"})
    assert settings.listeners.api.admin_token.get_secret_value() == LONG_SECRET
    assert settings.external_models[0].api_key.get_secret_value() == "sk-1"


def test_a_variable_that_is_named_must_be_set(tmp_path: Path) -> None:
    problem = only(problems(tmp_path, "listeners: {api: {admin_token_env: ADMIN}}"))
    assert str(problem) == (
        "listeners.api.admin_token_env (config.yaml:1:36): names an environment variable ADMIN that is not set; "
        "set it, or clear admin_token_env"
    )


def test_a_secret_is_given_once(tmp_path: Path) -> None:
    text = "listeners: {api: {admin_token: abc, admin_token_env: ADMIN}}"
    problem = only(problems(tmp_path, text, {"ADMIN": "x"}))
    assert str(problem) == (
        "listeners.api.admin_token = (secret) (config.yaml:1:32): is given, and so is admin_token_env; keep one of them"
    )


def test_the_apis_door_is_configured_beside_its_address(tmp_path: Path) -> None:
    text = """
    listeners:
      api:
        trusted_headers: [x-forwarded-user]
        allowed_hosts: [semmem, "*.svc.cluster.local", 10.0.0.5, "fd00::5"]
        allowed_origins: ["https://studio.internal", "http://[::1]:3000"]
    """
    settings = loaded(tmp_path, text)
    rules = doors.door(settings)
    assert rules.allowed_hosts == ("127.0.0.1", "semmem", "*.svc.cluster.local", "10.0.0.5", "fd00::5")
    assert rules.allowed_origins == ("https://studio.internal", "http://[::1]:3000")
    assert doors.access(settings, None, None).trusted_headers == ("x-forwarded-user",)


def test_headers_that_envoy_may_set_are_not_believed_by_the_api(tmp_path: Path) -> None:
    settings = loaded(tmp_path, "identity: {trusted_headers: [x-user-id]}")
    assert doors.access(settings, None, None).trusted_headers == ()
    assert request.identity(settings).trusted_headers == ("x-user-id",)
