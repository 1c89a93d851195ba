"""Every refused value is named with its path, its reason and what would be right."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from semmem.config import ConfigError, load, values
from tests.support.configuration import only, problems, write

REFUSED = [
    ("memory: {enabled: 'yes'}", "memory.enabled = 'yes'", "is not true or false; the default is true"),
    ("memory: {enabled: 1}", "memory.enabled = 1", "is not true or false; the default is true"),
    (
        "memory: {default_retrieval_limit: 51}",
        "memory.default_retrieval_limit = 51",
        "is not a whole number from 1 to 50; the default is 5",
    ),
    (
        "memory: {default_retrieval_limit: '5'}",
        "memory.default_retrieval_limit = '5'",
        "is not a whole number from 1 to 50; the default is 5",
    ),
    (
        "memory: {milvus: {dimension: 384.5}}",
        "memory.milvus.dimension = 384.5",
        "is not a whole number from 1 to 32768; the default is 384",
    ),
    (
        "memory: {default_similarity_threshold: .nan}",
        "memory.default_similarity_threshold = nan",
        "is not a number from 0 to 1, or null; the default is null",
    ),
    (
        "memory: {default_similarity_threshold: -0.1}",
        "memory.default_similarity_threshold = -0.1",
        "is not a number from 0 to 1, or null; the default is null",
    ),
    (
        "memory: {injection: {max_inject_tokens: 16001}}",
        "memory.injection.max_inject_tokens = 16001",
        "is not a whole number from 0 to 16000; the default is 2000",
    ),
    (
        "memory: {extraction: {lease_s: 0}}",
        "memory.extraction.lease_s = 0",
        "is not a number above 0 to 86400; the default is 120.0",
    ),
    (
        "memory: {backend: pinecone}",
        "memory.backend = 'pinecone'",
        "is not one of milvus, qdrant, in_process; the default is 'milvus'",
    ),
    ("memory: 7", "memory = 7", "is not a section; give a section"),
    ("memory: {milvus: {data_dir: 5}}", "memory.milvus.data_dir = 5", "is not text; put it in quotes"),
    ("memory: {milvus: {data_dir: [a]}}", "memory.milvus.data_dir = (a list)", "is not text; the default is 'milvus'"),
    ("data_dir: ''", "data_dir = ''", "is empty; give text"),
    ("log: {level: }", "log.level = null", "is empty; give one of debug, info, warning, error"),
    (
        'data_dir: "a\\tb"',
        r"data_dir = 'a\tb'",
        "contains a control or invisible character; write it on one line, without tabs",
    ),
    (
        "identity: {metadata_claim: jwt.sub}",
        "identity.metadata_claim = 'jwt.sub'",
        "is not a list of text; write it as [a, b]",
    ),
    ("identity: {metadata_claim: [sub, 5]}", "identity.metadata_claim.1 = 5", "is not text; put it in quotes"),
    (
        "identity: {metadata_claim: [a, b, c, d, e, f, g, h, i]}",
        "identity.metadata_claim = (a list)",
        "is longer than 8; shorten it",
    ),
    (
        "listeners: {api: {address: ':8080'}}",
        "listeners.api.address = ':8080'",
        "is not host:port; write for example 127.0.0.1:8080, 0.0.0.0:8080 or [::1]:8080",
    ),
    (
        "listeners: {grpc: {address: '127.0.0.1:65536'}}",
        "listeners.grpc.address = '127.0.0.1:65536'",
        "has a port above 65535; use a port from 1 to 65535",
    ),
    (
        "listeners: {api: {allowed_hosts: ['Semmem.Internal']}}",
        "listeners.api.allowed_hosts.0 = 'Semmem.Internal'",
        "is not a lower-case host name or IP address without a port; "
        "write for example semmem.internal, *.svc.cluster.local or 10.0.0.5",
    ),
    (
        "listeners: {api: {allowed_hosts: ['semmem:8080']}}",
        "listeners.api.allowed_hosts.0 = 'semmem:8080'",
        "is not a lower-case host name or IP address without a port; "
        "write for example semmem.internal, *.svc.cluster.local or 10.0.0.5",
    ),
    (
        "listeners: {api: {allowed_hosts: ['*']}}",
        "listeners.api.allowed_hosts.0 = '*'",
        "is not a lower-case host name or IP address without a port; "
        "write for example semmem.internal, *.svc.cluster.local or 10.0.0.5",
    ),
    (
        "listeners: {api: {allowed_hosts: ['a b']}}",
        "listeners.api.allowed_hosts.0 = 'a b'",
        "is not a lower-case host name or IP address without a port; "
        "write for example semmem.internal, *.svc.cluster.local or 10.0.0.5",
    ),
    (
        "listeners: {api: {allowed_origins: ['https://Studio.internal']}}",
        "listeners.api.allowed_origins.0 = 'https://Studio.internal'",
        "is not an origin in lower case; write for example https://studio.internal, without a path",
    ),
    (
        "listeners: {api: {allowed_origins: ['studio.internal']}}",
        "listeners.api.allowed_origins.0 = 'studio.internal'",
        "is not an origin in lower case; write for example https://studio.internal, without a path",
    ),
    (
        "listeners: {api: {allowed_origins: ['https://studio.internal/']}}",
        "listeners.api.allowed_origins.0 = 'https://studio.internal/'",
        "is not an origin in lower case; write for example https://studio.internal, without a path",
    ),
    (
        "listeners: {api: {allowed_origins: ['*']}}",
        "listeners.api.allowed_origins.0 = '*'",
        "is not an origin in lower case; write for example https://studio.internal, without a path",
    ),
    (
        f"listeners: {{grpc: {{unix_socket: /{'s' * 107}}}}}",
        f"listeners.grpc.unix_socket = '/{'s' * 75}...",
        "is 108 bytes long; the system takes 107; use a shorter path, for example /run/semmem.sock",
    ),
    (
        "memory: {milvus: {address: milvus}}",
        "memory.milvus.address = 'milvus'",
        "is neither host:port nor an http(s) URL without credentials; "
        'write for example milvus:19530, or "" for the embedded store; credentials belong in memory.milvus.token',
    ),
    (
        "memory: {milvus: {collection: my-memory}}",
        "memory.milvus.collection = 'my-memory'",
        "is not a plain name; use letters, digits and _, not starting with a digit, at most 255",
    ),
    (
        "identity: {trusted_headers: [X-User-Id]}",
        "identity.trusted_headers.0 = 'X-User-Id'",
        "is not a lower-case header name; write for example x-user-id",
    ),
    (
        "identity: {trusted_headers: ['x user']}",
        "identity.trusted_headers.0 = 'x user'",
        "is not a lower-case header name; write for example x-user-id",
    ),
    (
        "identity: {trusted_headers: [':authority']}",
        "identity.trusted_headers.0 = ':authority'",
        "is a pseudo-header; name an ordinary header, for example x-user-id",
    ),
    (
        "identity: {trusted_headers: [te]}",
        "identity.trusted_headers.0 = 'te'",
        "is a hop-by-hop header; name a header that travels with the request, for example x-user-id",
    ),
    (
        "identity: {trusted_headers: [authorization]}",
        "identity.trusted_headers.0 = 'authorization'",
        "carries credentials, and would be kept as an id; "
        "name a header that carries an id, for example x-user-id; for memory per API key see identity.api_key",
    ),
    (
        "identity: {trusted_headers: [x-semmem-user]}",
        "identity.trusted_headers.0 = 'x-semmem-user'",
        "is one of semmem's own headers, which clients send; name a header your gateway sets",
    ),
    (
        "identity: {session_headers: [cookie]}",
        "identity.session_headers.0 = 'cookie'",
        "carries credentials, and would be kept as an id; "
        "name a header that carries an id, for example x-user-id; for memory per API key see identity.api_key",
    ),
    (
        "signals: {fact_header: Upgrade}",
        "signals.fact_header = 'Upgrade'",
        "is not a lower-case header name; write for example x-user-id",
    ),
    (
        "signals: {pii_metadata: [my.filter]}",
        "signals.pii_metadata = (a list)",
        "names a namespace and no value in it; write for example [security.filter, blocked], or []",
    ),
    (
        "listeners: {api: {admin_token_env: $TOKEN}}",
        "listeners.api.admin_token_env = (secret)",
        "is not the name of an environment variable; write the name alone, without $",
    ),
    *(
        (
            f"paths: {{chat: ['{path}']}}",
            f"paths.chat.0 = '{path}'",
            "is not the path of an API, in which * stands alone between slashes; write for example"
            " /v1/chat/completions or /openai/deployments/*/chat/completions, without a query",
        )
        for path in ("v1/chat", "/v1/chat/", "/v1/chat?x=1", "/v*/chat", "/v1//chat", "", "/")
    ),
    (
        "external_models: [{model_role: memory_rewrite, llm_endpoint: {address: a, path: v1}, llm_model_name: m}]",
        "external_models.0.llm_endpoint.path = 'v1'",
        "is not a URL path; write for example /v1",
    ),
    (
        "external_models: [{model_role: memory_rewrite, llm_endpoint: {url: 'ftp://a'}, llm_model_name: m}]",
        "external_models.0.llm_endpoint.url = 'ftp://a'",
        "is not an http(s) URL without credentials and query; write for example https://models.internal/v1",
    ),
    (
        "external_models: [{model_role: memory_rewrite, llm_endpoint: {address: a, port: 0}, llm_model_name: m}]",
        "external_models.0.llm_endpoint.port = 0",
        "is not a whole number from 1 to 65535; the default is 8000",
    ),
    (
        "external_models: [{llm_endpoint: {address: a}, llm_model_name: m}]",
        "external_models.0.model_role",
        "is required; give one of memory_rewrite, memory_extraction, compression",
    ),
    ("external_models: {a: 1}", "external_models = (a mapping)", "is not a list of sections; write it as [a, b]"),
    (
        "limits: {query_chars_max: 0x" + "f" * 9000 + "}",
        "limits.query_chars_max = (a huge number)",
        "is not a whole number from 16 to 32000; the default is 2000",
    ),
]


@pytest.mark.parametrize(("text", "named", "why"), REFUSED, ids=[case[1][:50] for case in REFUSED])
def test_a_bad_value_is_named_with_its_path_its_reason_and_what_would_be_right(
    tmp_path: Path, text: str, named: str, why: str
) -> None:
    message = str(only(problems(tmp_path, text)))
    place = re.search(r" \(config\.yaml:1:\d+\): ", message)
    assert place is not None
    assert (message[: place.start()], message[place.end() :]) == (named, why)


@pytest.mark.parametrize(
    ("text", "path", "remedy"),
    [
        ("memory: {milvus: {dimention: 384}}", "memory.milvus.dimention", "did you mean memory.milvus.dimension?"),
        ("memroy: {}", "memroy", "did you mean memory?"),
        ("milvus: {address: a}", "milvus", "did you mean memory.milvus?"),
        ("lease_s: 5", "lease_s", "did you mean memory.extraction.lease_s?"),
        ("log: {zzz: 5}", "log.zzz", "known here: level, format"),
        ("log: {<<: {level: info}}", "log.'<<'", "known here: level, format"),
    ],
)
def test_an_unknown_key_is_refused_with_the_key_that_was_meant(
    tmp_path: Path, text: str, path: str, remedy: str
) -> None:
    problem = only(problems(tmp_path, text))
    assert (problem.path, problem.reason, problem.remedy) == (path, "unknown key", remedy)


def test_a_problem_names_the_line_and_column_of_the_value(tmp_path: Path) -> None:
    problem = only(problems(tmp_path, "memory:\n  milvus:\n    # how long\n    dimension: many\n"))
    assert problem.source == "config.yaml:4:16"


def test_every_problem_is_listed_at_once_rules_included(tmp_path: Path) -> None:
    text = """
    memory: {enabled: perhaps, milvus: {dimension: 768}, embeding: {}}
    deadlines: {phase_ms: 900}
    external_models: [{model_role: nothing}, {}]
    data_dir: ''
    log: {level: loud, level: louder}
    """
    file = write(tmp_path, text)
    with pytest.raises(ConfigError) as error:
        load(file, {"SEMMEM_DEPLOYMENT__REPLICAS": "2", "SEMMEM_LOG__FORMAT": "xml", "SEMMEM_X": "1"})
    assert {problem.path for problem in error.value.problems} == {
        "memory.enabled",
        "memory.milvus.dimension",
        "memory.embeding",
        "deadlines.phase_ms",
        "external_models.0.model_role",
        "external_models.0.llm_endpoint",
        "external_models.0.llm_model_name",
        "external_models.1.model_role",
        "external_models.1.llm_endpoint",
        "external_models.1.llm_model_name",
        "data_dir",
        "log.level",
        "deployment.replicas",
        "log.format",
        "x",
    }
    lines = str(error.value).splitlines()
    assert lines[0] == "the configuration has 17 problems:"
    assert lines[1:] == [f"  {problem}" for problem in error.value.problems]


def test_the_rules_are_tried_however_many_elements_were_refused(tmp_path: Path) -> None:
    headers = [f"X-{n}" for n in range(15)]
    found = problems(tmp_path, f"identity: {{trusted_headers: {headers}}}\ndeadlines: {{phase_ms: 900}}")
    assert len(found) == 16
    assert found[-1].path == "deadlines.phase_ms"


def test_a_rule_says_nothing_about_values_that_were_refused(tmp_path: Path) -> None:
    found = problems(
        tmp_path, "memory: {extraction: {engine: llm}}\nexternal_models: [{model_role: memory_extraction}]"
    )
    assert {problem.path for problem in found} == {
        "external_models.0.llm_endpoint",
        "external_models.0.llm_model_name",
    }


@pytest.mark.parametrize("port", ["65536", "99999", "8080000000"])
@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("listeners: {grpc: {address: '127.0.0.1:PORT'}}", "listeners.grpc.address"),
        ("listeners: {api: {address: '127.0.0.1:PORT'}}", "listeners.api.address"),
        ("listeners: {health: {address: '[::1]:PORT'}}", "listeners.health.address"),
        ("memory: {milvus: {address: 'milvus:PORT'}}", "memory.milvus.address"),
        ("memory: {milvus: {address: 'https://milvus:PORT/db'}}", "memory.milvus.address"),
        ("memory: {rerank: {url: 'http://models:PORT', model: m}}", "memory.rerank.url"),
        (
            "external_models: [{model_role: memory_rewrite, llm_model_name: m, "
            "llm_endpoint: {url: 'http://[::1]:PORT/v1'}}]",
            "external_models.0.llm_endpoint.url",
        ),
        (
            "external_models: [{model_role: memory_rewrite, llm_model_name: m, "
            "llm_endpoint: {address: a, port: PORT}}]",
            "external_models.0.llm_endpoint.port",
        ),
    ],
)
def test_no_address_takes_a_port_that_does_not_exist(tmp_path: Path, text: str, path: str, port: str) -> None:
    found = [problem for problem in problems(tmp_path, text.replace("PORT", port)) if problem.path == path]
    problem = only(found)
    assert port in problem.value
    assert problem.remedy
    assert path not in [problem.path for problem in problems(tmp_path, text.replace("PORT", "65535"))]


def test_every_kind_of_text_in_the_table_is_some_keys() -> None:
    source = Path(values.__file__)
    kinds = {
        kind for call in re.findall(r"_like\(([^)]*)\)", source.read_text()) for kind in re.findall(r'"(\w+)"', call)
    }
    assert kinds == tomllib.loads(source.with_suffix(".toml").read_text()).keys()
