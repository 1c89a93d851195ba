"""Values that are fine alone and not together."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from semmem.config import rules
from tests.support.configuration import LONG_SECRET, MODEL, only, problems

REWRITE = MODEL.replace("memory_extraction", "memory_rewrite")
SHARED_JOURNAL = "journal: {url: 'postgresql://db/semmem'}"
CONFLICTS = [
    (
        "paths: {messages: [/v1/messages, /v1/responses]}",
        "paths.messages = (a list)",
        "has /v1/responses, which paths.responses has too; a path is of one API alone",
    ),
    (
        "conversations: {chains: true}",
        "conversations.chains = true",
        "has no record to take histories from; set conversations.enabled: true, or chains: false",
    ),
    (
        "conversations: {begin_unknown: true}",
        "conversations.begin_unknown = true",
        "is of no use while no history is added; set conversations.chains: true, or begin_unknown: false",
    ),
    (
        "deadlines: {phase_ms: 500}",
        "deadlines.phase_ms = 500",
        "is not shorter than deadlines.message_timeout_ms (500); "
        "keep message_timeout_ms > phase_ms > store_ms, for example 500, 350, 200",
    ),
    (
        "deadlines: {store_ms: 350}",
        "deadlines.store_ms = 350",
        "is not shorter than deadlines.phase_ms (350); "
        "keep message_timeout_ms > phase_ms > store_ms, for example 500, 350, 200",
    ),
    (
        "memory: {embedding: {remote: {url: 'http://x/v1'}}}",
        "memory.embedding.remote.url = 'http://x/v1'",
        "is of no use without model; give both, or none",
    ),
    (
        "memory: {embedding: {source: remote}}",
        "memory.embedding.source = 'remote'",
        "needs memory.embedding.remote.url; name it, or use auto",
    ),
    (
        "memory: {embedding: {source: static}}",
        "memory.embedding.source = 'static'",
        "needs memory.embedding.static_dir; name it, or use auto",
    ),
    (
        "memory: {embedding: {precision: int8, backend: torch}}",
        "memory.embedding.precision = 'int8'",
        "is for ONNX Runtime only, and backend is torch; use fp32, or backend onnx",
    ),
    (
        "memory: {milvus: {dimension: 768}}",
        "memory.milvus.dimension = 768",
        "differs from memory.embedding.dimension (384); set both to the length of multilingual's vectors",
    ),
    (
        "memory: {default_similarity_threshold: 0.96}",
        "memory.default_similarity_threshold = 0.96",
        "is above 0.95, a cosine that no memory reaches for a question; use 0.25 to 0.40, or null, the default",
    ),
    (
        "memory: {extraction: {engine: llm}}",
        "memory.extraction.engine = 'llm'",
        "needs an entry of external_models with model_role memory_extraction; add one, or use auto or rules",
    ),
    (
        "memory: {extraction: {model: upstream}}",
        "memory.extraction.model = 'upstream'",
        "needs an entry of external_models with model_role memory_extraction; "
        "add one whose llm_endpoint is Envoy's listener, or use configured",
    ),
    (
        f"memory: {{extraction: {{model: upstream, engine: rules}}}}\nexternal_models: [{MODEL}]",
        "memory.extraction.model = 'upstream'",
        "is never asked with engine rules; use engine auto or llm",
    ),
    (
        "memory: {query: {mode: rewrite}}\ndeadlines: {rewrite_ms: 100}",
        "memory.query.mode = 'rewrite'",
        "needs an entry of external_models with model_role memory_rewrite; add one, or use prepend",
    ),
    (
        f"memory: {{query: {{mode: hyde}}}}\nexternal_models: [{REWRITE}]",
        "deadlines.max_message_timeout_ms = 0",
        "leaves no time for rewriting and reranking, with which a request may take 650 ms; "
        "set max_message_timeout in envoy.yaml to 800 ms or more, and repeat it here",
    ),
    (
        "memory: {rerank: {url: 'http://reranker', model: m, timeout_ms: 150}}",
        "deadlines.max_message_timeout_ms = 0",
        "leaves no time for rewriting and reranking, with which a request may take 500 ms; "
        "set max_message_timeout in envoy.yaml to 650 ms or more, and repeat it here",
    ),
    (
        "deadlines: {max_message_timeout_ms: 499}",
        "deadlines.max_message_timeout_ms = 499",
        "is shorter than deadlines.message_timeout_ms (500); repeat what envoy.yaml says, 0 if it says nothing",
    ),
    (
        "memory: {rerank: {url: 'http://reranker'}}",
        "memory.rerank.url = 'http://reranker'",
        "is of no use without model; give both, or none",
    ),
    (
        "memory: {rerank: {model: m}}",
        "memory.rerank.model = 'm'",
        "is of no use without url; give both, or none",
    ),
    (
        f"external_models: [{MODEL}, {MODEL}]",
        "external_models.1.model_role = 'memory_extraction'",
        "is the role of external_models.0 already; keep one model for each role",
    ),
    (
        f"external_models: [{MODEL.replace('address: qwen', 'port: 1')}]",
        "external_models.0.llm_endpoint",
        "names no server; give address (and port), or url",
    ),
    (
        f"external_models: [{MODEL.replace('address: qwen', 'address: qwen, url: http://qwen')}]",
        "external_models.0.llm_endpoint.url = 'http://qwen'",
        "is given beside address; keep url alone, or drop it",
    ),
    (
        f"memory: {{extraction: {{lease_s: 90}}}}\nexternal_models: [{MODEL}]",
        "memory.extraction.lease_s = 90.0",
        "is not longer than the calls of the extraction model for one batch (3 of up to 30 s), "
        "so another worker would begin the same batch; make it more than 90",
    ),
    (
        "listeners: {api: {address: '0.0.0.0:8080'}}",
        "listeners.api.address = '0.0.0.0:8080'",
        "is reachable from other machines, and there is no admin_token; "
        "set listeners.api.admin_token_env (or listeners.api.jwt, for users alone), or listen on 127.0.0.1",
    ),
    (
        "listeners: {api: {address: 'semmem.internal:8080', admin_token: hunter2}}",
        "listeners.api.admin_token",
        "is shorter than 16 characters while semmem.internal:8080 is reachable from other machines; "
        "use a longer random token",
    ),
    (
        "listeners: {api: {address: '0.0.0.0:8080', admin_token: 0123456789abcdef, trusted_headers: [x-user-id]}}",
        "listeners.api.trusted_headers = (a list)",
        "would be believed from anybody who reaches 0.0.0.0:8080, which has no mTLS; "
        "listen on 127.0.0.1, behind a proxy on this machine that authenticates callers, sets these headers and "
        "strips those of clients; or leave them out and use the admin token",
    ),
    (
        "listeners: {health: {address: '127.0.0.1:8080'}}",
        "listeners.health.address = '127.0.0.1:8080'",
        "is the address of listeners.api already; give each listener its own port",
    ),
    (
        f"deployment: {{replicas: 2}}\n{SHARED_JOURNAL}",
        "deployment.replicas = 2",
        "but the embedded Milvus Lite keeps memories inside one process, where other replicas do not see them; "
        "set memory.milvus.address to a Milvus server, or keep 1 replica",
    ),
    (
        f"deployment: {{replicas: 2}}\n{SHARED_JOURNAL}\nmemory: {{backend: in_process, milvus: {{address: 'm:1'}}}}",
        "deployment.replicas = 2",
        "but in_process keeps memories inside one process, where other replicas do not see them; "
        "set memory.milvus.address to a Milvus server, or keep 1 replica",
    ),
    (
        "deployment: {replicas: 2}\nmemory: {milvus: {address: 'milvus:19530'}}",
        "deployment.replicas = 2",
        "but the journal is a file of one process: answers would not find their turns, and what is erased by one "
        "replica would be learnt from the journal of another; "
        "set journal.url to a PostgreSQL server, or keep 1 replica",
    ),
    (
        "conversations: {enabled: true}\ncapture: {mode: history}",
        "conversations.enabled = true",
        "records nothing, since no answer is observed; set capture.mode to observe",
    ),
    (
        f"journal: {{password: {LONG_SECRET}}}",
        "journal.password",
        "is of no use to a SQLite file; set journal.url",
    ),
    (
        f"memory: {{hot_cache: {{redis: {{password: {LONG_SECRET}}}}}}}",
        "memory.hot_cache.redis.password",
        "has no server to be told to; set memory.hot_cache.redis.url",
    ),
    (
        "memory: {hot_cache: {redis: {url: 'redis://valkey:6379', ca_file: ca.pem}}}",
        "memory.hot_cache.redis.ca_file = 'ca.pem'",
        "is of no use without TLS; write rediss:// in memory.hot_cache.redis.url",
    ),
    (
        f"deployment: {{replicas: 2}}\n{SHARED_JOURNAL}\nmemory: {{backend: qdrant, milvus: {{address: 'm:1'}}}}",
        "deployment.replicas = 2",
        "but Qdrant's local mode keeps memories inside one process, where other replicas do not see them; "
        "set memory.qdrant.address to a Qdrant server, or keep 1 replica",
    ),
    (
        "memory: {qdrant: {tls: {enabled: true}}}",
        "memory.qdrant.tls.enabled = true",
        "has no server to talk to; set memory.qdrant.address",
    ),
    (
        "memory: {qdrant: {address: 'http://qdrant:6333', tls: {enabled: true}}}",
        "memory.qdrant.tls.enabled = true",
        "contradicts the http:// in memory.qdrant.address; write https://",
    ),
    (
        "memory: {qdrant: {address: 'qdrant:6333', tls: {enabled: true, cert_file: c.pem}}}",
        "memory.qdrant.tls.cert_file = 'c.pem'",
        "and key_file are only useful together; give both, or neither",
    ),
    (
        "memory: {qdrant: {address: 'qdrant:6333', quantisation: binary, rescore: false}}",
        "memory.qdrant.rescore = false",
        "leaves scores that are no cosines, since quantisation is binary; set it to true, or use int8",
    ),
    (
        "memory: {qdrant: {api_key: a-key}}",
        "memory.qdrant.api_key",
        "is of no use to the local mode; set memory.qdrant.address",
    ),
    (
        "memory: {milvus: {tls: {enabled: true}}}",
        "memory.milvus.tls.enabled = true",
        "has no server to talk to; set memory.milvus.address",
    ),
    (
        "memory: {milvus: {address: 'http://milvus:19530', tls: {enabled: true}}}",
        "memory.milvus.tls.enabled = true",
        "contradicts the http:// in memory.milvus.address; write https://",
    ),
    (
        "listeners: {grpc: {tls: {cert_file: c.pem}}}",
        "listeners.grpc.tls.cert_file = 'c.pem'",
        "and key_file are only useful together; give both, or neither",
    ),
    (
        "listeners: {grpc: {tls: {client_ca_file: ca.pem}}}",
        "listeners.grpc.tls.client_ca_file = 'ca.pem'",
        "asks for certificates over plain text; give cert_file too",
    ),
    (
        "memory: {milvus: {address: 'milvus:19530', tls: {enabled: true, cert_file: c.pem}}}",
        "memory.milvus.tls.cert_file = 'c.pem'",
        "and key_file are only useful together; give both, or neither",
    ),
    (
        "memory: {milvus: {token: root:Milvus}}",
        "memory.milvus.token",
        "is of no use to the embedded store; set memory.milvus.address",
    ),
    (
        "identity: {api_key: {enabled: true, hmac_secret: short}}",
        "identity.api_key.hmac_secret",
        "has fewer than 16 characters while identity.api_key is enabled; "
        "set a long random secret, for example the output of: openssl rand -hex 32",
    ),
    (
        "memory: {injection: {fence_key: short}}",
        "memory.injection.fence_key",
        "has fewer than 16 characters; set a long random secret, for example the output of: openssl rand -hex 32",
    ),
    (
        f"memory: {{injection: {{fence_key: {LONG_SECRET}, fence_key_former: short}}}}",
        "memory.injection.fence_key_former",
        "has fewer than 16 characters; set a long random secret, for example the output of: openssl rand -hex 32",
    ),
    (
        "identity: {metadata_claim: []}",
        "identity.metadata_claim = (a list)",
        "is empty while identity.metadata_namespace is not; "
        "give the path to the user's id, for example [jwt_payload, sub], or clear metadata_namespace",
    ),
    (
        "limits: {answer_bytes_max: 4194305}",
        "limits.answer_bytes_max = 4194305",
        "is more than limits.response_body_bytes_max (4194304); keep no more of an answer than is read of it",
    ),
    (
        "memory: {write_screen: {fact_chars_min: 10, fact_chars_max: 10}}",
        "memory.write_screen.fact_chars_min = 10",
        "is not below fact_chars_max (10); the defaults are 3 and 500",
    ),
]


@pytest.mark.parametrize(("text", "named", "why"), CONFLICTS, ids=[f"{c[1][:40]}-{i}" for i, c in enumerate(CONFLICTS)])
def test_values_that_do_not_go_together_are_refused(tmp_path: Path, text: str, named: str, why: str) -> None:
    message = re.sub(r" \(config\.yaml:\d+:\d+\)", "", str(only(problems(tmp_path, text))), count=1)
    assert message == f"{named}: {why}"


@pytest.mark.parametrize(
    "text",
    [
        "memory: {milvus: {dimension: 768}, embedding: {model: all-mpnet-base-v2, dimension: 768}}",
        "memory: {backend: qdrant, embedding: {model: all-mpnet-base-v2, dimension: 768}}",
        f"deployment: {{replicas: 2}}\n{SHARED_JOURNAL}\n"
        "memory: {backend: qdrant, qdrant: {address: 'q:1', api_key: a-key}}",
        "memory: {default_similarity_threshold: 0.95}",
        f"memory: {{extraction: {{engine: llm}}}}\nexternal_models: [{MODEL}]",
        f"listeners: {{api: {{address: '0.0.0.0:8080', admin_token: {LONG_SECRET}}}}}",
        "listeners: {api: {address: 'localhost:8080'}}",
        "listeners: {grpc: {unix_socket: /run/s.sock, address: '127.0.0.1:8080'}}",
        f"listeners: {{grpc: {{unix_socket: /{'s' * 106}}}}}",
        f"deployment: {{replicas: 2}}\n{SHARED_JOURNAL}\nmemory: {{milvus: {{address: 'http://m:1', token: a:b}}}}",
        f"journal: {{url: 'postgres://db,other/semmem?sslmode=require', password: {LONG_SECRET}}}",
        f"identity: {{api_key: {{enabled: true, hmac_secret: {LONG_SECRET}}}}}",
        "identity: {metadata_claim: [], metadata_namespace: ''}",
        f"memory: {{query: {{mode: rewrite}}}}\nexternal_models: [{REWRITE}]\ndeadlines: {{rewrite_ms: 100}}",
        f"memory: {{query: {{mode: hyde}}}}\nexternal_models: [{REWRITE}]\ndeadlines: {{max_message_timeout_ms: 800}}",
        "memory: {rerank: {url: 'http://reranker', model: m}}",
        "deadlines: {message_timeout_ms: 3, phase_ms: 2, store_ms: 1}",
    ],
)
def test_what_goes_together_is_accepted(tmp_path: Path, text: str) -> None:
    assert problems(tmp_path, text) == []


def test_every_row_of_words_belongs_to_a_rule() -> None:
    own_words = {"endpoints_are_complete", "tls_of_stores_is_consistent"}
    assert [name for name in rules.RULES if name not in own_words] == list(rules.WORDS)
