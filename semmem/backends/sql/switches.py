"""Switches for reading and storing, of users and groups."""

from __future__ import annotations

from sqlalchemy import Connection, Row, and_, delete, func, or_, select

from semmem.backends.sql import locks
from semmem.backends.sql.database import SWITCHED
from semmem.backends.sql.part import JournalPart, one_read, quiet_write
from semmem.backends.sql.rows import put
from semmem.backends.sql.tables import memory_switches
from semmem.ports.switches import Switch, SwitchRow

UNSAID_KEPT_S = 86_400.0
"""So long a process that hears nothing finds that a switch is gone; it reads all of them more often than that."""

_SAID = or_(memory_switches.c.reading.is_not(None), memory_switches.c.storing.is_not(None))
_NUMBER = memory_switches.c.number


class SqlSwitches(JournalPart):
    """SwitchRecords."""

    @quiet_write
    def set_switch(
        self, conn: Connection, key: str, group: str, switch: Switch, *, now: float, entries_max: int
    ) -> bool:
        locks.alone_with(conn, locks.SWITCHES)
        others = select(func.count()).select_from(memory_switches).where(_SAID, memory_switches.c.key != key)
        if switch != Switch() and conn.execute(others).scalar_one() >= entries_max:
            return False
        number = (conn.execute(select(func.max(_NUMBER))).scalar() or 0) + 1
        values = {
            "key": key,
            "group_name": group,
            "reading": _number(switch.reading),
            "storing": _number(switch.storing),
            "number": number,
            "changed_at": now,
        }
        put(conn, memory_switches, values)
        old = and_(~_SAID, memory_switches.c.changed_at < now - UNSAID_KEPT_S, number > _NUMBER)
        conn.execute(delete(memory_switches).where(old))
        self._database.say(conn, SWITCHED)
        return True

    @one_read
    def switches_since(self, conn: Connection, number: int) -> list[SwitchRow]:
        found = conn.execute(select(memory_switches).where(number < _NUMBER).order_by(_NUMBER))
        return [_row(row) for row in found]


def _row(row: Row[tuple[object, ...]]) -> SwitchRow:
    switch = Switch(_said(row.reading), _said(row.storing))
    return SwitchRow(row.key, row.group_name, switch, row.number, row.changed_at)


def _number(said: bool | None) -> int | None:
    return None if said is None else int(said)


def _said(number: int | None) -> bool | None:
    return None if number is None else bool(number)
