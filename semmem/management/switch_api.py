"""Switches: whether memories are shown in prompts, and turns stored, for a user or a group; what an administrator does
with them, and the routes for it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Literal, Protocol

from fastapi import APIRouter, Path, Request
from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from semmem.management.access import Act, Denied
from semmem.management.door import CALLER
from semmem.management.fields import USER_CHARS_MAX, Body
from semmem.management.guards import TOUCHED
from semmem.management.problems import OF_ROLE, refuses
from semmem.management.shown import Time, at
from semmem.ports.names import usable
from semmem.ports.switches import Switch, SwitchRow
from semmem.request.switches import Switches, group_key, user_key

Word = Literal["on", "off"]

WORDS: dict[bool | None, Word | None] = {True: "on", False: "off", None: None}
SAID: dict[str | None, bool | None] = {word: said for said, word in WORDS.items()}


class SwitchRecords(Protocol):
    """All raise JournalError."""

    async def set_switch(self, key: str, group: str, switch: Switch, *, now: float, entries_max: int) -> bool:
        """From here on this holds; with UNSAID nothing does. False, and nothing is changed, when it would be one more
        than ``entries_max``. Processes that listen are told."""

    async def switches_since(self, number: int) -> Sequence[SwitchRow]:
        """Those with a greater number, in its order; for a day also those of which nothing is said any more."""


@dataclass(eq=False)
class SwitchDesk:
    """``known``: what requests obey; ``refresh`` brings it up to date. ``entries_max``: users and groups together.

    Raises JournalError.
    """

    records: SwitchRecords
    known: Switches
    refresh: Callable[[], Awaitable[None]]
    _: KW_ONLY
    entries_max: int
    clock: Callable[[], float]

    async def of_user(self, user: str) -> Switch:
        """As the journal has it now."""
        await self.refresh()
        return self.known.of_user(user)

    async def of_group(self, group: str) -> Switch:
        """As the journal has it now."""
        await self.refresh()
        return self.known.of_group(group)

    async def all_groups(self) -> list[SwitchRow]:
        """As the journal has them now, by name."""
        await self.refresh()
        return self.known.groups()

    async def set_user(self, user: str, switch: Switch) -> None:
        """Obeyed here from now on, elsewhere soon. Raises Denied where there are too many."""
        await self._set(user_key(user), "", switch)

    async def set_group(self, group: str, switch: Switch) -> None:
        """As ``set_user``."""
        await self._set(group_key(group), group, switch)

    async def _set(self, key: str, group: str, switch: Switch) -> None:
        limit = self.entries_max
        if not await self.records.set_switch(key, group, switch, now=self.clock(), entries_max=limit):
            raise Denied(409, "TOO_MANY_SWITCHES", f"there are {limit} switches (memory.switches.entries_max)")
        await self.refresh()


class SwitchesShown(TypedDict):
    """On, off, or null for what is not said."""

    reading: Literal["on", "off"] | None
    storing: Literal["on", "off"] | None


def words(switch: Switch) -> SwitchesShown:
    """As the API shows it: on, off, or null for what is not said."""
    return {"reading": WORDS[switch.reading], "storing": WORDS[switch.storing]}


def _usable(name: str) -> str:
    if not usable(name):
        raise ValueError("is too long, or has control characters")
    return name


Name = Annotated[str, Path(max_length=USER_CHARS_MAX), AfterValidator(_usable)]


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

    @routes.get("/v1/users/{user_id:path}/memory-switches", **refuses(*OF_ROLE, "NOT_FOUND"))
    async def get_user_switches(request: Request, user_id: Name) -> UserSwitches:
        """What is said of a user."""
        request.scope[CALLER].must(Act.ADMINISTER)
        request.scope[TOUCHED].add(user_id)
        return {"user_id": user_id, **words(await desk.of_user(user_id))}

    @routes.put("/v1/users/{user_id:path}/memory-switches", **refuses(*OF_ROLE, "NOT_FOUND", "TOO_MANY_SWITCHES"))
    async def set_user_switches(request: Request, user_id: Name, new: NewSwitches) -> UserSwitches:
        """Beats what is said of the user's groups. Other replicas obey within seconds."""
        request.scope[CALLER].must(Act.ADMINISTER)
        request.scope[TOUCHED].add(user_id)
        await desk.set_user(user_id, new.switch())
        return {"user_id": user_id, **words(new.switch())}

    @routes.get("/v1/groups/{group_id:path}/memory-switches", **refuses(*OF_ROLE, "NOT_FOUND"))
    async def get_group_switches(request: Request, group_id: Name) -> GroupSwitches:
        """What is said of a group."""
        request.scope[CALLER].must(Act.ADMINISTER)
        return {"group_id": group_id, **words(await desk.of_group(group_id))}

    @routes.put("/v1/groups/{group_id:path}/memory-switches", **refuses(*OF_ROLE, "NOT_FOUND", "TOO_MANY_SWITCHES"))
    async def set_group_switches(request: Request, group_id: Name, new: NewSwitches) -> GroupSwitches:
        """Of several groups of a user's one that says off wins. Other replicas obey within seconds."""
        request.scope[CALLER].must(Act.ADMINISTER)
        await desk.set_group(group_id, new.switch())
        return {"group_id": group_id, **words(new.switch())}

    @routes.get("/v1/memory-switches", **refuses(*OF_ROLE))
    async def list_switches(request: Request) -> SwitchesListed:
        """Every group that has some, by name. Of users only how many have: their names are not kept here."""
        request.scope[CALLER].must(Act.ADMINISTER)
        rows = await desk.all_groups()
        shown: list[ListedGroup] = [
            {"group_id": row.group, **words(row.switch), "changed_at": at(row.changed_at)} for row in rows
        ]
        return {"groups": shown, "users": desk.known.number_set - len(rows)}

    return routes
