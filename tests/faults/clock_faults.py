"""The wall clock jumps by a day, in the middle of an answer."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing

from tests.faults.counts import MEMORY, NotProven, proven
from tests.faults.forms import Form
from tests.faults.house import House, Trial
from tests.faults.upstream import Script

DAY_S = 86_400
LEARNT_WITHIN_S = 20.0
LONG = Script(tokens=40, token_ms=10)


def jumps(by_s: int) -> Callable[[House, Form], Trial]:
    """Two turns, before and after the jump, are answered, kept and learnt from while the clock is what it is now."""

    def run(house: House, form: Form) -> Trial:
        user = f"{house.user}-{secrets.token_hex(3)}"
        plain = house.ask(form, plain=True, script=LONG)
        ended, fired = house.turns("answered", times=2), house.outcome(*MEMORY, "no_hits", times=2)

        def jump(trial: str) -> None:
            house.half_answered(trial)
            house.sidecar.switch.write_text(f"clock {by_s}")

        try:
            faulted = house.ask(form, script=LONG, meanwhile=jump)
            told = house.ask(form, user=user, body=form.question("I like olives."))
            proof = f"{fired()}, {ended()}, {_off(house, user, by_s)}"
            learnt = proven(lambda: house.sidecar.semmem.contents(user), "what was told is learnt", LEARNT_WITHIN_S)
        finally:
            house.sidecar.switch.unlink(missing_ok=True)
        house.recovered()
        wrong = () if told.status == 200 else (f"status {told.status} after the jump",)
        return Trial(plain, faulted, f"{proof}, {learnt}", wrong)

    return run


def _off(house: House, user: str, by_s: int) -> str:
    """The jump reached semmem: it dates the turn so."""
    file = house.sidecar.data_dir / "journal.db"
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as journal:
        (opened_at,) = journal.execute("select opened_at from turns where user_id = ?", (user,)).fetchone()
    off = opened_at - time.time()
    if abs(off - by_s) > 60:
        raise NotProven(f"the turn is dated {off:.0f} s from now, not {by_s}")
    return f"turn dated {off / DAY_S:+.1f} days"
