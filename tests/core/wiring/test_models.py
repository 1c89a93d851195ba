"""From config.yaml to the models on the request path: writer and reranker are there when they are wanted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from semmem.backends.in_process import InProcessStore
from semmem.ports.events import Event, Reranked, Rewritten, nobody_listens
from semmem.retrieval.models import QueryWriter, Reranking
from semmem.telemetry.metrics import Metrics
from semmem.wiring import request
from semmem.wiring.backends import Backends
from semmem.wiring.models import ModelClients
from semmem.wiring.stores import journal
from tests.core.retrieval.talk import asked, hit
from tests.support.configuration import MODEL, loaded
from tests.support.fakes import HashEmbedder, hot
from tests.support.scripted_llm import Body, Reply, ScriptedLLM

REWRITE = MODEL.replace("memory_extraction", "memory_rewrite")


def backends(tmp_path: Path, text: str, environ: dict[str, str] | None = None) -> tuple[Backends, Metrics, list[Event]]:
    settings, metrics = loaded(tmp_path, text, environ), Metrics()
    models, reranker = ModelClients(metrics).of(settings)
    made = Backends(
        store=hot(InProcessStore()),
        embedder=HashEmbedder(),
        journal=journal(settings),
        models=models,
        reranker=reranker,
    )
    return made, metrics, []


def words(metrics: Metrics, role: str, status: str) -> float:
    return metrics.registry.get_sample_value("semmem_model_seconds_count", {"role": role, "status": status}) or 0.0


@pytest.mark.parametrize("text", ["", f"external_models: [{REWRITE}]"], ids=["nothing", "a model, but no mode"])
def test_by_default_no_model_is_on_the_request_path(tmp_path: Path, text: str) -> None:
    made, _, _ = backends(tmp_path, text)
    settings = loaded(tmp_path, text)
    assert request.query_writer(settings, made, nobody_listens) is None
    assert request.reranking(settings, made, nobody_listens) is None


async def test_the_configured_model_rewrites_and_is_asked_once(tmp_path: Path) -> None:
    async with ScriptedLLM(Reply(status=503)) as llm:
        model = REWRITE.replace("address: qwen", f"url: '{llm.base_url}'")
        text = f"memory: {{query: {{mode: rewrite}}}}\nexternal_models: [{model}]\ndeadlines: {{rewrite_ms: 120}}"
        made, metrics, heard = backends(tmp_path, text)
        writer = request.query_writer(loaded(tmp_path, text), made, heard.append)
        assert isinstance(writer, QueryWriter)
        assert writer.timeout_s == 0.12
        assert (await writer.write(asked("kitchen paint", "How much?")))[0] == "How much? kitchen paint"
        await made.models["memory_rewrite"].close()
    assert len(llm.requests) == 1
    assert words(metrics, "memory_rewrite", "ModelUnavailable") == 1
    assert heard == [Rewritten("failed")]


def backwards(body: Body) -> Reply:
    results = [{"index": i, "relevance_score": i} for i in range(len(body["documents"]))]
    return Reply(raw=json.dumps({"results": results}).encode())


async def test_the_configured_reranker_orders_with_its_key_from_the_environment(tmp_path: Path) -> None:
    async with ScriptedLLM(backwards) as server:
        rerank = f"{{url: '{server.base_url}', model: m, api_key_env: RERANK_KEY, candidates_max: 2, timeout_ms: 149}}"
        text, environ = f"memory: {{rerank: {rerank}}}", {"RERANK_KEY": "k-7"}
        made, metrics, heard = backends(tmp_path, text, environ)
        reranking = request.reranking(loaded(tmp_path, text, environ), made, heard.append)
        assert isinstance(reranking, Reranking)
        assert reranking.timeout_s == 0.149
        ordered = await reranking.order("q", [hit("a", 0.9), hit("b", 0.8), hit("c", 0.7)])
        assert made.reranker is not None
        await made.reranker.close()
    assert [each.memory.content for each in ordered] == ["b", "a", "c"]
    assert server.headers[0]["authorization"] == "Bearer k-7"
    assert words(metrics, "rerank", "ok") == 1
    assert heard == [Reranked("reranked")]
