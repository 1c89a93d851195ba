"""Environment variables override the file, and are refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from semmem.config import Settings, effective, load, schema
from semmem.config.loading import variable_name
from tests.support.configuration import MODEL, at, check, loaded, only, problems


@pytest.mark.parametrize(
    ("name", "text", "path", "value"),
    [
        ("SEMMEM_DATA_DIR", "/data", ("data_dir",), "/data"),
        ("SEMMEM_MEMORY__ENABLED", "false", ("memory", "enabled"), False),
        ("semmem_memory__Milvus__address", "milvus:19530", ("memory", "milvus", "address"), "milvus:19530"),
        ("SEMMEM_MEMORY__DEFAULT_RETRIEVAL_LIMIT", "7", ("memory", "default_retrieval_limit"), 7),
        ("SEMMEM_MEMORY__DEFAULT_SIMILARITY_THRESHOLD", "0.25", ("memory", "default_similarity_threshold"), 0.25),
        (
            "SEMMEM_IDENTITY__TRUSTED_HEADERS",
            "[x-user-id, x-jwt-sub]",
            ("identity", "trusted_headers"),
            ["x-user-id", "x-jwt-sub"],
        ),
        ("SEMMEM_IDENTITY__TRUSTED_HEADERS__0", "x-user-id", ("identity", "trusted_headers", 0), "x-user-id"),
        ("SEMMEM_IDENTITY__SESSION_HEADERS__1", "x-chat", ("identity", "session_headers"), ["x-a", "x-chat"]),
        ("SEMMEM_EXTERNAL_MODELS__0__LLM_MODEL_NAME", "0123", ("external_models", 0, "llm_model_name"), "0123"),
        ("SEMMEM_EXTERNAL_MODELS__0__MAX_TOKENS", "null", ("external_models", 0, "max_tokens"), None),
        ("SEMMEM_JOURNAL__SYNCHRONOUS", "full", ("journal", "synchronous"), "full"),
        ("SEMMEM_DATA_DIR", "2024", ("data_dir",), "2024"),
    ],
)
def test_a_variable_overrides_the_file(
    tmp_path: Path, name: str, text: str, path: tuple[str | int, ...], value: object
) -> None:
    base = f"data_dir: /other\nidentity: {{session_headers: [x-a, x-b]}}\nexternal_models: [{MODEL}]"
    assert at(effective(loaded(tmp_path, base, {name: text, "HOME": "/"})), path) == value


def test_a_secret_in_a_variable_is_taken_as_it_stands() -> None:
    settings = load(None, {"SEMMEM_LISTENERS__API__ADMIN_TOKEN": "0123456789012345"})
    assert settings.listeners.api.admin_token.get_secret_value() == "0123456789012345"


def test_a_list_can_be_given_whole_and_then_by_element() -> None:
    settings = load(
        None,
        {
            "SEMMEM_EXTERNAL_MODELS__0__LLM_ENDPOINT__PORT": "8001",
            "SEMMEM_EXTERNAL_MODELS__1__MODEL_ROLE": "memory_rewrite",
            "SEMMEM_EXTERNAL_MODELS__1__LLM_ENDPOINT__ADDRESS": "b",
            "SEMMEM_EXTERNAL_MODELS__1__LLM_MODEL_NAME": "small",
            "SEMMEM_EXTERNAL_MODELS": f"[{MODEL}]",
        },
    )
    assert [model.llm_endpoint.base_url for model in settings.external_models] == [
        "http://qwen:8001/v1",
        "http://b:8000/v1",
    ]


@pytest.mark.parametrize("path", [path for path, *_ in schema.leaves() if "N" not in path], ids=".".join)
def test_every_key_can_be_set_by_a_variable(path: tuple[str, ...]) -> None:
    value = at(effective(Settings()), path)
    text = value if isinstance(value, str) else json.dumps(value)
    assert load(None, {variable_name(path): text}) == Settings()


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        (
            {"SEMMEM_MEMORY__OPT_IN": "maybe"},
            "memory.opt_in = 'maybe' (SEMMEM_MEMORY__OPT_IN): is not true or false; the default is false",
        ),
        (
            {"SEMMEM_JOURNAL__QUEUE_MAX": ""},
            "journal.queue_max = null (SEMMEM_JOURNAL__QUEUE_MAX): is empty; give a whole number from 1 to 1000000",
        ),
        (
            {"semmem_limits__query_chars_max": "["},
            "limits.query_chars_max (semmem_limits__query_chars_max): not valid YAML: "
            "expected the node content, but found '<stream end>'; give a whole number from 16 to 32000",
        ),
        (
            {"SEMMEM_EXTERNAL_MODELS": "[{llm_model_name: a, llm_model_name: b}]"},
            "external_models (SEMMEM_EXTERNAL_MODELS): 0.llm_model_name: is given twice, first in line 1; "
            "keep one of them",
        ),
        (
            {"SEMMEM_LOG_LEVEL": "debug"},
            "log_level (SEMMEM_LOG_LEVEL): names no key of the configuration; did you mean SEMMEM_LOG__LEVEL?",
        ),
        (
            {"SEMMEM_QQQ": "1"},
            "qqq (SEMMEM_QQQ): names no key of the configuration; unset it, or see docs/configuration.md for the keys",
        ),
        (
            {"SEMMEM_MEMORY": "{enabled: false}"},
            "memory (SEMMEM_MEMORY): names a whole section; "
            "set its keys one by one, for example SEMMEM_MEMORY__ENABLED",
        ),
        (
            {"SEMMEM_LOG__LEVEL": "debug", "semmem_log__level": "info"},
            "log.level (semmem_log__level): sets what SEMMEM_LOG__LEVEL sets too; keep one of them",
        ),
        (
            {"SEMMEM_IDENTITY__TRUSTED_HEADERS__1": "x-user-id"},
            "identity.trusted_headers.1 (SEMMEM_IDENTITY__TRUSTED_HEADERS__1): skips elements: the list has 0; "
            "number them from 0 on",
        ),
        (
            {"SEMMEM_DEADLINES__PHASE_MS": "600"},
            "deadlines.phase_ms = 600 (SEMMEM_DEADLINES__PHASE_MS): is not shorter than deadlines.message_timeout_ms "
            "(500); keep message_timeout_ms > phase_ms > store_ms, for example 500, 350, 200",
        ),
        (
            {"SEMMEM_LISTENERS__API__ADMIN_TOKEN": "two words"},
            "listeners.api.admin_token = (secret) (SEMMEM_LISTENERS__API__ADMIN_TOKEN): "
            "contains a space, a line end or a non-ASCII character; give the secret alone, without a line end",
        ),
    ],
)
def test_a_bad_variable_is_named(environ: dict[str, str], message: str) -> None:
    assert str(only(check(None, environ))) == message


def test_a_variable_cannot_reach_into_a_value_that_is_no_section(tmp_path: Path) -> None:
    found = problems(tmp_path, "log: loud", {"SEMMEM_LOG__LEVEL": "info"})
    assert [(problem.path, problem.source) for problem in found] == [
        ("log.level", "SEMMEM_LOG__LEVEL"),
        ("log", "config.yaml:1:6"),
    ]


def test_what_kubernetes_adds_for_a_service_named_semmem_is_not_configuration() -> None:
    environ = {
        "SEMMEM_SERVICE_HOST": "10.0.0.1",
        "SEMMEM_SERVICE_PORT": "50051",
        "SEMMEM_SERVICE_PORT_GRPC": "50051",
        "SEMMEM_PORT": "tcp://10.0.0.1:50051",
        "SEMMEM_PORT_50051_TCP": "tcp://10.0.0.1:50051",
        "SEMMEM_PORT_50051_TCP_PROTO": "tcp",
        "SEMMEM_PORT_50051_TCP_ADDR": "10.0.0.1",
        "SEMMEM_API_SERVICE_HOST": "10.0.0.2",
        "SEMMEM_API_PORT_8080_TCP_PORT": "8080",
        "SEMMEM_CONFIG": "/etc/semmem/config.yaml",
        "SEMMEMORY": "x",
    }
    assert load(None, environ) == Settings()
