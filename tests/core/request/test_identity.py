"""Who is asking, and what their conversation is called."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.memory import Controls, Conversation, Message, Role, Scope
from semmem.ports.errors import JournalError
from semmem.request.head import RequestHead
from semmem.request.identity import IdentityRules, identify
from semmem.text.digest import digest
from semmem.turns.sessions import Sessions, session_key, turn_id

TRUSTING = IdentityRules(trusted_headers=("x-authz-user-id", "x-user-id"), metadata_claim=("jwt", "sub"))


def head(headers: Mapping[str, tuple[str, ...]] | None = None, claims: dict[str, object] | None = None) -> RequestHead:
    metadata = {"envoy.filters.http.jwt_authn": claims} if claims is not None else {}
    return RequestHead("POST", "/v1/chat/completions", headers or {}, metadata)


def user(rules: IdentityRules, request: RequestHead, controls: Controls = Controls()) -> str | None:
    scope = identify(rules, request, controls)
    return scope.user if scope else None


def test_metadata_wins_over_every_header_and_body() -> None:
    request = head({"x-authz-user-id": ("mallory",)}, {"jwt": {"sub": "alice"}})
    assert user(TRUSTING, request, Controls(claimed_user="mallory")) == "alice"


def test_no_header_is_trusted_by_default() -> None:
    sent = dict.fromkeys(("x-authz-user-id", "x-jwt-sub", "x-forwarded-user", "x-user-id"), ("mallory",))
    assert user(IdentityRules(), head(sent)) is None


def test_the_first_trusted_header_that_is_present_decides() -> None:
    assert user(TRUSTING, head({"x-user-id": ("bob",), "x-authz-user-id": ("alice",)})) == "alice"
    assert user(TRUSTING, head({"x-user-id": ("bob",)})) == "bob"


def test_a_trusted_header_sent_twice_names_nobody() -> None:
    assert user(TRUSTING, head({"x-authz-user-id": ("alice", "mallory"), "x-user-id": ("bob",)})) is None


@pytest.mark.parametrize("claims", [{}, {"jwt": "alice"}, {"jwt": {"sub": 7}}, {"jwt": {"sub": ""}}, {"jwt": {}}])
def test_a_claim_of_another_shape_names_nobody(claims: dict[str, object]) -> None:
    assert user(TRUSTING, head(claims=claims)) is None


def test_a_name_that_is_too_long_is_nobody_and_never_somebody_shorter() -> None:
    assert user(TRUSTING, head(claims={"jwt": {"sub": "a" * 256}})) == "a" * 256
    assert user(TRUSTING, head(claims={"jwt": {"sub": "a" * 257}})) is None


def test_the_body_is_believed_only_where_that_is_allowed() -> None:
    claim = Controls(claimed_user="alice")
    assert user(IdentityRules(), head(), claim) is None
    assert user(IdentityRules(allow_untrusted_body=True), head(), claim) == "alice"


def test_an_api_key_becomes_a_user_without_revealing_itself() -> None:
    rules = IdentityRules(api_key_secret=b"0123456789abcdef")
    one = user(rules, head({"authorization": ("Bearer sk-one",)}))
    assert one == user(rules, head({"authorization": ("bearer  sk-one ",)}))
    assert one is not None
    assert "sk-one" not in one
    assert one != user(rules, head({"authorization": ("Bearer sk-two",)}))
    assert user(rules, head({"authorization": ("Basic sk-one",)})) is None
    assert user(IdentityRules(), head({"authorization": ("Bearer sk-one",)})) is None
    assert user(rules, head({"x-api-key": ("sk-one",)})) == one
    assert user(IdentityRules(), head({"x-api-key": ("sk-one",)})) is None


def test_project_agent_and_session_come_from_headers_then_body() -> None:
    request = head({"x-conversation-id": ("c1",), "x-agent-id": ("a1",), "x-user-id": ("bob",)})
    scope = identify(TRUSTING, request, Controls(project="from-body"))
    assert scope == Scope("bob", project="from-body", agent="a1", session="c1")
    with_project = head({"x-project-id": ("p1",), "x-user-id": ("bob",)})
    assert identify(TRUSTING, with_project, Controls(project="from-body")) == Scope("bob", project="p1")


@pytest.mark.parametrize("name", ["x-session-id", "x-conversation-id", "x-omniroute-session-id"])
def test_a_session_goes_by_the_names_that_other_gateways_clients_send(name: str) -> None:
    sent = head({name: ("s1",), "x-user-id": ("bob",)})
    assert identify(TRUSTING, sent, Controls()) == Scope("bob", session="s1")


def talk(*texts: str, system: str = "") -> Conversation:
    messages = [Message(Role.SYSTEM, system)] if system else []
    return Conversation((*messages, *(Message(Role.USER, text) for text in texts)))


def test_a_conversation_keeps_its_key_as_it_grows() -> None:
    assert session_key(Scope("u"), talk("hi", "more")) == session_key(Scope("u"), talk("hi"))


@pytest.mark.parametrize(
    "other",
    [
        (Scope("v"), talk("hi")),
        (Scope("u", project="p"), talk("hi")),
        (Scope("u"), talk("ho")),
        (Scope("u"), talk("hi", system="be brief")),
    ],
)
def test_another_user_project_system_prompt_or_opening_is_another_conversation(
    other: tuple[Scope, Conversation],
) -> None:
    assert session_key(*other) != session_key(Scope("u"), talk("hi"))


def test_a_turn_is_named_by_session_place_and_words() -> None:
    scope = Scope("u", session="s")
    assert turn_id(scope, 1, "hi") == turn_id(scope, 1, "hi")
    assert len({turn_id(scope, 1, "hi"), turn_id(scope, 2, "hi"), turn_id(scope, 1, "ho")}) == 3
    assert turn_id(Scope("u", session="t"), 1, "hi") != turn_id(scope, 1, "hi")


@given(st.lists(st.text(), max_size=4), st.lists(st.text(), max_size=4))
def test_different_parts_never_share_a_digest(one: list[str], other: list[str]) -> None:
    assert (digest(*one) == digest(*other)) == (one == other)


class Records:
    """A journal that knows when one session records and one answer, or fails."""

    def __init__(self, start: float | None = None, fails: bool = False) -> None:
        self.start, self.fails, self.asked = start, fails, 0
        self.answers: dict[tuple[str, str], tuple[str, str]] = {}
        self.latest: dict[tuple[str, str], tuple[str, str, float]] = {}

    async def session_start(self, user: str, session_key: str, *, seen_since: float) -> float | None:
        self.asked += 1
        if self.fails:
            raise JournalError("locked")
        return self.start

    async def turn_of_answer(self, user: str, answer_id: str) -> tuple[str, str] | None:
        self.asked += 1
        if self.fails:
            raise JournalError("locked")
        return self.answers.get((user, answer_id))

    async def latest_answer(self, user: str, session: str) -> tuple[str, str, float] | None:
        self.asked += 1
        if self.fails:
            raise JournalError("locked")
        return self.latest.get((user, session))


async def test_the_same_words_tomorrow_are_another_session() -> None:
    sessions = Sessions(Records(), idle_s=1800)
    first = await sessions.name(Scope("u"), talk("hi"), now=1000.0)
    assert await sessions.name(Scope("u"), talk("hi", "more"), now=2700.0) == first
    assert await sessions.name(Scope("u"), talk("hi", "more", "again"), now=4400.0) == first
    assert await sessions.name(Scope("u"), talk("hi"), now=4400.0 + 1801) != first


async def test_a_restart_finds_the_session_in_the_journal() -> None:
    before = await Sessions(Records(), idle_s=1800).name(Scope("u"), talk("hi"), now=1000.0)
    assert await Sessions(Records(start=1000.0), idle_s=1800).name(Scope("u"), talk("hi"), now=1500.0) == before


async def test_a_journal_that_fails_makes_a_new_session_and_loses_nothing() -> None:
    name = await Sessions(Records(fails=True)).name(Scope("u"), talk("hi"), now=1000.0)
    assert name.endswith(".1000")


async def test_only_the_most_recent_sessions_are_remembered() -> None:
    records = Records()
    sessions = Sessions(records, sessions_max=2)
    for text in ("a", "b", "c", "a"):
        await sessions.name(Scope("u"), talk(text), now=1000.0)
    assert records.asked == 4
    await sessions.name(Scope("u"), talk("a"), now=1001.0)
    assert records.asked == 4


async def test_what_one_user_forgets_leaves_the_others_as_recent_as_they_were() -> None:
    records = Records()
    sessions = Sessions(records, sessions_max=3)
    for user in ("ann", "bob", "eve", "ann"):  # bob is now the one who was quiet the longest
        await sessions.name(Scope(user), talk("hi"), now=1000.0)
    sessions.forget("eve")
    for user in ("dan", "joe"):
        await sessions.name(Scope(user), talk("hi"), now=1000.0)
    records.asked = 0
    await sessions.name(Scope("ann"), talk("hi"), now=1001.0)
    assert records.asked == 0
    for user in ("bob", "eve"):
        await sessions.name(Scope(user), talk("hi"), now=1001.0)
    assert records.asked == 2


def going_on(previous_id: str) -> Conversation:
    return Conversation((Message(Role.USER, "and then?"),), previous_id=previous_id)


async def test_a_header_names_the_session_then_the_apis_own_conversation() -> None:
    sessions = Sessions(Records())
    named = Conversation((Message(Role.USER, "hi"),), conversation_id="conv_1")
    assert await sessions.name(Scope("u", session="s"), named, now=1.0) == "s"
    assert await sessions.name(Scope("u"), named, now=1.0) == "conv_1"


async def test_a_chain_of_answers_stays_in_one_session_before_the_journal_has_them() -> None:
    records = Records()
    sessions = Sessions(records)
    first = await sessions.name(Scope("u"), talk("hi"), now=1.0)
    sessions.opened("t1", Scope("u", session=first))
    sessions.closed("t1", "resp_1", 1.0)
    records.asked = 0
    assert await sessions.name(Scope("u"), going_on("resp_1"), now=2.0) == first
    assert records.asked == 0


async def test_a_chain_is_found_in_the_journal_and_only_by_its_own_user() -> None:
    records = Records()
    records.answers["u", "resp_1"] = ("t1", "s1")
    sessions = Sessions(records)
    assert await sessions.name(Scope("u"), going_on("resp_1"), now=2.0) == "s1"
    assert await sessions.name(Scope("v"), going_on("resp_1"), now=2.0) != "s1"


async def test_the_chain_of_one_user_is_never_anothers() -> None:
    sessions = Sessions(Records())
    sessions.opened("t1", Scope("u", session="s1"))
    sessions.closed("t1", "resp_1", 1.0)
    assert await sessions.answered("v", "resp_1") is None


@pytest.mark.parametrize("fails", [False, True])
async def test_an_unknown_answer_begins_a_session_of_its_own(fails: bool) -> None:
    sessions = Sessions(Records(fails=fails))
    one = await sessions.name(Scope("u"), going_on("resp_1"), now=2.0)
    assert one == await sessions.name(Scope("u"), going_on("resp_1"), now=9000.0)
    assert one != await sessions.name(Scope("u"), going_on("resp_2"), now=2.0)


async def test_the_newest_answer_of_a_session_is_known() -> None:
    sessions = Sessions(Records())
    scope = Scope("u", session="conv_1")
    assert await sessions.latest(scope) is None
    sessions.opened("t1", scope)
    sessions.closed("t1", "resp_1", 1.0)
    sessions.closed("t1", "resp_2", 2.0)
    newest = await sessions.latest(scope)
    assert newest is not None
    assert (newest.turn_id, newest.answer_id) == ("t1", "resp_2")
    assert await sessions.latest(Scope("v", session="conv_1")) is None
    assert await sessions.latest(Scope("u")) is None


async def test_who_is_alone_asks_the_journal_only_for_answers_that_it_did_not_see() -> None:
    records = Records()
    records.latest["u", "conv_1"] = ("t0", "resp_0", 1.0)
    sessions, scope = Sessions(records), Scope("u", session="conv_1")
    before = await sessions.latest(scope)
    assert before is not None
    assert (before.turn_id, before.session, before.answer_id) == ("t0", "conv_1", "resp_0")
    sessions.opened("t1", scope)
    sessions.closed("t1", "resp_1", 2.0)
    newest = await sessions.latest(scope)
    assert newest is not None
    assert (newest.answer_id, records.asked) == ("resp_1", 1)


@pytest.mark.parametrize(("elsewhere_at", "newest_id"), [(3.0, "resp_elsewhere"), (1.0, "resp_here")])
async def test_the_newest_answer_is_the_newest_of_all_replicas(elsewhere_at: float, newest_id: str) -> None:
    records = Records()
    sessions, scope = Sessions(records, shared=True), Scope("u", session="conv_1")
    sessions.opened("t1", scope)
    sessions.closed("t1", "resp_here", 2.0)
    records.latest["u", "conv_1"] = ("t2", "resp_elsewhere", elsewhere_at)
    newest = await sessions.latest(scope)
    assert newest is not None
    assert newest.answer_id == newest_id
    records.fails = True
    kept = await sessions.latest(scope)
    assert kept is not None
    assert kept.answer_id == "resp_here"
