"""What a request says of itself, read once: who asks, what is allowed, what earlier filters found."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct

from semmem.memory import Controls, Scope
from semmem.ports.names import usable
from semmem.request.head import RequestHead
from semmem.request.identity import IdentityRules, identify
from semmem.request.outcome import Outcome
from semmem.request.permission import Permission, PermissionRules, permission
from semmem.request.verdicts import NO_SOURCES, VerdictRules, Verdicts, verdicts


@dataclass(frozen=True, slots=True)
class AskerRules:
    """The operator's rules: whom to believe, what is allowed, where earlier filters leave their verdicts."""

    identity: IdentityRules
    permissions: PermissionRules
    verdicts: VerdictRules = NO_SOURCES


class Asker(Struct, frozen=True):
    """``scope`` None: nobody is known to be asking. ``request_id`` is empty where the head has no usable one."""

    scope: Scope | None
    allowed: Permission
    verdicts: Verdicts
    request_id: str

    @property
    def refusal(self) -> Outcome | None:
        """Why this request, whoever asks, has nothing to do with memory; None when it has."""
        if not (self.allowed.read or self.allowed.store):
            return Outcome.OPTED_OUT
        if self.verdicts.blocked:
            return Outcome.BLOCKED
        return Outcome.PII if self.verdicts.pii else None


def read_asker(rules: AskerRules, head: RequestHead, controls: Controls) -> Asker:
    """From the request's head, and from the controls in its body as far as the rules believe them."""
    return Asker(
        scope=identify(rules.identity, head, controls),
        allowed=permission(rules.permissions, head, controls),
        verdicts=verdicts(rules.verdicts, head),
        request_id=usable(head.header("x-request-id")) or "",
    )
