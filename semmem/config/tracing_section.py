"""The ``tracing:`` section: where traces go, which, and what they may tell."""

from __future__ import annotations

from pydantic import SecretStr

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
    key,
)


class TracingSection(Section):
    """``tracing``: OpenTelemetry traces of requests, answers and what is learnt from them, sent by OTLP over HTTP. They
    need the package ``semmem[otel]``, and are off without an endpoint."""

    restart = "spans under way are recorded and sent by it"

    endpoint: HttpUrl = key("", "whole URL of the collector, such as http://collector:4318/v1/traces; empty: no traces")
    header: HeaderName = key("authorization", "header that carries credential")
    credential: Secret = key(SecretStr(""), "what the collector knows semmem by, if it asks")
    credential_env: VariableName = key("", "environment variable that holds credential")
    ca_file: Line = key("", "PEM file of the authorities to believe (https://); empty: system's")
    service_name: NonEmptyLine = key("semmem", "service.name in every trace")
    sample_ratio: Fraction = key(
        1.0, "share that is recorded of requests and API calls whose caller has not decided (traceparent)"
    )
    content: bool = key(False, "also record what users say: questions and memories shown")
    user_hmac_secret: Secret = key(
        SecretStr(""), "key of the digests that tell users and sessions apart; empty: no ids of users"
    )
    user_hmac_secret_env: VariableName = key("", "environment variable that holds it")
    timeout_s: Seconds = key(3.0, "limit of sending one batch, repetitions included")
    interval_s: Seconds = key(1.0, "longest wait before spans are sent")
    batch_max: int = key(128, "spans sent at a time", ge=1, le=10_000)
    queue_max: int = key(4096, "spans that wait; more are dropped and counted", ge=1, le=1_000_000)
