"""``semmem reindex``: have a running semmem make vectors of another model, or show how one does it that nobody runs.

Progress is a bar on standard error, or with ``--json`` lines of JSON on standard output.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx

TIMEOUT_S = 30.0
POLL_S = 0.5
BAR_CHARS = 30
DONE = frozenset({"none", "kept", "paused"})
"""States in which nothing more comes by itself."""

Say = Callable[[Mapping[str, Any]], None]


class NoAnswer(Exception):
    """Nobody listens at the API's address."""


class Refused(Exception):
    """The API said no; the message is what it said."""


def ask(api_url: str, token: str, *, force: bool, limit: int | None, drop: bool, say: Say) -> dict[str, Any]:
    """Begin, or drop what is kept, and wait for the end; how it ended. Raises NoAnswer and Refused."""
    with httpx.Client(timeout=TIMEOUT_S, trust_env=False, headers={"authorization": f"Bearer {token}"}) as http:
        url = f"{api_url}/v1/memory/reindex"
        if drop:
            return _called(http, "DELETE", url)
        told = _called(http, "POST", url, json={"force": force, **({} if limit is None else {"limit": limit})})
        while told["state"] not in DONE:
            say(told)
            time.sleep(POLL_S)
            told = _called(http, "GET", url)
        say(told)
        return told


def _called(http: httpx.Client, method: str, url: str, **asked: Any) -> dict[str, Any]:
    try:
        answer = http.request(method, url, **asked)
    except httpx.ConnectError:
        raise NoAnswer from None
    except httpx.HTTPError as error:
        raise Refused(f"{url}: {type(error).__name__}: {error}") from None
    if not answer.is_success:
        raise Refused(f"{url}: {answer.status_code}: {answer.text}")
    found: dict[str, Any] = answer.json()
    return found


def bar(told: Mapping[str, Any]) -> None:
    """Draw how far it is, in one line that is drawn over the last one where a person looks."""
    end = "\r" if sys.stderr.isatty() and told["state"] not in DONE else "\n"
    sys.stderr.write(_drawn(told) + end)
    sys.stderr.flush()


def as_json(told: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def _drawn(told: Mapping[str, Any]) -> str:
    users, done = int(told.get("users", 0)), int(told.get("users_done", 0))
    if not users:
        return f"{told['state']:8} {told['collection']} holds vectors of {told['signature']}"
    share = min(1.0, done / users)
    drawn = "#" * round(BAR_CHARS * share)
    memories, embedded = told.get("memories_done", 0), told.get("embedded", 0)
    return (
        f"{told['state']:8} [{drawn:.<{BAR_CHARS}}] {share:4.0%}  {done} of {users} users, {memories} memories,"
        f" {embedded} embedded"
    )
