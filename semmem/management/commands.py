"""``semmem forget``, ``semmem preview``, ``semmem memories``: ask a running semmem, and print what it answers.

Each command's exit status: 0 done, 1 no answer, a refusal, or not done.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import httpx

TIMEOUT_S = 10.0
FORGET_TIMEOUT_S = 300.0
"""A purge of a large store takes long (docs/operations.md), and others may be waiting for theirs."""
CONTENT_CHARS_MAX = 100

Lines = Callable[[Any], Iterable[str]]


def forget(api_url: str, token: str, asked: Mapping[str, str]) -> int:
    """Print the receipt that ``DELETE /v1/memory`` answers to ``asked``.

    A purge that a server's store cannot promise is done all the same: the receipt says ``"purged": false``.
    """
    url = f"{api_url}/v1/memory"
    return ask("DELETE", url, token, lambda receipt: iter([json.dumps(receipt)]), FORGET_TIMEOUT_S, params=asked)


def preview(api_url: str, token: str, asked: Mapping[str, Any]) -> int:
    """Print what ``POST /v1/memory/preview`` answers to ``asked``, as a table."""
    return ask("POST", f"{api_url}/v1/memory/preview", token, table, json=asked)


def memories(api_url: str, token: str, user: str, *, limit: int) -> int:
    """Print what ``GET /v1/memory`` has of the user, newest first."""
    asked: dict[str, str | int] = {"user_id": user, "limit": limit}
    return ask("GET", f"{api_url}/v1/memory", token, lambda found: lines(user, found), params=asked)


def shown_memory(told: Mapping[str, Any]) -> Iterator[str]:
    """A line for each version, oldest first, and how often it was used."""
    for version in (*told["versions"], told["current"]):
        why = f"  ({version['replaced_why']})" if version.get("replaced_why") else ""
        content = _on_one_line(version["content"])
        yield f"{version['version']:3}  {version['updated_at'][:10]}  {version['status']:11}  {content}{why}"
    for row in told["dropped"]:
        yield f"{row['times']} new facts were not stored beside it: {row['reason']}"
    yield f"used {told['uses']['count']} times"


def shown_status(told: Mapping[str, Any]) -> Iterator[str]:
    """A line for each part, and what they come to."""
    for name, part in told["parts"].items():
        yield f"{name:10} {part['error'] or 'works'}, {part['latency_ms']} ms"
    yield "works" if told["working"] else "does not work"


def listed_tokens(told: Mapping[str, Any]) -> Iterator[str]:
    """A line for each."""
    for row in told["tokens"]:
        state = "good" if row["good"] else "revoked" if row["revoked_at"] else "over"
        bound = "one user" if row["bound_to_user"] else "any user"
        label = _on_one_line(row["label"])
        yield f"{row['id']}  {row['role']:8}  {bound}  {row['created_at'][:10]}  {state:7}  {label}"


def _never(_told: Any) -> bool:
    return False


def ask(
    method: str,
    url: str,
    token: str,
    shown: Lines,
    timeout_s: float = TIMEOUT_S,
    *,
    fails: Callable[[Any], bool] = _never,
    **asked: Any,
) -> int:
    """Print what the API answers, as ``shown`` has it; 1 when it refuses, or ``fails`` says so of the answer."""
    try:
        with httpx.Client(timeout=timeout_s, trust_env=False) as http:
            answer = http.request(method, url, headers={"authorization": f"Bearer {token}"}, **asked)
    except httpx.HTTPError as error:
        sys.stderr.write(f"{url}: {type(error).__name__}: {error}\n")
        return 1
    if not answer.is_success:
        sys.stderr.write(f"{url}: {answer.status_code}: {answer.text}\n")
        return 1
    told = answer.json()
    sys.stdout.write("".join(f"{line}\n" for line in shown(told)))
    return 1 if fails(told) else 0


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
