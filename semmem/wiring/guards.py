"""Settings -> what guards users and the API: memory switches, rate limits, idempotency keys, the audit log."""

from __future__ import annotations

import time
from collections.abc import Callable
from hashlib import blake2b
from secrets import token_bytes

from semmem.background import RecordWatch
from semmem.config.settings import Settings
from semmem.management.audit import Audit, AuditFile, InOrder, to_stdout
from semmem.management.feedback_api import FeedbackDesk
from semmem.management.guards import Guards
from semmem.management.idempotency import Idempotency, IdempotencyRules
from semmem.management.rate_limits import RateLimits, RateRules
from semmem.management.switch_api import SwitchDesk
from semmem.ports.events import Announce
from semmem.ports.feedback import VoteRow
from semmem.ports.switches import SwitchRow
from semmem.request.switches import Switches
from semmem.retrieval.fence import Fence
from semmem.wiring.backends import Backends

PURPOSE = b"semmem: names of users in the audit log"
KEY_BYTES, NAME_BYTES = 32, 16


def guards(settings: Settings, backends: Backends, announce: Announce) -> Guards:
    """What stands between the API's door and its routes."""
    return Guards(
        limits=rate_limits(settings, announce),
        idempotency=idempotency(settings, backends),
        audit=audit(settings, backends.fence or Fence(token_bytes(KEY_BYTES)), announce),
    )


def rate_limits(settings: Settings, announce: Announce) -> RateLimits:
    return RateLimits(settings.listeners.api.rate_limit.fill(RateRules), announce=announce)


def idempotency(settings: Settings, backends: Backends) -> Idempotency:
    rules = settings.listeners.api.idempotency.fill(IdempotencyRules)
    return Idempotency(backends.journal, rules, clock=time.time)


def audit(settings: Settings, fence: Fence, announce: Announce) -> Audit | None:
    """None where nothing is to be written. Its names of users are the same on replicas that share the fence's key."""
    rules = settings.listeners.api.audit
    if not rules.to:
        return None
    append: Callable[[str], None] = to_stdout
    if (path := settings.audit_file) is not None:
        append = AuditFile(path, bytes_max=rules.file_bytes_max, files_max=rules.files_max)
    key = fence.derived(PURPOSE)
    return Audit(
        InOrder(append), lambda user: audit_name(key, user), clock=time.time, reading=rules.reading, announce=announce
    )


def audit_name(key: bytes, user: str) -> str:
    """What a user is called in the audit log."""
    return blake2b(user.encode("utf-8", "surrogatepass"), key=key, digest_size=NAME_BYTES).hexdigest()


def switch_watch(settings: Settings, backends: Backends, known: Switches) -> RecordWatch[SwitchRow]:
    """What keeps ``known`` as the journal has it."""
    refresh_s, what = settings.memory.switches.refresh_s, "for whom memory is switched off"
    return RecordWatch(backends.journal.switches_since, known, what=what, refresh_s=refresh_s)


def vote_watch(settings: Settings, backends: Backends) -> RecordWatch[VoteRow]:
    """What keeps the votes in process as the journal has them."""
    refresh_s, what = settings.memory.feedback.refresh_s, "what was said of memories"
    return RecordWatch(backends.journal.votes_since, backends.votes, what=what, refresh_s=refresh_s)


def feedback_desk(
    settings: Settings, backends: Backends, watch: RecordWatch[VoteRow], announce: Announce
) -> FeedbackDesk:
    """Where users say what helped."""
    return FeedbackDesk(
        backends.store,
        backends.journal,
        watch.refresh,
        entries_max=settings.memory.feedback.entries_max,
        clock=time.time,
        announce=announce,
    )


def desk(settings: Settings, backends: Backends, known: Switches, watch: RecordWatch[SwitchRow]) -> SwitchDesk:
    """Where an administrator sets switches."""
    entries_max = settings.memory.switches.entries_max
    return SwitchDesk(backends.journal, known, watch.refresh, entries_max=entries_max, clock=time.time)
