"""``semmem add``, ``list``, ``show``, ``preview``, ``requests``, ``conversations``, ``forget``: users' memories in a
running semmem, what prompts were given of them, and what was recorded of conversations."""

import argparse
import json
import sys
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
    opened,
    refusal,
    settings_of,
)
from semmem.commands.command import Exit, Failure, misused
from semmem.commands.terminal import answer, one_line, write
from semmem.config.values import DAY_S
from semmem.management import segment

CONTENT_CHARS_MAX = 100
"""Of a memory in a table."""
PAGE = 500
"""Memories in a call where all are listed."""


def add(given: argparse.Namespace) -> int:
    api = opened(given)
    told = api.whose | given_only(type=given.type, key=given.key, project_id=given.project)
    for number, content in enumerate(_contents(given.content), 1):
        made = _told(api, told | {"content": content}, number if given.content == "-" else 0)
        answer(given, made, [f"{made['id']} version {made['version']}, {made['status']}"])
    return 0


def _contents(content: str) -> Iterator[str]:
    if content != "-":
        yield content
        return
    yield from (line for text in sys.stdin if (line := text.strip()))


def _told(api: Api, body: Told, line: int) -> Any:
    """Raises Failure, which says of which line of standard input."""
    try:
        return api.call("POST", "/v1/memory", json=body)
    except Failure as failure:
        if not line:
            raise
        reason = f"line {line} of standard input: {failure.reason}"
        raise Failure(failure.code, failure.path, reason, failure.status, line=line) from None


def listed(given: argparse.Namespace) -> int:
    api = opened(given)
    asked = api.whose | given_only(
        project_id=given.project,
        session_id=given.session,
        type=given.type,
        status=given.status,
        q=given.text,
        cursor=given.cursor,
    )
    if given.all:
        for memory in every_memory(api, asked):
            write([json.dumps(memory) if given.json else _listed(memory)])
        return 0
    found = api.call("GET", "/v1/memory", params=asked | {"limit": given.limit})
    answer(given, found, lines(api.whose.get("user_id", ""), found))
    return 0


def every_memory(api: Api, asked: Told) -> Iterator[Told]:
    """Page by page, from where ``cursor`` says. Raises Failure."""
    cursor = asked.get("cursor")
    while True:
        found = api.call("GET", "/v1/memory", params={**asked, "limit": PAGE, **given_only(cursor=cursor)})
        yield from found["memories"]
        if (cursor := found["next_cursor"]) is None:
            return


def lines(user: str, found: Told) -> Iterator[str]:
    """The user's name, a line for each memory (id, day, type, status, content), and how many there are in all."""
    memories = found["memories"]
    yield f"user: {user or (memories[0]['user_id'] if memories else 'the one of the token')}"
    yield from map(_listed, memories)
    yield f"{len(memories)} of {found['total']} memories"


def _listed(memory: Told) -> str:
    day, content = memory["updated_at"][:10], one_line(memory["content"])
    return f"{memory['id']}  {day}  {memory['type']:10}  {memory['status']:11}  {content}"


def history(api: Api, given: argparse.Namespace) -> Any:
    return api.call("GET", f"/v1/memory/{segment(given.id)}/history", params=api.whose)


def shown_memory(told: Told) -> Iterator[str]:
    """A line for each version, oldest first, and how often it was used."""
    for version in (*told["versions"], told["current"]):
        why = f"  ({version['replaced_why']})" if version.get("replaced_why") else ""
        content = one_line(version["content"])
        yield f"{version['version']:3}  {version['updated_at'][:10]}  {version['status']:11}  {content}{why}"
    for row in told["dropped"]:
        yield f"{row['times']} new facts were not stored beside it: {row['reason']}"
    yield f"used {told['uses']['count']} times"


def preview(api: Api, given: argparse.Namespace) -> Any:
    asked = given_only(strategy=given.strategy, limit=given.limit, project_id=given.project)
    return api.call("POST", "/v1/memory/preview", json=api.whose | asked | {"query": given.question})


def table(found: Told) -> Iterator[str]:
    """What was asked, a line for each candidate, and what would be injected."""
    yield f"query: {one_line(found['query'])}"
    unembedded = f" ({found['unembedded']})" if found.get("unembedded") else ""
    yield f"gate: {found['gate']}, strategy: {found['strategy']}{unembedded}, path: {found['path']}"
    yield f"request: {_decided(found['request'])}"
    yield f"{'verdict':16} {'score':>7} {'cosine':>7} {'bm25':>7} {'log-odds':>8} {'tokens':>6}  memory"
    for memory in found["memories"]:
        scores = f"{memory['score']:7.3f} {memory['cosine']:7.3f} {memory['keyword']:7.3f}"
        scores += f" {_log_odds(memory.get('log_odds')):>8} {memory['tokens']:6}"
        yield f"{memory['reason']:16} {scores}  {one_line(memory['content'][:CONTENT_CHARS_MAX])}"
    yield f"injected: {found['tokens']} tokens"


def _decided(request: Told | None) -> str:
    """What was decided of the question as a whole."""
    if request is None:
        return "not decided, nearness alone counts"
    wants = "wants memories" if request["wants_memories"] else "wants none"
    profile = ", lists the profile" if request["lists_profile"] else ""
    return f"{request['class']}, log-odds {_log_odds(request['log_odds'])}, {wants}{profile}"


def _log_odds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


# --- requests --------------------------------------------------------------------------------------------------------


REQUESTS = "/v1/requests"


def requests(api: Api, given: argparse.Namespace) -> Any:
    if given.id is not None:
        return api.call("GET", f"{REQUESTS}/{segment(given.id)}")
    return api.call("GET", REQUESTS, params=api.whose | given_only(outcome=given.outcome, limit=given.limit))


def shown_requests(found: Told) -> Iterator[str]:
    """A line for each (when, outcome, milliseconds, memories, id); or why one was answered so."""
    if "requests" not in found:
        yield from _why(found)
        return
    for one in found["requests"]:
        counts = f"{one['milliseconds']:8.1f} ms  {one['memories']:2} memories"
        yield f"{_second(one['time'])}  {one['outcome']:16}  {counts}  {one_line(one['id'])}"


def _why(one: Told) -> Iterator[str]:
    steps = ", ".join(f"{name} {taken}" for name, taken in one["steps"].items())
    about = one["purpose"] or "not decided"
    yield f"{_second(one['time'])}  {one['outcome']}, about: {about}, {one['api']}, {one_line(one['model'])}"
    yield f"took {one['milliseconds']} ms ({steps}); {one['tokens']} tokens added"
    if (answer := one["answer"]) is not None:
        counted = ", ".join(f"{name} {answer[name]}" for name in _TOKENS if answer[name] is not None)
        yield f"answer: {answer['ending']} after {answer['milliseconds']} ms{counted and f'; {counted}'}"
    for memory in one["in_prompt"]:
        found = f"log-odds {memory['log_odds']}" if memory["is_new"] else "from earlier"
        yield f"in the prompt  {found:14}  {one_line(memory['content'])}"
    if one["gone"]:
        yield f"in the prompt  {one['gone']} more, that are gone"
    yield from (f"left out       {memory['reason']:14}  {one_line(memory['content'])}" for memory in one["left_out"])
    yield from (f"learnt         {memory['type']:14}  {one_line(memory['content'])}" for memory in one["learnt"])


_TOKENS = ("tokens_in", "tokens_out", "cached_tokens")


def _second(time: str) -> str:
    return time[:19].replace("T", " ")


# --- conversations ---------------------------------------------------------------------------------------------------


CONVERSATIONS = "/v1/conversations"
MESSAGES = 500
"""In a call."""


def conversations(api: Api, given: argparse.Namespace) -> Any:
    asked = given_only(
        project_id=given.project, session_id=given.session, tag=given.tag, q=given.text, cursor=given.cursor
    )
    return api.call("GET", CONVERSATIONS, params={**api.whose, **asked, "limit": given.limit})


def shown_conversations(found: Told) -> Iterator[str]:
    """A line for each: id, day, number of messages, title; and where to go on."""
    for kept in found["conversations"]:
        yield f"{kept['id']}  {kept['updated_at'][:10]}  {kept['messages']:5}  {one_line(kept['title'])}"
    if not found["recording"]:
        yield "nothing is recorded: conversations.enabled is false"
    if found["next_cursor"] is not None:
        yield f"more: --cursor {found['next_cursor']}"


def conversation(api: Api, given: argparse.Namespace) -> Told:
    whole: dict[str, Any] = {}
    cursor: str | None = None
    while not whole or cursor is not None:
        asked = {**api.whose, "limit": MESSAGES, **given_only(cursor=cursor)}
        page = api.call("GET", f"{CONVERSATIONS}/{segment(given.id)}", params=asked)
        whole = {"conversation": page["conversation"], "messages": [*whole.get("messages", ()), *page["messages"]]}
        cursor = page["next_cursor"]
    return whole


def shown_conversation(whole: Told) -> Iterator[str]:
    """The title, then each message under who said it and when."""
    yield one_line(whole["conversation"]["title"])
    for message in whole["messages"]:
        yield ""
        yield f"{message['role']}  {_second(message['at'])}  {one_line(message['model'] or '')}".rstrip()
        yield from (f"  {one_line(line)}" for line in message["content"].splitlines())
        yield from (
            f"  calls {one_line(call['name'])}: {one_line(call['arguments'])}" for call in message["tool_calls"]
        )


def export_conversation(given: argparse.Namespace) -> int:
    api = opened(given)
    path = f"{CONVERSATIONS}/{segment(given.id)}/export"
    answer = api.answer("GET", path, params=api.whose | {"format": "json" if given.json else "markdown"})
    if not answer.is_success:
        raise refusal(answer, api.url + path)
    write([answer.text.removesuffix("\n")])
    return 0


def delete_conversation(api: Api, given: argparse.Namespace) -> Any:
    return api.call("DELETE", f"{CONVERSATIONS}/{segment(given.id)}", params=api.whose)


# --- forget ----------------------------------------------------------------------------------------------------------


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
    "passages": "passages of what was said",
    "requests": "requests in the log",
    "aliases": "names in lists",
}
"""What a receipt counts, in words."""


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
    if given.dry_run and given.all:
        users = api.call("GET", "/v1/users", params={"limit": 1, "everywhere": True})["total"]
        return {"dry_run": True, "memories": [], "users": users, "deleted": 0}
    if given.dry_run:
        return _covered(api, scope, given)
    asked = given_only(type=given.type, older_than_days=given.older_than_days)
    asked |= {"purge": "true"} if given.purge else {}
    return _erased(api, "/v1/memory", {**scope, **asked})


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
    if told.get("purged"):
        yield f"the files were rewritten in {told['purge_seconds']} s: nothing of it is on this disk"
    elif "purged" in told:
        yield "a server keeps it on its disk until it compacts or vacuums; it is in no answer any more"
    if told.get("pending"):
        yield _pending(told)


def _pending(told: Told) -> str:
    kept = "also by the next process" if told.get("outlives_restart") else "by this process alone: ask again to be sure"
    return f"pending: what is left is hidden from every answer, and will be erased {kept}"
