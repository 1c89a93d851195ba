"""What a request says of itself, read once: who asks, what is allowed, what earlier filters found."""

from dataclasses import dataclass, field

from msgspec import Struct

from semmem.memory import Controls, Scope
from semmem.ports.names import usable
from semmem.request.head import RequestHead
from semmem.request.identity import IdentityRules, groups_of, identify
from semmem.request.outcome import Outcome
from semmem.request.permission import Permission, PermissionRules, Switched, permission, switched_off
from semmem.request.switches import Switches
from semmem.request.verdicts import NO_SOURCES, VerdictRules, Verdicts, verdicts


@dataclass(frozen=True, slots=True)
class AskerRules:
    """The operator's rules: whom to believe, what is allowed, where earlier filters leave their verdicts, and for whom
    an administrator switched memory off."""

    identity: IdentityRules
    permissions: PermissionRules
    verdicts: VerdictRules = NO_SOURCES
    switches: Switches = field(default_factory=Switches)


class Asker(Struct, frozen=True):
    """``scope`` None: nobody is known to be asking. ``request_id`` is empty where the head has no usable one.
    ``switched``: what an administrator's switch took away that was allowed otherwise."""

    scope: Scope | None
    allowed: Permission
    verdicts: Verdicts
    request_id: str
    switched: Switched = Switched.NOTHING

    @property
    def refusal(self) -> Outcome | None:
        """Why this request, whoever asks, has nothing to do with memory; None when it has."""
        if not (self.allowed.read or self.allowed.store):
            return Outcome.SWITCHED_OFF if self.switched else Outcome.OPTED_OUT
        if self.verdicts.blocked:
            return Outcome.BLOCKED
        return Outcome.PII if self.verdicts.pii else None


def read_asker(rules: AskerRules, head: RequestHead, controls: Controls) -> Asker:
    """From the request's head, and from the controls in its body as far as the rules believe them."""
    scope, asked = identify(rules.identity, head, controls), permission(rules.permissions, head, controls)
    allowed = asked
    if scope is not None and rules.switches.number_set:
        allowed = asked & rules.switches.allowed(scope.user, groups_of(rules.identity, head))
    return Asker(
        scope=scope,
        allowed=allowed,
        verdicts=verdicts(rules.verdicts, head),
        request_id=usable(head.header("x-request-id")) or "",
        switched=Switched.NOTHING if allowed == asked else switched_off(asked, allowed),
    )
