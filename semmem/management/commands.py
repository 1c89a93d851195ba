"""``semmem forget``, ``semmem preview``, ``semmem memories``: ask a running semmem, and print what it answers.

Each command's exit status: 0 done, 1 no answer, a refusal, or not done.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx

TIMEOUT_S = 10.0
FORGET_TIMEOUT_S = 300.0
"""A purge of a large store takes long (docs/operations.md), and others may be waiting for theirs."""
CONTENT_CHARS_MAX = 100

Lines = Callable[[Any], Iterator[str]]


def forget(api_url: str, token: str, asked: Mapping[str, str]) -> int:
    """Print the receipt that ``DELETE /v1/memory`` answers to ``asked``.

    A purge that a server's store cannot promise is done all the same: the receipt says ``"purged": false``.
    """
    url = f"{api_url}/v1/memory"
    return _ask("DELETE", url, token, lambda receipt: iter([json.dumps(receipt)]), FORGET_TIMEOUT_S, params=asked)


def preview(api_url: str, token: str, asked: Mapping[str, Any]) -> int:
    """Print what ``POST /v1/memory/preview`` answers to ``asked``, as a table."""
    return _ask("POST", f"{api_url}/v1/memory/preview", token, table, json=asked)


def memories(api_url: str, token: str, user: str, *, limit: int) -> int:
    """Print what ``GET /v1/memory`` has of the user, newest first."""
    asked: dict[str, str | int] = {"user_id": user, "limit": limit}
    return _ask("GET", f"{api_url}/v1/memory", token, lambda found: lines(user, found), params=asked)


def _ask(method: str, url: str, token: str, shown: Lines, timeout_s: float = TIMEOUT_S, **asked: Any) -> int:
    try:
        with httpx.Client(timeout=timeout_s, trust_env=False) as http:
            answer = http.request(method, url, headers={"authorization": f"Bearer {token}"}, **asked)
    except httpx.HTTPError as error:
        sys.stderr.write(f"{url}: {type(error).__name__}: {error}\n")
        return 1
    if answer.status_code != 200:
        sys.stderr.write(f"{url}: {answer.status_code}: {answer.text}\n")
        return 1
    sys.stdout.write("".join(f"{line}\n" for line in shown(answer.json())))
    return 0


def table(found: Mapping[str, Any]) -> Iterator[str]:
    """What was asked, a line for each candidate, and what would be injected."""
    yield f"query: {found['query']}"
    yield f"gate: {found['gate']}, strategy: {found['strategy']}, path: {found['path']}"
    yield f"request: {_decided(found['request'])}"
    yield f"{'verdict':16} {'score':>7} {'cosine':>7} {'bm25':>7} {'log-odds':>8} {'tokens':>6}  memory"
    for memory in found["memories"]:
        scores = f"{memory['score']:7.3f} {memory['cosine']:7.3f} {memory['keyword']:7.3f}"
        scores += f" {_log_odds(memory.get('log_odds')):>8} {memory['tokens']:6}"
        yield f"{memory['reason']:16} {scores}  {_on_one_line(memory['content'][:CONTENT_CHARS_MAX])}"
    yield f"injected: {found['tokens']} tokens"


def _decided(request: Mapping[str, Any] | None) -> str:
    """What was decided of the question as a whole."""
    if request is None:
        return "not decided, nearness alone counts"
    wants = "wants memories" if request["wants_memories"] else "wants none"
    profile = ", lists the profile" if request["lists_profile"] else ""
    return f"{request['class']}, log-odds {_log_odds(request['log_odds'])}, {wants}{profile}"


def _log_odds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def lines(user: str, found: Mapping[str, Any]) -> Iterator[str]:
    """The user's name, a line for each memory (id, day, type, status, content), and how many there are in all."""
    yield f"user: {user}"
    for memory in found["memories"]:
        day, content = memory["updated_at"][:10], _on_one_line(memory["content"])
        yield f"{memory['id']}  {day}  {memory['type']:10}  {memory['status']:11}  {content}"
    yield f"{len(found['memories'])} of {found['total']} memories"


def _on_one_line(text: str) -> str:
    """Without what would break the line, or what a terminal takes for a command."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
