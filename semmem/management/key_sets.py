"""Where the keys of JSON Web Tokens come from: a file, or a URL."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from semmem.imports import as_if_absent

with as_if_absent("httpx._main"):  # its command line, with 3 MB of libraries
    import httpx

from semmem.management.web_tokens import KeysUnavailable

BYTES_MAX = 256 * 1024
TIMEOUT_S = 5.0

Keys = Callable[[], Awaitable[Mapping[str, Any]]]


def keys_at(where: str) -> Keys:
    """``where``: an http(s) URL, or a file's path."""
    if where.startswith(("https://", "http://")):
        return lambda: _fetched(where)
    return lambda: asyncio.to_thread(_read, Path(where))


async def _fetched(url: str) -> Mapping[str, Any]:
    try:
        async with (
            asyncio.timeout(TIMEOUT_S),
            httpx.AsyncClient(trust_env=False) as http,
            http.stream("GET", url, headers={"accept": "application/json", "accept-encoding": "identity"}) as answer,
        ):
            answer.raise_for_status()
            text = bytearray()
            async for part in answer.aiter_raw():  # as it is sent: a compressed one could be a thousand times larger
                text += part
                if len(text) > BYTES_MAX:
                    raise KeysUnavailable(f"{url} is longer than {BYTES_MAX} bytes")
    except (httpx.HTTPError, TimeoutError) as error:
        raise KeysUnavailable(f"{url}: {type(error).__name__}") from None
    return _parsed(bytes(text), url)


def _read(path: Path) -> Mapping[str, Any]:
    try:
        with path.open("rb") as file:
            return _parsed(file.read(BYTES_MAX), str(path))
    except OSError as error:
        raise KeysUnavailable(f"{path}: {error.strerror}") from None


def _parsed(text: bytes, where: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise KeysUnavailable(f"{where} holds no JWK set")
    return found
