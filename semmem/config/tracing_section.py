"""The ``tracing:`` section: where traces go, which, and what they may tell."""

from __future__ import annotations

from pydantic import Field, SecretStr

from semmem.config.values import (
    Fraction,
    HeaderName,
    HttpUrl,
    Line,
    NonEmptyLine,
    Seconds,
    Secret,
    Section,
    VariableName,
)


class TracingSection(Section):
    """``tracing``: OpenTelemetry traces of requests, answers and what is learnt from them, sent by OTLP over HTTP. They
    need the package ``semmem[otel]``, and are off without an endpoint."""

    endpoint: HttpUrl = Field(
        default="", description="whole URL of the collector, such as http://collector:4318/v1/traces; empty: no traces"
    )
    header: HeaderName = Field(default="authorization", description="header that carries credential")
    credential: Secret = Field(default=SecretStr(""), description="what the collector knows semmem by, if it asks")
    credential_env: VariableName = Field(default="", description="environment variable that holds credential")
    ca_file: Line = Field(default="", description="PEM file of the authorities to believe (https://); empty: system's")
    service_name: NonEmptyLine = Field(default="semmem", description="service.name in every trace")
    sample_ratio: Fraction = Field(
        default=1.0,
        description="share that is recorded of requests and API calls whose caller has not decided (traceparent)",
    )
    content: bool = Field(default=False, description="also record what users say: questions and memories shown")
    user_hmac_secret: Secret = Field(
        default=SecretStr(""),
        description="key of the digests that tell users and sessions apart; empty: no ids of users",
    )
    user_hmac_secret_env: VariableName = Field(default="", description="environment variable that holds it")
    timeout_s: Seconds = Field(default=3.0, description="limit of sending one batch, repetitions included")
    interval_s: Seconds = Field(default=1.0, description="longest wait before spans are sent")
    batch_max: int = Field(default=128, ge=1, le=10_000, description="spans sent at a time")
    queue_max: int = Field(
        default=4096, ge=1, le=1_000_000, description="spans that wait; more are dropped and counted"
    )
