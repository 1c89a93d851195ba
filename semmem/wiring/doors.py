"""Settings -> what the API's door lets in: callers and their tokens, what guards it and its routes."""

import time
from collections.abc import Callable
from functools import partial
from hashlib import blake2b

from semmem.config.listeners_section import JwtSection, RateLimitSection
from semmem.config.settings import Settings
from semmem.extraction.storing import Storing
from semmem.extraction.unlearning import Undoing
from semmem.lifecycle.holds import Holds
from semmem.management.access import AccessRules, RateLimits, RateRules, Tokens
from semmem.management.audit import Audit, AuditFile, in_order, to_stdout
from semmem.management.curation import Curation
from semmem.management.door import DoorRules
from semmem.management.web_tokens import VerifiedWebTokens, WebTokenRules, keys_at
from semmem.ports.events import Announce
from semmem.retrieval.fence import Fence
from semmem.upkeep.reflections import ReflectionRules, Reflector
from semmem.upkeep.summaries import Summariser, SummaryRules
from semmem.wiring.backends import Backends
from semmem.wiring.learning import dedup
from semmem.wiring.maintenance import consolidator


def access(settings: Settings, tokens: Tokens | None, web_tokens: VerifiedWebTokens | None) -> AccessRules:
    return settings.listeners.api.fill(
        AccessRules,
        settings.listeners.api.admin_token.get_secret_value(),
        user_chars_max=settings.identity.user_chars_max,
        tokens=tokens,
        web_tokens=web_tokens,
    )


def web_tokens(rules: JwtSection) -> VerifiedWebTokens | None:
    """None where no keys are configured."""
    return VerifiedWebTokens(keys_at(rules.keys), rules.fill(WebTokenRules)) if rules.keys else None


def door(settings: Settings) -> DoorRules:
    rules = settings.listeners.api
    return rules.fill(DoorRules, allowed_hosts=(rules.host, *rules.allowed_hosts))


def curation(settings: Settings, backends: Backends, announce: Announce, *, holds: Holds) -> Curation:
    """What the API does with versions, quarantine, duplicates and summaries."""
    model, chars_max = settings.external_model("memory_extraction"), settings.memory.write_screen.fact_chars_max
    timeout_s = model.llm_timeout_seconds if model is not None else 30.0
    writes = backends.store, backends.journal, backends.embedder, backends.models.get("memory_extraction")
    compared = dedup(settings, backends)
    return Curation(
        backends.store,
        backends.journal,
        compared,
        Undoing(backends.store, backends.journal, Storing(backends.embedder, compared)),
        consolidator(settings, backends),
        Summariser(*writes, SummaryRules(chars_max=chars_max, timeout_s=timeout_s)),
        Reflector(*writes, ReflectionRules(chars_max=chars_max, timeout_s=timeout_s)),
        clock=time.time,
        holds=holds,
        announce=announce,
    )


PURPOSE = b"semmem: names of users in the audit log"
NAME_BYTES = 16


def rate_limits(rules: RateLimitSection, announce: Announce) -> RateLimits:
    return RateLimits(rules.fill(RateRules), announce=announce)


def audit(settings: Settings, fence: Fence, announce: Announce) -> Audit | None:
    """None where nothing is to be written. Its names of users are the same on replicas that share the fence's key."""
    rules = settings.listeners.api.audit
    if not rules.to:
        return None
    append: Callable[[str], None] = to_stdout
    if (path := settings.audit_file) is not None:
        append = AuditFile(path, bytes_max=rules.file_bytes_max, files_max=rules.files_max)
    key = fence.derived(PURPOSE)
    name = partial(audit_name, key)
    return Audit(in_order(append), name, clock=time.time, reading=rules.reading, announce=announce)


def audit_name(key: bytes, user: str) -> str:
    """What a user is called in the audit log."""
    return blake2b(user.encode("utf-8", "surrogatepass"), key=key, digest_size=NAME_BYTES).hexdigest()
