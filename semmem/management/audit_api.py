"""The route by which an administrator finds a user in the audit log, which names nobody."""

from fastapi import APIRouter, Request
from typing_extensions import TypedDict

from semmem.management.access import Act, Denied
from semmem.management.audit import Audit
from semmem.management.door import CALLER
from semmem.management.fields import UserId
from semmem.management.problems import refuses


class AuditName(TypedDict):
    """``name``: what stands in the log for the user."""

    user_id: str
    name: str


def audit_routes(audit: Audit | None) -> APIRouter:
    """``audit`` None: there is no log."""
    routes = APIRouter()

    @routes.get("/v1/audit/name", **refuses("FORBIDDEN", "MISSING_USER_ID", "NOT_FOUND"))
    async def get_audit_name(request: Request, user_id: UserId = None) -> AuditName:
        """What a user is called in the audit log."""
        request.scope[CALLER].must(Act.ADMINISTER)
        if not user_id:
            raise Denied(401, "MISSING_USER_ID", "name the user who is looked for")
        if audit is None:
            raise Denied(404, "NOT_FOUND", "no audit log is written (listeners.api.audit.to)")
        return {"user_id": user_id, "name": audit.name(user_id)}

    return routes
