"""Settings -> clients of language and reranking models, which a reload may change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

from semmem.backends.models.openai import OpenAIModel
from semmem.backends.models.rerank import HttpReranker
from semmem.config.models_section import ExternalModel, RerankSection
from semmem.config.settings import Settings
from semmem.ports.models import Reranker, ServedModel
from semmem.telemetry.metering import MeteredModel, MeteredReranker
from semmem.telemetry.metrics import Metrics

RETRIES = {"memory_rewrite": 0, "memory_extraction": 2, "compression": 1}
"""A request has no time for a second try, and another query at hand."""

Rules = TypeVar("Rules")
Client = TypeVar("Client", bound="_Closable")


class _Closable(Protocol):
    async def close(self) -> None: ...


class ModelClients:
    """Every client that was made and is not closed. One whose settings did not change is kept, with its connections
    and what it knows of its server; one that is not wanted any more still ends what it was asked."""

    def __init__(self, metrics: Metrics) -> None:
        self._models = _Made[ExternalModel, ServedModel](lambda rules: model(rules, metrics))
        self._rerankers = _Made[RerankSection, Reranker](lambda rules: _reranker(rules, metrics))

    def of(self, settings: Settings) -> tuple[Mapping[str, ServedModel], Reranker | None]:
        """The models by role, and the reranker where there is one. Raises ValueError for an endpoint that is none."""
        rerank = settings.memory.rerank
        found: dict[str, ServedModel] = {rules.model_role: self._models.of(rules) for rules in settings.external_models}
        return found, self._rerankers.of(rerank) if rerank.url else None

    async def close_others(self, settings: Settings, *, after_s: float) -> None:
        """Close what these settings have no use for, when its last calls have ended."""
        others: list[_Closable] = [*self._models.take_others(settings.external_models)]
        others += self._rerankers.take_others((settings.memory.rerank,))
        try:
            if others:
                await asyncio.sleep(after_s)
        finally:
            for client in others:
                await client.close()

    async def close(self) -> None:
        others: list[_Closable] = [*self._models.take_others(()), *self._rerankers.take_others(())]
        for client in others:
            await client.close()


class _Made(Generic[Rules, Client]):
    """Clients by the settings that they were made of."""

    def __init__(self, make: Callable[[Rules], Client]) -> None:
        self._make = make
        self._made: list[tuple[Rules, Client]] = []

    def of(self, rules: Rules) -> Client:
        for known, client in self._made:
            if known == rules:
                return client
        client = self._make(rules)
        self._made.append((rules, client))
        return client

    def take_others(self, wanted: tuple[Rules, ...]) -> list[Client]:
        others = [client for rules, client in self._made if rules not in wanted]
        self._made = [(rules, client) for rules, client in self._made if rules in wanted]
        return others


def model(rules: ExternalModel, metrics: Metrics) -> ServedModel:
    """One language model. Raises ValueError for an endpoint that is none."""
    client = OpenAIModel(
        rules.llm_endpoint.base_url,
        rules.llm_model_name,
        api_key=rules.api_key.get_secret_value() or None,
        max_tokens=rules.output_tokens_max,
        temperature=rules.temperature,
        retries=RETRIES[rules.model_role],
    )
    return MeteredModel(client, metrics, rules.model_role, name=rules.llm_model_name)


def _reranker(rules: RerankSection, metrics: Metrics) -> Reranker:
    client = HttpReranker(rules.url, rules.model, api_key=rules.api_key.get_secret_value() or None)
    return MeteredReranker(client, metrics)
