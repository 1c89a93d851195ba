"""How often a caller may call: a token bucket for each caller, and one for each address whose credentials are refused.

A bucket holds ``burst`` calls and is filled again at a steady rate. Callers are those that the door knows, so one who
shares an address with many is not slowed by them. Addresses count only for credentials that were refused: looking one
up costs a read of the journal or a check of a signature, and an address that has failed too often is heard with those
credentials alone that were good before.
"""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from hashlib import blake2b

from cachetools import LRUCache

from semmem.management.access import Caller
from semmem.management.problems import RETRY_AFTER, Denied
from semmem.ports.events import Announce, ApiLimited, nobody_listens
from semmem.request.head import RequestHead


@dataclass(frozen=True, slots=True)
class RateRules:
    """``calls_per_s`` with ``burst`` at once, of each caller; ``failures_per_minute``, as many at once, of each
    address. 0: without a limit. ``callers_max``: so many are known at a time, about 200 bytes each; whoever called the
    longest time ago is forgotten, and begins with a full bucket."""

    calls_per_s: float = 0.0
    burst: int = 1000
    failures_per_minute: float = 0.0
    callers_max: int = 10_000


@dataclass(eq=False)
class Buckets:
    """One for each key. ``per_s`` 0: nobody is limited."""

    per_s: float
    burst: float
    keys_max: int
    clock: Callable[[], float]
    _left: OrderedDict[str, tuple[float, float]] = field(init=False, default_factory=OrderedDict)

    def __len__(self) -> int:
        return len(self._left)

    def wait_s(self, key: str) -> float:
        """In how many seconds something can be taken; 0: now."""
        if not self.per_s:
            return 0.0
        return max(0.0, (1.0 - self._filled(key)) / self.per_s)

    def take(self, key: str) -> float:
        """Take one, if there is one; else nothing, and in how many seconds there is."""
        wait_s = self.wait_s(key)
        if self.per_s and not wait_s:
            self._left[key] = self._filled(key) - 1.0, self.clock()
            self._left.move_to_end(key)
            if len(self._left) > self.keys_max:
                self._left.popitem(last=False)
        return wait_s

    def _filled(self, key: str) -> float:
        left, at = self._left.get(key, (self.burst, 0.0))
        return min(self.burst, left + (self.clock() - at) * self.per_s)


@dataclass(eq=False)
class RateLimits:
    """What the door asks before and after it knows who calls. Bounded, and of this process alone."""

    rules: RateRules = RateRules()
    _: KW_ONLY
    clock: Callable[[], float] = time.monotonic
    announce: Announce = nobody_listens

    def __post_init__(self) -> None:
        rules, per_minute = self.rules, self.rules.failures_per_minute
        self._calls = Buckets(rules.calls_per_s, rules.burst, rules.callers_max, self.clock)
        self._failures = Buckets(per_minute / 60.0, per_minute, rules.callers_max, self.clock)
        self._good: LRUCache[bytes, bool] = LRUCache(rules.callers_max)

    def before(self, address: str, head: RequestHead) -> None:
        """Before a credential is looked at. Raises Denied."""
        wait_s, credential = self._failures.wait_s(_network(address)), _credential(head)
        if wait_s and credential is not None and credential not in self._good:
            self._refuse("address", wait_s)

    def failed(self, address: str) -> None:
        """A credential from there was refused."""
        self._failures.take(_network(address))

    def known(self, caller: Caller, head: RequestHead) -> None:
        """Somebody calls whose credential is good. Raises Denied."""
        if (credential := _credential(head)) is not None:
            self._good[credential] = True
        if wait_s := self._calls.take(name_of(caller)):
            self._refuse("caller", wait_s)

    def anybody(self, address: str) -> None:
        """A call for which nobody needs to say who they are. Raises Denied."""
        if wait_s := self._calls.take(f"address {_network(address)}"):
            self._refuse("address", wait_s)

    def _refuse(self, who: str, wait_s: float) -> None:
        self.announce(ApiLimited(who))
        after = {RETRY_AFTER: str(max(1, math.ceil(wait_s)))}
        raise Denied("RATE_LIMITED", "too many calls; try again when Retry-After says", after)


def name_of(caller: Caller) -> str:
    """One name for each caller, that no other has: of a token, of a user however they were known, or a role."""
    if caller.token_id:
        return f"token {caller.token_id}"
    return f"{caller.role} {caller.user}" if caller.user is not None else f"{caller.role}"


def _credential(head: RequestHead) -> bytes | None:
    given = head.headers.get("authorization")
    return None if given is None else blake2b("\n".join(given).encode("utf-8", "replace"), digest_size=16).digest()


def _network(address: str) -> str:
    """An IPv6 network of 64 bits is one customer's."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(ipaddress.ip_network((found, 64), strict=False)) if found.version == 6 else address
