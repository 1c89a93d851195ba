"""The ``external_models:`` section: language models that semmem itself asks."""

from __future__ import annotations

from typing import Literal

from pydantic import SecretStr

from semmem.config.values import HttpUrl, Line, NonEmptyLine, Port, Seconds, Secret, Section, UrlPath, VariableName, key

OUTPUT_TOKENS = {"memory_rewrite": 100, "memory_extraction": 500, "compression": 1000}


class ModelEndpointSection(Section):
    """``external_models.N.llm_endpoint``: give a url, or an address and what differs from the defaults."""

    address: Line = key("", "host name or IP address")
    port: Port = key(8000, "TCP port")
    scheme: Literal["http", "https"] = key("http", "protocol")
    path: UrlPath = key("/v1", "base path, without /chat/completions")
    url: HttpUrl = key("", "base URL, instead of address, port, scheme and path")

    @property
    def base_url(self) -> str:
        """Where ``/chat/completions`` is appended; no slash at the end."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return (self.url or f"{self.scheme}://{host}:{self.port}{self.path}").rstrip("/")


class ExternalModel(Section):
    """``external_models.N``: a language model for one role, behind any OpenAI-compatible server."""

    llm_provider: NonEmptyLine = key("openai", "a label: every provider is spoken to alike")
    model_role: Literal["memory_rewrite", "memory_extraction", "compression"] = key(
        ..., "what it does: rewrite vague questions, extract facts, or say where a long session stands; one model each"
    )
    llm_endpoint: ModelEndpointSection = key(..., "where it listens")
    llm_model_name: NonEmptyLine = key(..., "model name sent to the server")
    llm_timeout_seconds: Seconds = key(30.0, "limit of one call")
    max_tokens: int | None = key(
        None, "most output tokens; null: 100 to rewrite, 500 to extract, 1000 to compress", ge=1, le=32_768
    )
    temperature: float = key(0.1, "sampling temperature", ge=0, le=2)
    api_key: Secret = key(SecretStr(""), "bearer token for the server; empty: none")
    api_key_env: VariableName = key("", "environment variable that holds api_key")

    @property
    def output_tokens_max(self) -> int:
        """``max_tokens``, or the role's own default."""
        return self.max_tokens if self.max_tokens is not None else OUTPUT_TOKENS[self.model_role]
