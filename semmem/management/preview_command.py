"""``semmem preview``: ask a running semmem what it would recall for a question, and print it as a table."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

TIMEOUT_S = 10.0
CONTENT_CHARS_MAX = 100


def show(api_url: str, token: str, asked: Mapping[str, Any]) -> int:
    """Print what ``POST /v1/memory/preview`` answers to ``asked``. Exit status: 0 shown, 1 no answer, or a refusal."""
    url = f"{api_url}/v1/memory/preview"
    try:
        with httpx.Client(timeout=TIMEOUT_S, trust_env=False) as http:
            answer = http.post(url, json=asked, headers={"authorization": f"Bearer {token}"})
    except httpx.HTTPError as error:
        sys.stderr.write(f"{url}: {type(error).__name__}: {error}\n")
        return 1
    if answer.status_code != 200:
        sys.stderr.write(f"{url}: {answer.status_code}: {answer.text}\n")
        return 1
    sys.stdout.write("".join(f"{line}\n" for line in table(answer.json())))
    return 0


def table(found: Mapping[str, Any]) -> Iterator[str]:
    """What was asked, a line for each candidate, and what would be injected."""
    yield f"query: {found['query']}"
    yield f"gate: {found['gate']}, strategy: {found['strategy']}, path: {found['path']}"
    yield f"{'verdict':16} {'score':>7} {'cosine':>7} {'bm25':>7} {'tokens':>6}  memory"
    for memory in found["memories"]:
        scores = f"{memory['score']:7.3f} {memory['cosine']:7.3f} {memory['keyword']:7.3f} {memory['tokens']:6}"
        yield f"{memory['reason']:16} {scores}  {memory['content'][:CONTENT_CHARS_MAX]}"
    yield f"injected: {found['tokens']} tokens"
