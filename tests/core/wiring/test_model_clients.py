"""Clients of models across reloads: the same for the same settings, others closed when their last calls have ended."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from semmem.memory import Message, Role
from semmem.ports.errors import ModelUnavailable
from semmem.ports.models import ServedModel
from semmem.telemetry.metrics import Metrics
from semmem.wiring.models import ModelClients
from tests.support.configuration import MODEL, loaded
from tests.support.scripted_llm import Reply, ScriptedLLM

RERANK = "memory: {rerank: {url: 'http://reranker/v1', model: m}}"


async def ask(model: ServedModel) -> str:
    return await model.complete([Message(Role.USER, "Hello?")], timeout_s=5)


async def test_a_model_whose_settings_did_not_change_keeps_its_client(tmp_path: Path) -> None:
    clients = ModelClients(Metrics())
    before, reranker = clients.of(loaded(tmp_path, f"external_models: [{MODEL}]\n{RERANK}"))
    after, same = clients.of(loaded(tmp_path, f"external_models: [{MODEL}]\n{RERANK}\nlog: {{level: debug}}"))
    assert after["memory_extraction"] is before["memory_extraction"]
    assert same is reranker is not None
    changed, none = clients.of(loaded(tmp_path, f"external_models: [{MODEL[:-1]}, api_key: k-2}}]"))
    assert changed["memory_extraction"] is not before["memory_extraction"]
    assert none is None
    await clients.close()


async def test_a_client_that_is_not_wanted_any_more_ends_its_calls_before_it_is_closed(tmp_path: Path) -> None:
    async with ScriptedLLM(Reply("one"), Reply("two"), Reply("three")) as server:
        text = "external_models: [{model_role: memory_extraction, llm_endpoint: {url: '%s'}, llm_model_name: %s}]"
        former, wanted = (loaded(tmp_path, text % (server.base_url, name)) for name in ("large", "small"))
        clients = ModelClients(Metrics())
        old, new = (clients.of(settings)[0]["memory_extraction"] for settings in (former, wanted))
        async with asyncio.TaskGroup() as group:
            group.create_task(clients.close_others(wanted, after_s=0.5))
            await asyncio.sleep(0)
            assert await ask(old) == "one"
        with pytest.raises(ModelUnavailable):
            await ask(old)
        assert await ask(new) == "two"
        await clients.close()
        with pytest.raises(ModelUnavailable):
            await ask(new)
