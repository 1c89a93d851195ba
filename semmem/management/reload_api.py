"""The route by which an operator has the configuration read again."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fastapi import APIRouter, Request
from typing_extensions import TypedDict

from semmem.management.access import Act, Denied
from semmem.management.door import CALLER
from semmem.management.problems import refuses
from semmem.management.shown import Time

PROBLEMS_MAX = 5
"""Named in a refusal; `GET /v1/config` has all of them."""


@dataclass(frozen=True, slots=True)
class Reload:
    """How one reading of the configuration ended: ``applied``, ``unchanged``, or ``refused`` with every problem.

    ``changed``: the keys that now have another value. ``digest``: of the configuration that is in effect after it.
    """

    outcome: str
    at: str
    digest: str
    changed: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class ReloadShown(TypedDict):
    """A reading that was not refused. ``digest``: of the configuration in effect after it."""

    outcome: str
    at: Time
    digest: str
    changed: list[str]


class LastReload(TypedDict):
    """The last reading, refused ones among them, with every problem."""

    at: Time
    outcome: str
    changed: list[str]
    problems: list[str]


class ReloadState(TypedDict):
    """When what is in effect was loaded, its digest, and what became of readings; null where there was none."""

    digest: str
    loaded_at: Time
    reloads: dict[str, int]
    last: LastReload | None


def reload_routes(reload: Callable[[], Awaitable[Reload]]) -> APIRouter:
    """``reload`` reads the configuration again, and takes up all of what changed or nothing."""
    routes = APIRouter()

    @routes.post("/v1/config/reload", **refuses("FORBIDDEN", "CONFIG_REFUSED"))
    async def reload_configuration(request: Request) -> ReloadShown:
        """Read the file and the environment again. Without a word in between, requests go on."""
        request.scope[CALLER].must(Act.OPERATE)
        done = await reload()
        if done.outcome == "refused":
            first, more = done.problems[:PROBLEMS_MAX], len(done.problems) - PROBLEMS_MAX
            told = [*first, f"{more} more"] if more > 0 else [*first]
            raise Denied(409, "CONFIG_REFUSED", f"nothing was changed: {'; '.join(told)}")
        return {"outcome": done.outcome, "at": done.at, "digest": done.digest, "changed": [*done.changed]}

    return routes
