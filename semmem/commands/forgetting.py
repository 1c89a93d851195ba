"""``semmem forget``: everything of a user, or what is found by id, words, meaning, type, project or age."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from semmem.commands.asking import (
    LONG_TIMEOUT_S,
    Api,
    Told,
    connected,
    given_only,
    named_user,
    refusal,
    settings_of,
)
from semmem.commands.command import Exit, Failure, misused
from semmem.commands.memories import every_memory
from semmem.commands.terminal import answer, one_line
from semmem.management import segment

COUNTED = {
    "memories": "memories",
    "versions": "earlier versions of them",
    "turns": "turns in the journal",
    "halves": "halves of turns that waited in memory",
    "sentences": "pieces of waiting turns that said the same",
    "batches": "batches that were being learnt from",
    "statistics": "statistics of their use",
    "conversations": "recorded conversations",
    "messages": "messages in recorded conversations",
}
"""What a receipt counts, in words."""

DAY_S = 86_400.0


def forget(given: argparse.Namespace) -> int:
    found_by = given.query is not None or given.text is not None
    _check(given, found_by=found_by)
    settings = settings_of(given)
    scope = {"all": "true"} if given.all else named_user(given, settings)
    scope |= given_only(project_id=given.project)
    api = connected(given, settings, timeout_s=LONG_TIMEOUT_S)
    if found_by:
        receipt = _found(api, scope, given)
    elif given.id:
        receipt = _single(api, scope, given)
    else:
        receipt = _scope(api, scope, given)
    answer(given, receipt, shown_receipt(receipt))
    if receipt.get("pending"):
        raise Failure("ERASURE_PENDING", api.url, _pending(receipt), Exit.PENDING)
    return 0


def _check(given: argparse.Namespace, *, found_by: bool) -> None:
    """Raises Failure for choices that do not go together: nobody shall forget more than was meant."""
    filters = given.type or given.older_than_days is not None
    if "" in (given.user, given.query, given.text, given.project, *(given.id or ())):
        raise misused("--user, --id, --query, --text, --project", "an empty one chooses nothing")
    if (found_by or given.id) and filters:
        raise misused("--type, --older-than-days", "not together with --id, --query or --text")
    if given.all and (given.id or found_by or given.user is not None or given.api_key_env is not None):
        raise misused("--all", "is everybody's: not together with a user, --id, --query or --text")
    if not found_by and (given.similarity_min is not None or given.limit is not None):
        raise misused("--similarity-min, --limit", "belong to --query and --text")
    if given.older_than_days is not None and given.older_than_days < 0:
        raise misused("--older-than-days", "is 0 or more")


def _found(api: Api, scope: Told, given: argparse.Namespace) -> dict[str, Any]:
    """By meaning or text. What is found is shown, and then forgotten by id, so that nothing else goes."""
    asked = given_only(
        query=given.query, text=given.text, similarity_min=given.similarity_min, limit=given.limit, dry_run=True
    )
    found: dict[str, Any] = api.call("POST", "/v1/memory/forget", json={**scope, **asked})
    if given.dry_run:
        return found
    ids = [memory["id"] for memory in found["memories"]]
    return _by_id(api, scope, ids, purge=given.purge) | {"memories": found["memories"]}


def _single(api: Api, scope: Told, given: argparse.Namespace) -> dict[str, Any]:
    if not given.dry_run:
        return _by_id(api, scope, given.id, purge=given.purge)
    memories = [api.call("GET", f"/v1/memory/{segment(each)}", params=scope) for each in given.id]
    return {"dry_run": True, "memories": memories, "deleted": 0}


def _by_id(api: Api, scope: Told, ids: Sequence[str], *, purge: bool) -> dict[str, Any]:
    """One after another; the files are rewritten once, with the last one."""
    told: dict[str, Any] = {"success": True, "deleted": 0, "receipt": {}}
    for number, each in enumerate(ids, 1):
        asked = {**scope, **({"purge": "true"} if purge and number == len(ids) else {})}
        one = _erased(api, f"/v1/memory/{segment(each)}", asked)
        counts = Counter(told["receipt"]) + Counter(one.get("receipt", {}))
        told |= one | {"receipt": {name: counts[name] for name in one.get("receipt", {})}}
        told["deleted"] = counts["memories"]
        if told.get("pending"):
            break
    told.pop("message", None)
    return told


def _scope(api: Api, scope: Told, given: argparse.Namespace) -> dict[str, Any]:
    """By type, project and age; without any of them everything of the user."""
    if given.dry_run:
        return _everybodys(api) if given.all else _covered(api, scope, given)
    asked = given_only(type=given.type, older_than_days=given.older_than_days)
    asked |= {"purge": "true"} if given.purge else {}
    return _erased(api, "/v1/memory", {**scope, **asked})


def _everybodys(api: Api) -> dict[str, Any]:
    users = api.call("GET", "/v1/users", params={"limit": 1, "everywhere": True})["total"]
    return {"dry_run": True, "memories": [], "users": users, "deleted": 0}


def _covered(api: Api, scope: Told, given: argparse.Namespace) -> dict[str, Any]:
    """What a type and an age would take, looked up page by page."""
    before = None if given.older_than_days is None else time.time() - given.older_than_days * DAY_S
    memories = [
        memory
        for memory in every_memory(api, {**scope, **given_only(type=given.type)})
        if before is None or _said_at(memory) <= before
    ]
    return {"dry_run": True, "memories": memories, "deleted": 0}


def _said_at(memory: Told) -> float:
    told = memory["source"]["time"] or memory["created_at"]
    return datetime.fromisoformat(told).timestamp()


def _erased(api: Api, path: str, asked: Told) -> dict[str, Any]:
    """The receipt; also that of an erasure which is pending. Raises Failure for every other refusal."""
    came = api.answer("DELETE", path, params=asked)
    if not came.is_success:
        failure = refusal(came, api.url + path)
        if failure.status != Exit.PENDING:
            raise failure
    told: dict[str, Any] = came.json()
    return told | {"deleted": told.get("receipt", {}).get("memories", 0)} if told.get("pending") else told


# --- what is printed -------------------------------------------------------------------------------------------------


def shown_receipt(told: Told) -> Iterator[str]:
    """What went, or would go: a line for each memory where they are named, for each count that is not 0, for the
    disk, and for what is pending."""
    for memory in told.get("memories", ()):
        yield f"{memory['id']}  {memory['updated_at'][:10]}  {memory['type']:10}  {one_line(memory['content'])}"
    if told.get("dry_run"):
        number = f"all memories of {told['users']} users" if "users" in told else f"{len(told['memories'])} memories"
        yield f"{number} would be forgotten, and nothing was"
        return
    users = f" of {told['users']} users" if "users" in told else ""
    yield f"{told['deleted']} memories{users} forgotten"
    for name, number in told.get("receipt", {}).items():
        if number and name != "memories":
            yield f"{number} {COUNTED.get(name, name)}"
    if "purged" in told:
        yield _on_disk(told)
    if told.get("pending"):
        yield _pending(told)


def _on_disk(told: Told) -> str:
    if told["purged"]:
        return f"the files were rewritten in {told['purge_seconds']} s: nothing of it is on this disk"
    return "a server keeps it on its disk until it compacts or vacuums; it is in no answer any more"


def _pending(told: Told) -> str:
    kept = "also by the next process" if told.get("outlives_restart") else "by this process alone: ask again to be sure"
    return f"pending: what is left is hidden from every answer, and will be erased {kept}"
