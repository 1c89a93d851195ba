"""``semmem memories``: ask a running semmem what it has stored for a user, and print it, newest first."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

TIMEOUT_S = 10.0


def show(api_url: str, token: str, user: str, *, limit: int) -> int:
    """Print what ``GET /v1/memory`` answers. Exit status: 0 shown, 1 no answer, or a refusal."""
    url = f"{api_url}/v1/memory"
    asked: dict[str, str | int] = {"user_id": user, "limit": limit}
    try:
        with httpx.Client(timeout=TIMEOUT_S, trust_env=False) as http:
            answer = http.get(url, params=asked, headers={"authorization": f"Bearer {token}"})
    except httpx.HTTPError as error:
        sys.stderr.write(f"{url}: {type(error).__name__}: {error}\n")
        return 1
    if answer.status_code != 200:
        sys.stderr.write(f"{url}: {answer.status_code}: {answer.text}\n")
        return 1
    sys.stdout.write("".join(f"{line}\n" for line in lines(user, answer.json())))
    return 0


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
