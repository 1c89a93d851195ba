"""Who does what takes long, beside the event loop."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Offload(Protocol):
    """Does work that would hold up the event loop beside it."""

    async def __call__(self, work: Callable[[], T], /) -> T: ...


class TextWork(Protocol):
    """Does what takes long with a text, beside everything else, and can be stopped."""

    async def run(self, work: Callable[..., T], *args: Any, budget_s: float) -> T:
        """What ``work(*args)`` returns; it is a pure function of a module, and all values can be pickled. Raises
        WorkTooSlow when it is not done after ``budget_s`` seconds of processor time, WorkLost, WorkUnavailable, and
        RuntimeError naming the type of what ``work`` raised."""
