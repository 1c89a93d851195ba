"""Rules that tie the keys of ``tracing`` together."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from semmem.config.problems import NOTHING, Finding
from semmem.config.settings import Settings
from semmem.config.values import SECRET_CHARS_MIN

ENDPOINT = ("tracing", "endpoint")


def traces_have_a_whole_address(settings: Settings) -> Iterator[Finding]:
    endpoint = settings.tracing.endpoint
    if endpoint and urlsplit(endpoint).path in ("", "/"):
        yield Finding(ENDPOINT, endpoint, "has no path", f"write {endpoint.rstrip('/')}/v1/traces")


def tracing_options_need_a_collector(settings: Settings) -> Iterator[Finding]:
    rules = settings.tracing
    if rules.endpoint:
        return
    if rules.credential.get_secret_value():
        at = ("tracing", "credential")
        yield Finding(at, NOTHING, "is sent nowhere", "set tracing.endpoint", (ENDPOINT,))
    if rules.content:
        yield Finding(("tracing", "content"), True, "records nothing", "set tracing.endpoint", (ENDPOINT,))


def user_secret_is_long(settings: Settings) -> Iterator[Finding]:
    if 0 < len(settings.tracing.user_hmac_secret.get_secret_value()) < SECRET_CHARS_MIN:
        reason = f"has fewer than {SECRET_CHARS_MIN} characters"
        remedy = "set a long random secret, for example the output of: openssl rand -hex 32"
        yield Finding(("tracing", "user_hmac_secret"), NOTHING, reason, remedy)


def batches_of_spans_fit(settings: Settings) -> Iterator[Finding]:
    rules = settings.tracing
    if rules.batch_max > rules.queue_max:
        yield Finding(
            ("tracing", "batch_max"),
            rules.batch_max,
            f"is more than tracing.queue_max ({rules.queue_max})",
            "send no more at a time than may wait",
            (("tracing", "queue_max"),),
        )
