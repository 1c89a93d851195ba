"""Routes for accounts: switches (whether memories are shown in prompts, and turns stored, for a user or a group),
aliases, tokens that an administrator makes, and who a caller is."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Literal, Protocol

from fastapi import APIRouter, Path, Request
from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from semmem.management.access import CALLER, TOUCHED, Act, Caller, CallerRole, Tokens
from semmem.management.problems import Denied
from semmem.management.routes import (
    NO_CONTROLS,
    UNUSABLE,
    USER_CHARS_MAX,
    Body,
    Moment,
    NewUser,
    UserId,
    may,
    needs,
    only,
    refuses,
)
from semmem.management.shown import NullIfEmpty, Time, as_shown
from semmem.ports.accounts import Switch, TokenRow
from semmem.ports.names import usable
from semmem.request.switches import Switches, group_key, user_key

Word = Literal["on", "off"]

WORDS: dict[bool | None, Word | None] = {True: "on", False: "off", None: None}
SAID: dict[str | None, bool | None] = {word: said for said, word in WORDS.items()}


class SwitchRecords(Protocol):
    """All raise JournalError."""

    async def set_switch(self, key: str, group: str, switch: Switch, *, now: float, entries_max: int) -> bool:
        """From here on this holds; with UNSAID nothing does. False, and nothing is changed, when it would be one more
        than ``entries_max``. Processes that listen are told."""


@dataclass(eq=False)
class SwitchDesk:
    """``known``: what requests obey; ``refresh`` brings it up to date. ``entries_max``: users and groups together.
    Raises JournalError."""

    records: SwitchRecords
    known: Switches
    refresh: Callable[[], Awaitable[None]]
    _: KW_ONLY
    entries_max: int
    clock: Callable[[], float]

    async def set(self, key: str, group: str, switch: Switch) -> None:
        """``group``: its name, empty for a user. Obeyed here from now on, elsewhere soon. Raises Denied where there are
        too many."""
        limit = self.entries_max
        if not await self.records.set_switch(key, group, switch, now=self.clock(), entries_max=limit):
            raise Denied("TOO_MANY_SWITCHES", f"there are {limit} switches (memory.switches.entries_max)")
        await self.refresh()


class SwitchesShown(TypedDict):
    """On, off, or null for what is not said."""

    reading: Word | None
    storing: Word | None


def words(switch: Switch) -> SwitchesShown:
    return {"reading": WORDS[switch.reading], "storing": WORDS[switch.storing]}


Name = Annotated[str, Path(max_length=USER_CHARS_MAX), only(usable, UNUSABLE)]


class NewSwitches(Body):
    """Both are set: what is left out, or null, is not said any more, and left to the user's groups."""

    reading: Word | None = Field(default=None, description="memories in prompts")
    storing: Word | None = Field(default=None, description="turns in the journal, and what is learnt from them")

    def switch(self) -> Switch:
        return Switch(SAID[self.reading], SAID[self.storing])


class UserSwitches(SwitchesShown):
    """A user's own."""

    user_id: str


class GroupSwitches(SwitchesShown):
    """A group's."""

    group_id: str


class ListedGroup(GroupSwitches):
    """With the time of the last change."""

    changed_at: Time


class SwitchesListed(TypedDict):
    """``users``: how many have some."""

    groups: list[ListedGroup]
    users: int


def switch_routes(desk: SwitchDesk) -> APIRouter:
    """Everything about memory switches. For an administrator."""
    routes = APIRouter()
    reading = needs(Act.ADMINISTER, "MEMORY_NOT_AVAILABLE", "NOT_FOUND")
    setting = needs(Act.ADMINISTER, "MEMORY_NOT_AVAILABLE", "NOT_FOUND", "TOO_MANY_SWITCHES")

    @routes.get("/v1/users/{user_id:path}/memory-switches", **reading)
    async def get_user_switches(request: Request, user_id: Name) -> UserSwitches:
        """What is said of a user."""
        request.scope[TOUCHED].add(user_id)
        await desk.refresh()  # as the journal has it now
        return {"user_id": user_id, **words(desk.known.of_user(user_id))}

    @routes.put("/v1/users/{user_id:path}/memory-switches", **setting)
    async def set_user_switches(request: Request, user_id: Name, new: NewSwitches) -> UserSwitches:
        """Beats what is said of the user's groups. Other replicas obey within seconds."""
        request.scope[TOUCHED].add(user_id)
        await desk.set(user_key(user_id), "", new.switch())
        return {"user_id": user_id, **words(new.switch())}

    @routes.get("/v1/groups/{group_id:path}/memory-switches", **reading)
    async def get_group_switches(group_id: Name) -> GroupSwitches:
        """What is said of a group."""
        await desk.refresh()
        return {"group_id": group_id, **words(desk.known.of_group(group_id))}

    @routes.put("/v1/groups/{group_id:path}/memory-switches", **setting)
    async def set_group_switches(group_id: Name, new: NewSwitches) -> GroupSwitches:
        """Of several groups of a user's one that says off wins. Other replicas obey within seconds."""
        await desk.set(group_key(group_id), group_id, new.switch())
        return {"group_id": group_id, **words(new.switch())}

    @routes.get("/v1/memory-switches", **needs(Act.ADMINISTER, "MEMORY_NOT_AVAILABLE"))
    async def list_switches() -> SwitchesListed:
        """Every group that has some, by name. Of users only how many have: their names are not kept here."""
        await desk.refresh()
        rows = desk.known.groups()
        groups = [as_shown(ListedGroup, row, group_id=row.group, **words(row.switch)) for row in rows]
        return {"groups": groups, "users": desk.known.number_set - len(rows)}

    return routes


# --- aliases --------------------------------------------------------------------------------------------------------

ALIAS_CHARS_MAX = 64


class AliasRecords(Protocol):
    """All raise JournalError."""

    async def set_alias(self, user: str, alias: str) -> None:
        """In the place of the one before; an empty one removes it."""

    async def aliases(self, users: Sequence[str]) -> Mapping[str, str]:
        """By user, of those who have one."""


def _one_line(alias: str | None) -> str | None:
    told = (alias or "").strip()
    if len(told.splitlines()) > 1 or (told and not usable(told)):
        raise ValueError("is not one line of text")
    return told or None


class NewAlias(Body):
    """Null, or nothing but spaces: the user has none any more."""

    alias: Annotated[str | None, Field(max_length=ALIAS_CHARS_MAX, pattern=NO_CONTROLS), AfterValidator(_one_line)]


class UserAlias(TypedDict):
    """What people call a user; null for nothing. A label: nobody is known by it."""

    user_id: str
    alias: str | None


def alias_routes(records: AliasRecords) -> APIRouter:
    """For an administrator, and for users themselves."""
    routes = APIRouter()

    @routes.get("/v1/users/{user_id:path}/alias", **needs(Act.READ, "MEMORY_NOT_AVAILABLE", "NOT_FOUND"))
    async def get_alias(request: Request, user_id: Name) -> UserAlias:
        """What a user is called."""
        user = may(request, user_id, Act.READ)
        return {"user_id": user, "alias": (await records.aliases([user])).get(user)}

    @routes.put("/v1/users/{user_id:path}/alias", **needs(Act.WRITE, "MEMORY_NOT_AVAILABLE", "NOT_FOUND"))
    async def set_alias(request: Request, user_id: Name, new: NewAlias) -> UserAlias:
        """Name a user, or take the name away. Nothing else changes: memories, tokens and requests go by the id."""
        user = may(request, user_id, Act.WRITE)
        await records.set_alias(user, new.alias or "")
        return {"user_id": user, "alias": new.alias}

    return routes


# --- tokens ---------------------------------------------------------------------------------------------------------

LABEL_CHARS_MAX = 100


class NewToken(Body):
    """``user_id``: the only user it is good for; a token of the role user has one, one of an admin or operator none."""

    role: Literal["admin", "operator", "user", "reader"]
    label: str = Field(default="", max_length=LABEL_CHARS_MAX, description="for whom or what; holds no secret")
    user_id: NewUser = None
    expires_at: Moment | None = None


class WhoAmI(TypedDict):
    """The caller. ``user_id``: the only one whose memories they may touch, null for any."""

    role: CallerRole
    may: list[str]
    user_id: str | None
    token_id: NullIfEmpty
    memory_switches: SwitchesShown | None


class TokenShown(TypedDict):
    """A token without what makes it one. ``good``: neither revoked nor at its end."""

    id: str
    role: str
    label: str
    bound_to_user: bool
    created_at: Time
    expires_at: Time | None
    revoked_at: Time | None
    good: bool


class TokenMade(TokenShown):
    """``token``: shown here and never again."""

    token: str


class TokensShown(TypedDict):
    """Those that were made."""

    tokens: list[TokenShown]


class Revoked(TypedDict):
    """``revoked``: how many were good, or expired, until now."""

    success: Literal[True]
    revoked: int


def token_routes(tokens: Tokens, *, switches: Switches | None = None) -> APIRouter:
    """Everything under /v1/tokens. ``switches``: those that requests obey."""
    routes, known = APIRouter(), switches or Switches()

    @routes.get("/v1/whoami", **refuses())
    async def whoami(request: Request) -> WhoAmI:
        """The caller's role, what it allows, and the user it is bound to, with that user's own memory switches."""
        caller: Caller = request.scope[CALLER]
        own = words(known.of_user(caller.user)) if caller.user else None
        acts = [str(act.name).lower() for act in caller.role.acts]
        return as_shown(WhoAmI, caller, may=acts, memory_switches=own)

    @routes.post("/v1/tokens", status_code=201, **needs(Act.ADMINISTER, "MEMORY_NOT_AVAILABLE"))
    async def make_token(new: NewToken) -> TokenMade:
        """The answer is the only place where the token is ever shown."""
        role, user = CallerRole(new.role), new.user_id or None
        if role is not CallerRole.READER and (user is None) is (role is CallerRole.USER):
            reason = "a token of the role user has one, one of a reader may have one, others have none"
            raise Denied("INVALID_REQUEST", f"body.user_id: {reason}")
        expires_at = new.expires_at.timestamp() if new.expires_at else None
        if expires_at is not None and expires_at <= tokens.clock():
            raise Denied("INVALID_REQUEST", "body.expires_at: is in the past")
        token, row = await tokens.make(role, label=new.label, user=user, expires_at=expires_at)
        return {**_shown(row, tokens.clock()), "token": token}

    @routes.get("/v1/tokens", **needs(Act.ADMINISTER, "MEMORY_NOT_AVAILABLE"))
    async def list_tokens() -> TokensShown:
        """All of them, revoked ones too."""
        return {"tokens": [_shown(row, tokens.clock()) for row in await tokens.records.tokens()]}

    @routes.delete("/v1/tokens/{token_id}", **needs(Act.ADMINISTER, "MEMORY_NOT_AVAILABLE", "NOT_FOUND"))
    async def revoke_token(token_id: str) -> Revoked:
        """One; it opens nothing from now on."""
        if not (revoked := await tokens.revoke(token_id=token_id)):
            raise Denied("NOT_FOUND", "no such token, or it is revoked already")
        return {"success": True, "revoked": revoked}

    @routes.delete("/v1/tokens", **needs(Act.ADMINISTER, "MEMORY_NOT_AVAILABLE", "MISSING_USER_ID"))
    async def revoke_tokens(user_id: UserId = None) -> Revoked:
        """All of a user's."""
        if not user_id:
            raise Denied("MISSING_USER_ID", "name the user whose tokens shall be revoked")
        return {"success": True, "revoked": await tokens.revoke(user=user_id)}

    return routes


def _shown(row: TokenRow, now: float) -> TokenShown:
    return as_shown(TokenShown, row, bound_to_user=bool(row.user_digest), good=row.is_good_at(now))
