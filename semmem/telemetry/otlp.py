"""The way to a collector: OTLP over HTTP, by OpenTelemetry's own exporter. Imported only where traces are wanted."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import requests
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SpanExporter


def otlp_exporter(
    endpoint: str, *, headers: Mapping[str, str] | None = None, ca_file: str = "", timeout_s: float = 3.0
) -> SpanExporter:
    """Sends to ``endpoint``, a whole URL, with gzip; one try and its repetitions take ``timeout_s``. ``ca_file``: whom
    to believe instead of the system's authorities.

    The exporter logs every try of every batch; an outage is told once, by whoever calls it.
    """
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    session = requests.Session()
    session.trust_env = False  # no proxies, as with every server that semmem calls
    return OTLPSpanExporter(
        endpoint,
        certificate_file=ca_file or None,
        headers=dict(headers or {}),
        timeout=timeout_s,
        compression=Compression.Gzip,
        session=session,
    )
