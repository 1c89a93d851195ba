"""The ``external_models:`` section: language models that semmem itself asks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr

from semmem.config.values import (
    HttpUrl,
    Line,
    NonEmptyLine,
    Port,
    Seconds,
    Secret,
    Section,
    UrlPath,
    VariableName,
)

OUTPUT_TOKENS = {"memory_rewrite": 100, "memory_extraction": 500, "compression": 1000}


class ModelEndpointSection(Section):
    """``external_models.N.llm_endpoint``: give a url, or an address and what differs from the defaults."""

    address: Line = Field(default="", description="host name or IP address")
    port: Port = Field(default=8000, description="TCP port")
    scheme: Literal["http", "https"] = Field(default="http", description="protocol")
    path: UrlPath = Field(default="/v1", description="base path, without /chat/completions")
    url: HttpUrl = Field(default="", description="base URL, instead of address, port, scheme and path")

    @property
    def base_url(self) -> str:
        """Where ``/chat/completions`` is appended; no slash at the end."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return (self.url or f"{self.scheme}://{host}:{self.port}{self.path}").rstrip("/")


class ExternalModel(Section):
    """``external_models.N``: a language model for one role, behind any OpenAI-compatible server."""

    llm_provider: NonEmptyLine = Field(default="openai", description="a label: every provider is spoken to alike")
    model_role: Literal["memory_rewrite", "memory_extraction", "compression"] = Field(
        description="what it does: rewrite vague questions, extract facts, or say where a long session stands; one"
        " model each"
    )
    llm_endpoint: ModelEndpointSection = Field(description="where it listens")
    llm_model_name: NonEmptyLine = Field(description="model name sent to the server")
    llm_timeout_seconds: Seconds = Field(default=30.0, description="limit of one call")
    max_tokens: int | None = Field(
        default=None,
        ge=1,
        le=32_768,
        description="most output tokens; null: 100 to rewrite, 500 to extract, 1000 to compress",
    )
    temperature: float = Field(default=0.1, ge=0, le=2, description="sampling temperature")
    api_key: Secret = Field(default=SecretStr(""), description="bearer token for the server; empty: none")
    api_key_env: VariableName = Field(default="", description="environment variable that holds api_key")

    @property
    def output_tokens_max(self) -> int:
        """``max_tokens``, or the role's own default."""
        return self.max_tokens if self.max_tokens is not None else OUTPUT_TOKENS[self.model_role]
