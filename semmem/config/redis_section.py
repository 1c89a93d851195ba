"""The ``memory.hot_cache.redis:`` section: a server that carries news between replicas."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr

from semmem.config.values import NEWS, Line, NonEmptyLine, Seconds, Secret, Section, VariableName, key, refusal

_URL = re.compile(r"rediss?://[^\s@?#]+|rediss?://[^\s@?#:/]*@[^\s@?#]+|unix:///[^\s@?#]+")
_PASSWORD = re.compile(r"//[^/@]*:[^/@]*@|[?&]password=")


def _redis_url(text: str) -> str:
    if _PASSWORD.search(text):
        raise refusal(
            "holds a password",
            "leave it out, and put it into memory.hot_cache.redis.password or memory.hot_cache.redis.password_env",
        )
    if text and not _URL.fullmatch(text):
        raise refusal(
            "is no redis://, rediss:// or unix:/// URL", 'write for example redis://valkey:6379, or "" to do without'
        )
    return text


RedisUrl = Annotated[str, Field(max_length=1024), AfterValidator(_redis_url)]


class RedisSection(Section):
    """``memory.hot_cache.redis``: a Redis or Valkey server by which replicas tell each other whose memories changed."""

    restart = NEWS

    url: RedisUrl = key(
        "", "redis://host:port, rediss:// for TLS, or unix:///path; empty: PostgreSQL at journal.url tells"
    )
    password: Secret = key(SecretStr(""), "of the server, or of the user in url")
    password_env: VariableName = key("", "environment variable that holds password")
    ca_file: Line = key("", "PEM file of the authorities to believe (rediss://); empty: system's")
    channel: NonEmptyLine = key("semmem", "what is published on; the same on all replicas")
    timeout_s: Seconds = key(1.0, "limit of connecting, and of each answer")
