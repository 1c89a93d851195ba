"""What an administrator does with switches: reading and storing, on or off, for a user or a group."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

from typing_extensions import TypedDict

from semmem.management.access import Denied
from semmem.ports.switches import Switch, SwitchRecords, SwitchRow
from semmem.request.switches import Switches, group_key, user_key

Word = Literal["on", "off"]

WORDS: dict[bool | None, Word | None] = {True: "on", False: "off", None: None}
SAID: dict[str | None, bool | None] = {word: said for said, word in WORDS.items()}


class SwitchDesk:
    """``known``: what requests obey; ``refresh`` brings it up to date. ``entries_max``: users and groups together.

    Raises JournalError.
    """

    def __init__(
        self,
        records: SwitchRecords,
        known: Switches,
        refresh: Callable[[], Awaitable[None]],
        *,
        entries_max: int,
        clock: Callable[[], float],
    ) -> None:
        self._records = records
        self._refresh = refresh
        self._entries_max = entries_max
        self._clock = clock
        self.known = known

    async def of_user(self, user: str) -> Switch:
        """As the journal has it now."""
        await self._refresh()
        return self.known.of_user(user)

    async def of_group(self, group: str) -> Switch:
        """As the journal has it now."""
        await self._refresh()
        return self.known.of_group(group)

    async def all_groups(self) -> list[SwitchRow]:
        """As the journal has them now, by name."""
        await self._refresh()
        return self.known.groups()

    async def set_user(self, user: str, switch: Switch) -> None:
        """Obeyed here from now on, elsewhere soon. Raises Denied where there are too many."""
        await self._set(user_key(user), "", switch)

    async def set_group(self, group: str, switch: Switch) -> None:
        """As ``set_user``."""
        await self._set(group_key(group), group, switch)

    async def _set(self, key: str, group: str, switch: Switch) -> None:
        limit = self._entries_max
        if not await self._records.set_switch(key, group, switch, now=self._clock(), entries_max=limit):
            raise Denied(409, "TOO_MANY_SWITCHES", f"there are {limit} switches (memory.switches.entries_max)")
        await self._refresh()


class SwitchesShown(TypedDict):
    """On, off, or null for what is not said."""

    reading: Literal["on", "off"] | None
    storing: Literal["on", "off"] | None


def words(switch: Switch) -> SwitchesShown:
    """As the API shows it: on, off, or null for what is not said."""
    return {"reading": WORDS[switch.reading], "storing": WORDS[switch.storing]}
