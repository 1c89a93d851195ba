"""For whom an administrator switched memory off: a user, or a group that users are in; reading and storing apart.

Of a user nothing but a digest is known, so that a switch outlives the user's erasure without keeping a name. What is
known here is asked by every request and never waits: whoever reads the journal (semmem.background.in_process) puts
it here, and while the journal is away it stays as it was.
"""

from collections.abc import Iterable, Sequence

from semmem.ports.accounts import UNSAID, Switch, SwitchRow
from semmem.request.permission import EVERYTHING, Permission
from semmem.text.digest import digest

Groups = tuple[str, ...] | None
"""Names of the groups that a user is in; None where they are too many to be read."""


def user_key(user: str) -> str:
    """What a user's switches are known by."""
    return "u_" + digest("memory switches of the user", user)


def group_key(group: str) -> str:
    """What a group's switches are known by."""
    return "g_" + digest("memory switches of the group", group)


class Switches:
    """All that are set."""

    def __init__(self, rows: Iterable[SwitchRow] = ()) -> None:
        self._rows: dict[str, SwitchRow] = {}
        self.take(rows)

    def take(self, rows: Iterable[SwitchRow], *, whole: bool = False) -> None:
        """Know these, and beside them what was known; with ``whole`` these alone."""
        if whole:
            self._rows = {}
        for row in rows:
            if row.switch == UNSAID:
                self._rows.pop(row.key, None)
            else:
                self._rows[row.key] = row

    @property
    def number_set(self) -> int:
        """How many users and groups have one."""
        return len(self._rows)

    def of_user(self, user: str) -> Switch:
        return self._of(user_key(user))

    def of_group(self, group: str) -> Switch:
        return self._of(group_key(group))

    def groups(self) -> list[SwitchRow]:
        """Those of groups, by name."""
        return sorted((row for row in self._rows.values() if row.group), key=lambda row: row.group)

    def allowed(self, user: str, groups: Groups) -> Permission:
        """What the switches leave of a request's permission: the user's own word, else off where any group says so."""
        if not self._rows:
            return EVERYTHING
        own = self.of_user(user)
        known = [row.switch for row in self.groups()] if groups is None else [self.of_group(name) for name in groups]
        return Permission(
            read=_decided(own.reading, [each.reading for each in known]),
            store=_decided(own.storing, [each.storing for each in known]),
        )

    def _of(self, key: str) -> Switch:
        row = self._rows.get(key)
        return UNSAID if row is None else row.switch


def _decided(own: bool | None, groups: Sequence[bool | None]) -> bool:
    return own if own is not None else False not in groups
