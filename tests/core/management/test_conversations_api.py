"""Conversations through the API: imported, listed, searched, read, changed, exported, removed; each by their user."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semmem.management.conversations import CUT
from semmem.management.shown import cursor_of
from semmem.memory import Scope
from semmem.ports.conversations import conversation_id
from tests.core.management.test_api import ADMIN
from tests.core.management.test_roles import Guarded

CALL = {"id": "call_1", "name": "weather", "arguments": '{"city":"Lisbon"}'}
MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "How warm is it in Lisbon?\nTell me.", "at": "2026-05-01T12:00:00Z"},
    {"role": "assistant", "tool_calls": [CALL], "model": "gpt-4o", "tokens_in": 20, "tokens_out": 5},
    {"role": "tool", "content": "21 ``` degrees", "tool_call_id": "call_1"},
    {"role": "assistant", "content": "It is warm.", "model": "gpt-4o", "response_id": "resp_1", "tokens_out": 3},
]  # fmt: skip
PATH = "/v1/conversations"


async def told(guarded: Guarded, user: str = "alice", **fields: Any) -> dict[str, Any]:
    body = {"user_id": user, "messages": MESSAGES} | fields
    answer = await guarded.client.post(PATH, json=body, headers=ADMIN)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def ask(guarded: Guarded, path: str = PATH, *, user: str = "alice", **asked: Any) -> dict[str, Any]:
    answer = await guarded.client.get(path, params={"user_id": user} | asked, headers=ADMIN)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_what_was_imported_is_read_as_it_was_told(guarded: Guarded) -> None:
    made = await told(guarded, project_id="atlas", session_id="s1", tags=["  The Move ", "the move"])
    assert (made["title"], made["messages"], made["tags"]) == ("How warm is it in Lisbon?", 4, ["the move"])
    assert (made["tokens_in"], made["tokens_out"], made["session_id"]) == (20, 8, "s1")
    found = await ask(guarded, f"{PATH}/{made['id']}")
    assert found["conversation"] == made
    assert found["next_cursor"] is None
    names = ("role", "content", "tool_calls", "tool_call_id", "model", "response_id", "tokens_in", "tokens_out")
    for said, message in zip(MESSAGES, found["messages"], strict=True):
        assert {name: message[name] or None for name in names} == {name: said.get(name) or None for name in names}
    assert found["messages"][0]["at"] == "2026-05-01T12:00:00Z"


async def test_one_without_messages_begins_in_a_session_that_is_called_like_it(guarded: Guarded) -> None:
    body = {"user_id": "alice", "project_id": "atlas", "title": "The move"}
    made = (await guarded.client.post(PATH, json=body, headers=ADMIN)).json()
    assert (made["messages"], made["title"], made["session_id"]) == (0, "The move", made["id"])
    assert made["id"] == conversation_id(Scope("alice", "atlas", session=made["id"]))
    assert made["id"] != conversation_id(Scope("bob", "atlas", session=made["id"]))
    assert [each["id"] for each in (await ask(guarded))["conversations"]] == [made["id"]]
    assert (await ask(guarded, f"{PATH}/{made['id']}"))["messages"] == []
    other = (await guarded.client.post(PATH, json=body | {"messages": []}, headers=ADMIN)).json()
    assert other["id"] != made["id"]
    gone = await guarded.client.delete(f"{PATH}/{made['id']}", params={"user_id": "alice"}, headers=ADMIN)
    assert gone.json() == {"success": True, "messages": 0}
    assert [each["id"] for each in (await ask(guarded))["conversations"]] == [other["id"]]


async def test_messages_come_page_by_page(guarded: Guarded) -> None:
    made = await told(guarded)
    first = await ask(guarded, f"{PATH}/{made['id']}", limit=3)
    rest = await ask(guarded, f"{PATH}/{made['id']}", limit=3, cursor=first["next_cursor"])
    assert [m["role"] for m in first["messages"]] == ["user", "assistant", "tool"]
    assert ([m["content"] for m in rest["messages"]], rest["next_cursor"]) == (["It is warm."], None)


async def test_pages_go_back_as_well_and_begin_around_a_match(guarded: Guarded) -> None:
    said = [{"role": "user", "content": f"Remark {number}"} for number in range(30)]
    at = f"{PATH}/{(await told(guarded, messages=said))['id']}"
    found = await ask(guarded, f"{at}/matches", q="remark 2", limit=3)
    assert (found["total"], [each["role"] for each in found["matches"]]) == (12, ["user"] * 3)  # 2, 12 and 20 to 29
    (match,) = (await ask(guarded, f"{at}/matches", q="12 remark"))["matches"]
    page = await ask(guarded, at, limit=5, cursor=match["cursor"])
    assert page["messages"][2]["id"] == match["id"]
    assert numbers(page) == [10, 11, 12, 13, 14]
    shown = numbers(page)
    back, on = page, page
    while back["previous_cursor"] is not None:
        back = await ask(guarded, at, limit=4, cursor=back["previous_cursor"])
        shown = numbers(back) + shown
    while on["next_cursor"] is not None:
        on = await ask(guarded, at, limit=4, cursor=on["next_cursor"])
        shown += numbers(on)
    assert shown == list(range(30))
    assert (await ask(guarded, at))["previous_cursor"] is None
    last = (await ask(guarded, f"{at}/matches", q="29"))["matches"][0]["cursor"]
    ends = [numbers(await ask(guarded, at, limit=limit, cursor=last)) for limit in (1, 2, 3)]
    assert ends == [[29], [28, 29], [28, 29]]
    for nothing in ("nowhere", "remark 2 nowhere", " "):
        assert await ask(guarded, f"{at}/matches", q=nothing) == {"matches": [], "total": 0}
    for cursor, expected in (("<z", [28, 29]), ("<", []), ("=", [0, 1]), ("z", []), ("=z", [29])):  # no message's place
        assert numbers(await ask(guarded, at, limit=2, cursor=cursor_of(cursor))) == expected, cursor


def numbers(page: dict[str, Any]) -> list[int]:
    return [int(message["content"].removeprefix("Remark ")) for message in page["messages"]]


async def test_projects_and_tags_are_told_to_whoever_may_see_them(guarded: Guarded) -> None:
    await told(guarded, project_id="atlas", tags=["Move"])
    await told(guarded, project_id="atlas")
    await told(guarded, user="bob", project_id="theirs", tags=["theirs"])
    told_of = {"projects": [{"project_id": "atlas", "conversations": 2}], "tags": [{"tag": "move", "conversations": 1}]}
    assert await ask(guarded, f"{PATH}/facets") == told_of
    assert await ask(guarded, f"{PATH}/facets", user="nobody") == {"projects": [], "tags": []}


async def test_a_list_goes_on_where_it_ended_and_is_narrowed(guarded: Guarded) -> None:
    for number in range(5):
        await told(guarded, title=f"Title {number}", session_id=f"s{number}", project_id="atlas" if number else None)
    shown: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = await ask(guarded, limit=2, **cursor)
        shown += [each["title"] for each in page["conversations"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert sorted(shown) == [f"Title {number}" for number in range(5)]
    asked = [{"session_id": "s3"}, {"q": "title 3"}, {"project_id": "atlas", "q": "3"}]
    for each in asked:
        assert [found["title"] for found in (await ask(guarded, **each))["conversations"]] == ["Title 3"], each
    assert (await ask(guarded, q="lisbon warm", project_id=""))["conversations"] != []
    for nothing in (
        {"q": "warm nowhere"},
        {"tag": "x"},
        {"since": "2100-01-01T00:00:00Z"},
        {"until": "1990-01-01T00:00:00Z"},
    ):
        assert (await ask(guarded, **nothing))["conversations"] == [], nothing


async def test_titles_and_tags_are_changed_and_what_is_not_named_stays(guarded: Guarded) -> None:
    made = await told(guarded, tags=["a"])
    at = f"{PATH}/{made['id']}"
    for body, expected in (
        ({"title": "New"}, ("New", ["a"])),
        ({"tags": ["B", "c"]}, ("New", ["b", "c"])),
        ({}, ("New", ["b", "c"])),
    ):
        answer = await guarded.client.patch(at, json=body, params={"user_id": "alice"}, headers=ADMIN)
        assert (answer.json()["title"], answer.json()["tags"]) == expected
    assert [each["id"] for each in (await ask(guarded, tag="B"))["conversations"]] == [made["id"]]


async def test_a_removed_conversation_is_gone(guarded: Guarded) -> None:
    at = f"{PATH}/{(await told(guarded))['id']}"
    gone = await guarded.client.delete(at, params={"user_id": "alice"}, headers=ADMIN)
    assert gone.json() == {"success": True, "messages": 4}
    for method in ("GET", "DELETE", "PATCH"):
        body: dict[str, Any] = {"json": {}} if method == "PATCH" else {}
        answer = await guarded.client.request(method, at, params={"user_id": "alice"}, headers=ADMIN, **body)
        assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")
    assert (await ask(guarded))["conversations"] == []


async def test_an_export_holds_all_of_it_as_text_or_json(guarded: Guarded) -> None:
    long = {"role": "user", "content": "x" * 20_000}
    at = f"{PATH}/{(await told(guarded, messages=[*MESSAGES, long], project_id='atlas', tags=['t']))['id']}/export"
    text = await guarded.client.get(at, params={"user_id": "alice"}, headers=ADMIN)
    assert text.headers["content-type"] == "text/markdown; charset=utf-8"
    shown = text.text
    assert shown.startswith("# How warm is it in Lisbon?\n\n- Began: 2026-05-01T12:00:00Z\n")
    for part in (
        "Project: atlas",
        "Tags: t",
        "Assistant, gpt-4o",
        "````\n21 ``` degrees\n````",
        "Calls `weather`",
        CUT,
    ):
        assert part in shown
    whole = await ask(guarded, at, format="json")
    assert len(whole["messages"]) == 5
    assert whole["messages"][4]["cut"] is True
    copy = await told(guarded, user="bob", messages=whole["messages"])
    again = await ask(guarded, f"{PATH}/{copy['id']}/export", user="bob", format="json")
    own = ("id", "cut")
    assert [{name: m[name] for name in m if name not in own} for m in again["messages"]] == [
        {name: m[name] for name in m if name not in own} for m in whole["messages"]
    ]


async def test_nobody_reaches_somebody_elses(guarded: Guarded) -> None:
    theirs = await told(guarded, user="bob")
    at = f"{PATH}/{theirs['id']}"
    token = (await guarded.make(role="user", user_id="alice"))["token"]
    asked: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", at, {}), ("GET", f"{at}/export", {}), ("PATCH", at, {"title": "x"}), ("DELETE", at, {})
    ]  # fmt: skip
    for method, path, body in asked:
        for params in ({}, {"user_id": "bob"}):
            answer = await guarded.call(token, method, path, params=params, **({"json": body} if body else {}))
            assert answer.status_code == 404, (method, path, params)
    assert (await guarded.call(token, "GET", PATH)).json()["conversations"] == []
    assert (await ask(guarded, user="bob"))["conversations"] == [theirs]
    own = (await guarded.call(token, "GET", f"{PATH}/counts")).json()
    assert (own["conversations"], own["users"]) == (0, 0)


async def test_an_operator_sees_counts_and_no_words(guarded: Guarded) -> None:
    await told(guarded)
    await told(guarded, user="bob")
    token = (await guarded.make(role="operator"))["token"]
    counts = (await guarded.call(token, "GET", f"{PATH}/counts")).json()
    assert counts == {
        "conversations": 2, "messages": 8, "users": 2, "tokens_in": 40, "tokens_out": 16, "recording": True
    }  # fmt: skip
    assert (await guarded.call(token, "GET", PATH, params={"user_id": "bob"})).status_code == 403
    assert (await guarded.call(token, "GET", f"{PATH}/counts", params={"user_id": "bob"})).status_code == 403


async def test_a_deleted_user_has_no_conversations_and_the_receipt_says_so(guarded: Guarded) -> None:
    await told(guarded, session_id="s1")
    await told(guarded, user="bob")
    gone = await guarded.client.delete("/v1/memory", params={"user_id": "alice"}, headers=ADMIN)
    assert (gone.json()["receipt"]["conversations"], gone.json()["receipt"]["messages"]) == (1, 4)
    assert (await ask(guarded))["conversations"] == []
    assert len((await ask(guarded, user="bob"))["conversations"]) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": [], "session_id": "s1"},
        {"messages": [{"role": "critic", "content": "x"}]},
        {"messages": [{"role": "user", "content": "x", "at": 7}]},
        {"messages": [{"role": "user", "content": "x", "tokens_in": -1}]},
        {"tags": ["two\nlines"]},
        {"tags": ["  "]},
        {"title": "two\nlines"},
        {"title": "x" * 201},
        {"more": 1},
    ],
)
async def test_what_is_no_conversation_is_refused(guarded: Guarded, fields: dict[str, Any]) -> None:
    answer = await guarded.client.post(PATH, json={"user_id": "alice", "messages": MESSAGES} | fields, headers=ADMIN)
    assert (answer.status_code, answer.json()["code"]) == (400, "INVALID_REQUEST")


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(min_size=1, max_size=60), cursor=st.text(max_size=60) | st.binary(max_size=40).map(bytes.hex))
async def test_whatever_is_asked_is_answered_or_refused(guarded: Guarded, text: str, cursor: str) -> None:
    for asked in ({"q": text, "tag": text}, {"cursor": cursor}):
        sent = {name: value.encode("utf-8", "replace").decode() for name, value in asked.items()}
        answer = await guarded.client.get(PATH, params={"user_id": "alice", **sent}, headers=ADMIN)
        assert answer.status_code in (200, 400), answer.text
        assert answer.status_code == 400 or answer.json()["conversations"] == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(min_size=1, max_size=60),
    place=st.builds("".join, st.tuples(st.sampled_from(["", "<", "="]), st.text(max_size=30))),
    limit=st.integers(1, 5),
)
async def test_whatever_is_asked_of_one_is_answered_or_refused(
    guarded: Guarded, text: str, place: str, limit: int
) -> None:
    (kept,) = (await ask(guarded))["conversations"] or [await told(guarded)]
    words = text.encode("utf-8", "replace").decode()
    for path, asked in ((f"/{kept['id']}/matches", {"q": words}), (f"/{kept['id']}", {"cursor": cursor_of(place)})):
        answer = await guarded.client.get(
            PATH + path, params={"user_id": "alice", "limit": limit, **asked}, headers=ADMIN
        )
        assert answer.status_code == 200, answer.text
        assert len(answer.json().get("messages", [])) <= limit
