"""What routes are declared with: the names and values that the API takes and where each of them ends, the act a call
needs, what it may be refused with, and whose memories it names.

In a body a number is a number and no text of one: what the description calls wrong is refused. A query is text anyway.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path, Query, Request
from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, Strict

from semmem.management.access import CALLER, TOUCHED, Act, user_for
from semmem.management.problems import PROBLEMS, TABLE, Denied
from semmem.memory import OWN_METADATA, PASSAGES, MemoryType, Scope
from semmem.ports.names import bounded, fits, usable
from semmem.ports.storable import depth_exceeds

USER_CHARS_MAX = 256
LIMIT_DEFAULT, LIMIT_MAX = 20, 1000
"""Memories in a page; more are not refused, and not given."""
TOPIC_CHARS_MAX = 64
"""More than any topic has that extraction keeps."""
TYPES_MAX = 10
"""Types in one call; there are fewer."""
Found = TypeVar("Found")
_USUAL_ID = re.compile(r"[A-Za-z0-9._:@/-]{1,256}")


def only(good: Callable[[str], object], reason: str) -> AfterValidator:
    """What a name must be, where there is one."""

    def check(name: str | None) -> str | None:
        if name is not None and not good(name):
            raise ValueError(reason)
        return name

    return AfterValidator(check)


def _scope_name(name: str | None) -> str | None:
    """As Envoy's door keeps it: an unusable name under its digest. Empty is not the same as absent."""
    return bounded(name) if name else name


def missing(memory_id: str) -> Denied:
    """Why there is nothing under this id: no such memory, or nothing that could be one."""
    if _USUAL_ID.fullmatch(memory_id):
        return Denied("NOT_FOUND", "no such memory")
    return Denied("INVALID_ID", "path.memory_id: is no id that semmem gives")


def existing(found: Found | None, otherwise: Denied) -> Found:
    """What was found. Raises Denied where that is nothing."""
    if found is None:
        raise otherwise
    return found


def _kinds(told: Any) -> Any:
    """``type=semantic,episodic`` is as good as ``type=semantic&type=episodic``."""
    if not isinstance(told, list):
        return told
    return [_kind(word) for one in told for word in (one.split(",") if isinstance(one, str) else [one])]


def _kind(told: Any) -> Any:
    return OTHER_WORDS.get(told, told) if isinstance(told, str) else told


def _memory_kind(kind: MemoryType) -> MemoryType:
    if kind in PASSAGES:
        raise ValueError("is no memory: what was said is kept by semmem alone")
    return kind


OTHER_WORDS = {"factual": "semantic"}
"""What other systems call a type."""


def _text(told: Any) -> Any:
    """A time is written out: seconds of what epoch, nobody can know."""
    if isinstance(told, str):
        return told
    raise ValueError("is no text")


def _whole(told: Any) -> Any:
    """JSON knows one kind of number: 5.0 is as whole as 5."""
    return int(told) if isinstance(told, float) and told.is_integer() else told


NO_CONTROLS = r"^[^\u0000-\u001f\u007f-\u009f]*$"

Switch = Annotated[bool, Strict()]
Count = Annotated[int, Strict(), BeforeValidator(_whole)]
Number = Annotated[float, Strict()]
"""In a body, as the two above."""
Moment = Annotated[AwareDatetime, BeforeValidator(_text)]
"""In a body; its offset is told."""
UNUSABLE = "is too long, or has control characters"
NewUser = Annotated[
    str | None,
    Field(max_length=USER_CHARS_MAX, json_schema_extra={"pattern": NO_CONTROLS}),
    only(lambda name: not name or usable(name), UNUSABLE),
]
"""A user in a body."""
UserId = Annotated[str | None, Query(max_length=USER_CHARS_MAX), only(fits, "is too long")]
"""A user in a query string, as stored by whatever version: what cannot be named cannot be listed, nor erased."""
ScopeName = Annotated[str | None, AfterValidator(_scope_name)]
"""A project, agent or session in a body."""
ProjectId = Annotated[str | None, Query(), AfterValidator(_scope_name)]
"""A project in a query string."""
SessionId = Annotated[str | None, Query(), AfterValidator(_scope_name)]
"""A session in a query string."""
Kind = Annotated[MemoryType, BeforeValidator(_kind), AfterValidator(_memory_kind)]
"""A type of memory in a body."""
Limit = Annotated[int, Query(ge=1, description=f"more than {LIMIT_MAX} are not refused, and not given")]
"""Of a page of memories."""
_Types = Annotated[list[MemoryType], Field(max_length=TYPES_MAX)]
Types = Annotated[
    _Types | None, BeforeValidator(_kinds), Query(alias="type", description="several also separated by commas")
]
"""Types in a query string."""
MemoryId = Annotated[str, Path(), only(fits, "is too long")]


class Body(BaseModel):
    """Of a call: a member that is not known is refused."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class MetadataLimits:
    """Levels of nesting, keys on all levels together, bytes as JSON in UTF-8."""

    depth_max: int = 8
    keys_max: int = 128
    bytes_max: int = 16_384


def metadata_problem(metadata: dict[str, Any], limits: MetadataLimits) -> str:
    """What is wrong with a caller's metadata, empty when nothing is. Never raises, however deep it is."""
    if taken := sorted(OWN_METADATA & metadata.keys()):
        return f"{', '.join(taken)}: only semmem itself writes this"
    if depth_exceeds(metadata, limits.depth_max):
        return f"is nested deeper than listeners.api.metadata_depth_max ({limits.depth_max} levels)"
    if sum(1 for _ in _keys(metadata)) > limits.keys_max:
        return f"has more keys than listeners.api.metadata_keys_max ({limits.keys_max})"
    try:
        size = len(json.dumps(metadata, allow_nan=False, ensure_ascii=False).encode())
    except ValueError:
        return "holds NaN, Infinity or half a character, which are no JSON"
    too_large = f"has {size} bytes, more than listeners.api.metadata_bytes_max ({limits.bytes_max})"
    return too_large if size > limits.bytes_max else ""


def _keys(value: Any) -> Iterator[str]:
    """Of nesting that was found shallow."""
    if isinstance(value, dict):
        yield from value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _keys(child)


# --- what routes are declared with ------------------------------------------------------------------------------------


def refuses(*codes: str) -> dict[str, Any]:
    """What a route's decorator is given: the codes it may answer with, beside those of EVERY_CALL and those of its
    parameters. Raises KeyError for a code that the table has not."""
    return {"openapi_extra": {TABLE: sorted({code for code in codes if PROBLEMS[code]})}}


def needs(act: Act, *codes: str) -> dict[str, Any]:
    """As ``refuses``, for a route that is only for callers whose role has the act, whatever they ask for."""

    async def allowed(request: Request) -> None:
        request.scope[CALLER].must(act)

    return {**refuses("FORBIDDEN", *codes), "dependencies": [Depends(allowed)]}


def may(request: Request, asked_for: str | None, act: Act, *, place: str = "query") -> str:
    """The user whose memories a call may touch in this way, given the one that it names in this place. Raises
    Denied."""
    user = user_for(request.scope[CALLER], asked_for, act, place)
    request.scope[TOUCHED].add(user)
    return user


def scope_in(body: Body, request: Request, act: Act) -> Scope:
    """The scope that a body names, of a user whom the caller may touch in this way. Raises Denied."""
    told = dict(body)
    user = may(request, told["user_id"], act, place="body")
    return Scope(user, told.get("project_id"), told.get("agent_id"), told.get("session_id"))


def one_or_everybody(request: Request, asked_for: str | None) -> str | None:
    """The user of whom figures are asked; None, everybody, for an operator who names nobody. Raises Denied."""
    caller = request.scope[CALLER]
    asked_for = None if caller.by_header else asked_for
    if caller.user is None and asked_for is None and Act.OPERATE in caller.role.acts:
        return None
    return may(request, asked_for, Act.READ)


async def _reader(request: Request, user_id: UserId = None, project_id: ProjectId = None) -> Scope:
    """A header that a proxy set beats the query; who only reads finds what is theirs."""
    asked_for = None if request.scope[CALLER].by_header else user_id
    return Scope(may(request, asked_for, Act.READ), project=project_id)


async def _owner(request: Request, user_id: UserId = None, project_id: ProjectId = None) -> Scope:
    return Scope(may(request, user_id, Act.WRITE), project=project_id)


Reader = Annotated[Scope, Depends(_reader)]
Owner = Annotated[Scope, Depends(_owner)]
"""The scope that the query of a call names, to be read or changed."""
