"""Reading the configuration again while semmem runs: all of what changed is taken up, or nothing."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Generic, TypeVar

from semmem.config import Problem, Settings, changed_keys, digest, restart_reasons
from semmem.management.engine_api import LastReload, Reload, ReloadState
from semmem.management.shown import as_shown, at
from semmem.ports.errors import SemmemError
from semmem.ports.events import Announce, ConfigReloaded
from semmem.retrieval.decide.trained import UnusableWeights

log = logging.getLogger(__name__)

APPLIED, REFUSED, UNCHANGED = "applied", "refused", "unchanged"
STOPPING = "semmem is stopping"

Read = Callable[[], tuple[Settings | None, Sequence[Problem]]]
"""The configuration as it is written now, and what is wrong with it. Blocking."""

Made = TypeVar("Made")


@dataclass(eq=False)
class Reloading(Generic[Made]):
    """``make`` makes of settings what serves by them, on another thread; ``put`` puts it in the place of the former
    one, without waiting and without failing. One reload at a time."""

    settings: Settings
    read: Read
    _: KW_ONLY
    announce: Announce
    clock: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        self._make: Callable[[Settings], Made] | None = None
        self._put: Callable[[Made], None] | None = None
        self._turn = asyncio.Lock()
        self._wanted = asyncio.Event()
        self._counts = Counter({APPLIED: 0, REFUSED: 0, UNCHANGED: 0})
        self._loaded_at = at(self.clock(), to="seconds")
        self._last: Reload | None = None

    def begin(self, make: Callable[[Settings], Made], put: Callable[[Made], None]) -> None:
        """From now on the configuration may change."""
        self._make, self._put = make, put

    def end(self) -> None:
        """From now on it stays as it is."""
        self._make = self._put = None

    def ask(self) -> None:
        """Have it read again soon. On the event loop; whoever asks while one runs gets one more."""
        self._wanted.set()

    async def run(self) -> None:
        """Do what was asked for, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            await self.reload()

    async def reload(self) -> Reload:
        """Read it again. Never raises but for cancellation."""
        async with self._turn:
            done = await self._reload()
            self._last = done
            self._counts[done.outcome] += 1
            self.announce(ConfigReloaded(done.outcome))
            _tell(done)
            return done

    def state(self) -> ReloadState:
        """As plain JSON values: when what is in effect was loaded, its digest, and what became of reloads."""
        return {
            "digest": digest(self.settings),
            "loaded_at": self._loaded_at,
            "reloads": dict(self._counts),
            "last": None if self._last is None else as_shown(LastReload, self._last),
        }

    async def _reload(self) -> Reload:
        settings, problems = await asyncio.to_thread(self.read)
        if problems or settings is None:
            return self._refused(map(str, problems))
        changed = changed_keys(self.settings, settings)
        if not changed:
            return self._ended(UNCHANGED)
        if fixed := [key for key in changed if restart_reasons()[key]]:
            return self._refused(f"{key}: needs a restart, since {restart_reasons()[key]}" for key in fixed)
        if self._make is None:
            return self._refused([STOPPING])
        try:
            made = await asyncio.to_thread(self._make, settings)
        except (OSError, SemmemError, UnusableWeights) as error:
            return self._refused([str(error)])
        except Exception as error:  # a mistake of ours: what serves goes on, and its text may say anything
            log.error("a reload failed: %s", type(error).__name__)
            return self._refused([type(error).__name__])
        if self._put is None:
            return self._refused([STOPPING])
        self._put(made)
        self.settings, self._loaded_at = settings, at(self.clock(), to="seconds")
        return self._ended(APPLIED, changed)

    def _refused(self, problems: Any) -> Reload:
        return Reload(REFUSED, at(self.clock(), to="seconds"), digest(self.settings), problems=tuple(problems))

    def _ended(self, outcome: str, changed: Sequence[str] = ()) -> Reload:
        return Reload(outcome, at(self.clock(), to="seconds"), digest(self.settings), tuple(changed))


def _tell(done: Reload) -> None:
    """Names of keys and redacted values alone."""
    if done.outcome == REFUSED:
        for problem in done.problems:
            log.error("the configuration is not taken up, the former one holds: %s", problem)
    elif done.outcome == APPLIED:
        log.info("the configuration %s is taken up: %s", done.digest, ", ".join(done.changed))
    else:
        log.info("the configuration was read again, nothing in it has changed")
