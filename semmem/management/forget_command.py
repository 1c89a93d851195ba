"""``semmem forget``: ask a running semmem to forget a user, or a user's project, and print its receipt."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

import httpx

TIMEOUT_S = 300.0
"""A purge of a large store takes long (docs/operations.md), and others may be waiting for theirs."""


def forget(api_url: str, token: str, asked: Mapping[str, str]) -> int:
    """Print what ``DELETE /v1/memory`` answers to ``asked``. Exit status: 0 done, 1 no answer, a refusal, or not done.

    A purge that a server's store cannot promise is done all the same: the receipt says ``"purged": false``.
    """
    url = f"{api_url}/v1/memory"
    try:
        with httpx.Client(timeout=TIMEOUT_S, trust_env=False) as http:
            answer = http.delete(url, params=asked, headers={"authorization": f"Bearer {token}"})
    except httpx.HTTPError as error:
        sys.stderr.write(f"{url}: {type(error).__name__}: {error}\n")
        return 1
    if answer.status_code != 200:
        sys.stderr.write(f"{url}: {answer.status_code}: {answer.text}\n")
        return 1
    sys.stdout.write(json.dumps(answer.json()) + "\n")
    return 0
