"""``semmem users``, ``status``, ``token``, ``switches``, ``model``, ``calibrate``, ``reindex``: for whoever operates
semmem. The embedding model, the numbers that are learnt for it, and the vectors of all memories anew, by a running
semmem, or here where none runs."""

import argparse
import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

from semmem.commands.asking import (
    NO_SERVER,
    NO_TOKEN,
    TIMEOUT_S,
    Api,
    Told,
    connected,
    given_only,
    printing,
    settings_of,
)
from semmem.commands.command import Failure, misused
from semmem.commands.terminal import Progress, answer, bar, document, members, one_line, say, write
from semmem.management import segment

UNSAID = "unsaid"
PARTS = ("reading", "storing")


def users(api: Api, given: argparse.Namespace) -> Any:
    return api.call("GET", "/v1/users", params=given_only(limit=given.limit, after=given.after))


def shown_users(told: Told) -> Iterator[str]:
    """A line for each, and where to go on."""
    for user in told["users"]:
        alias = told["aliases"].get(user)
        yield one_line(user) + (f"  {one_line(alias)}" if alias else "")
    if told["next_after"] is not None:
        yield f"more: --after {one_line(told['next_after'])}"


def alias(api: Api, given: argparse.Namespace) -> Any:
    """Raises Failure."""
    if "user_id" not in api.whose:
        raise misused("--user", "say whose alias: --user or --api-key-env")
    path = f"/v1/users/{segment(api.whose['user_id'])}/alias"
    return api.call("GET", path) if given.alias is None else api.call("PUT", path, json={"alias": given.alias})


def shown_alias(told: Told) -> Iterator[str]:
    yield one_line(told["alias"] or "no alias")


def status(api: Api, _given: argparse.Namespace) -> Any:
    return api.call("GET", "/v1/health") | {"embedding": api.call("GET", "/v1/status")["embedding"]}


def shown_status(told: Told) -> Iterator[str]:
    """A line for each part, how often a vector was kept, and what they come to."""
    for name, part in told["parts"].items():
        yield f"{name:10} {part['error'] or 'works'}, {part['latency_ms']} ms"
    if kept := told["embedding"].get("cache"):
        asked = kept["hits"] + kept["misses"]
        yield f"{'vectors':10} {kept['entries']} kept, {kept['hits']} of {asked} texts among them"
    yield "works" if told["working"] else "does not work"


def create(api: Api, given: argparse.Namespace) -> Any:
    told = {"role": given.role, "label": given.label, "user_id": given.user, "expires_at": given.expires}
    return api.call("POST", "/v1/tokens", json=told)


def listed_tokens(told: Told) -> Iterator[str]:
    """A line for each."""
    for row in told["tokens"]:
        state = "good" if row["good"] else "revoked" if row["revoked_at"] else "over"
        bound = "one user" if row["bound_to_user"] else "any user"
        yield f"{row['id']}  {row['role']:8}  {bound}  {row['created_at'][:10]}  {state:7}  {one_line(row['label'])}"


def revoke(api: Api, given: argparse.Namespace) -> Any:
    if given.user is not None:
        return api.call("DELETE", "/v1/tokens", params={"user_id": given.user})
    return api.call("DELETE", f"/v1/tokens/{segment(given.id)}")


def asked_switches(api: Api, given: argparse.Namespace) -> Any:
    wanted = {name: word for name in PARTS if (word := getattr(given, name)) is not None}
    if given.user is None and given.group is None:
        return api.call("GET", "/v1/memory-switches")
    kind, name = ("users", given.user) if given.user is not None else ("groups", given.group)
    path = f"/v1/{kind}/{segment(name)}/memory-switches"
    present = api.call("GET", path)
    if not wanted:
        return present
    new = {part: wanted.get(part, present[part]) for part in PARTS}
    return api.call("PUT", path, json={part: None if word == UNSAID else word for part, word in new.items()})


def switches(given: argparse.Namespace) -> int:
    if (given.reading or given.storing) and given.user is None and given.group is None:
        raise misused("--user", "say whose switches: --user or --group")
    return printing(asked_switches, shown_switches)(given)


def shown_switches(told: Told) -> Iterator[str]:
    """A line for whom was asked, or for each group, and how many users have some."""
    if "groups" not in told:
        yield _line(told)
        return
    yield from map(_line, told["groups"])
    yield f"{len(told['groups'])} groups, {told['users']} users"


def _line(told: Told) -> str:
    name = told.get("user_id") or told.get("group_id") or ""
    return f"{one_line(name)}: reading {told['reading'] or UNSAID}, storing {told['storing'] or UNSAID}"


# --- model, calibrate ------------------------------------------------------------------------------------------------


def export_model(given: argparse.Namespace) -> int:
    from semmem.ports.errors import EmbedderError
    from semmem.wiring import models  # imports every embedder

    settings = settings_of(given)
    model = given.model or settings.memory.embedding.model
    try:
        signature, folder = models.export_model(settings, model=model, precision="int8" if given.int8 else "fp32")
    except EmbedderError as error:
        raise Failure("NOT_EXPORTED", "", f"not exported: {error}") from error
    told = {"signature": signature, "folder": str(folder)}
    answer(given, told, [f"{signature}: {folder}"])
    return 0


def show_model(given: argparse.Namespace) -> int:
    from semmem.ports.errors import EmbedderError
    from semmem.wiring.models import embedder  # imports every embedder

    settings = settings_of(given)
    rules = settings.memory.embedding
    try:
        made = embedder(settings)
    except EmbedderError as error:
        raise Failure("NO_MODEL", "memory.embedding", str(error)) from error
    told = {
        "signature": made.signature,
        "source": rules.source,
        "model": rules.remote.model if rules.remote.url else rules.model,
        "dimension": rules.dimension,
        "precision": rules.computed_in,
        "exported_to": str(rules.onnx_folder),
    }
    answer(given, told, members(told))
    return 0


def calibrate(given: argparse.Namespace) -> int:
    from semmem.ports.errors import EmbedderError
    from semmem.wiring import calibration  # imports every backend

    settings = settings_of(given)
    try:
        asyncio.run(calibration.calibrate(settings, given.out, say))
    except (EmbedderError, calibration.NotCalibrated) as error:
        raise Failure("NOT_CALIBRATED", "", f"not calibrated: {error}") from error
    answer(given, {"weights": str(given.out)}, [str(given.out)])
    return 0


# --- reindex ---------------------------------------------------------------------------------------------------------


POLL_S = 0.5
REINDEX_PATH = "/v1/memory/reindex"
ENDED = frozenset({"none", "kept", "paused"})
"""States in which nothing more comes by itself."""


def reindex(given: argparse.Namespace) -> int:
    if given.limit is not None and given.limit < 1:
        raise misused("--limit", "is at least 1")
    progress = Progress("reindex")
    told = _reindexed(given, document if given.json else lambda told: drawn(progress, told))
    progress.end()
    if given.json and given.drop_old:  # the others' last state was told with their progress
        document(told)
    elif not given.json:
        write(members(told) if given.drop_old else [summary(told)])
    return 0


def _reindexed(given: argparse.Namespace, show: Callable[[Told], None]) -> dict[str, Any]:
    """By the semmem that runs, or here when none does."""
    from semmem.ports.errors import SemmemError
    from semmem.wiring.stores import run  # imports every backend

    settings = settings_of(given)
    asked: dict[str, Any] = {"force": given.force, "limit": given.limit, "drop": given.drop_old}
    try:
        if not given.rollback:
            return ask(connected(given, settings, timeout_s=2 * TIMEOUT_S), **asked, show=show)
    except Failure as failure:
        if failure.code not in (NO_SERVER, NO_TOKEN):
            raise
        say(f"no semmem runs here ({failure.reason}): this command does it")
    try:
        return asyncio.run(run(settings, **asked, back=given.rollback, say=show))
    except SemmemError as error:
        raise Failure("NOT_REINDEXED", "", str(error)) from error


def ask(api: Api, *, force: bool, limit: int | None, drop: bool, show: Callable[[Told], None]) -> dict[str, Any]:
    """Begin, or drop what is kept, and wait for the end; how it ended. Raises Failure."""
    if drop:
        dropped: dict[str, Any] = api.call("DELETE", REINDEX_PATH)
        return dropped
    told: dict[str, Any] = api.call("POST", REINDEX_PATH, json={"force": force, **given_only(limit=limit)})
    while told["state"] not in ENDED:
        show(told)
        time.sleep(POLL_S)
        told = api.call("GET", REINDEX_PATH)
    show(told)
    return told


def drawn(progress: Progress, told: Told) -> None:
    """How far it is."""
    if users := int(told.get("users", 0)):
        progress.at(int(told.get("users_done", 0)), _counted(told), users)


def summary(told: Told) -> str:
    """How it ended, on one line."""
    if not (users := int(told.get("users", 0))):
        return f"{told['state']:8} {told['collection']} holds vectors of {told['signature']}"
    return bar(f"{told['state']:8}", int(told.get("users_done", 0)), users, _counted(told))


def _counted(told: Told) -> str:
    done, users = told.get("users_done", 0), told.get("users", 0)
    return f"{done} of {users} users, {told.get('memories_done', 0)} memories, {told.get('embedded', 0)} embedded"
