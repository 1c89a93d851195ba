"""The route by which an administrator finds a user in the audit log, which names nobody.

Annotations are evaluated here (no __future__ import), because FastAPI reads those of nested functions.
"""

from typing import Any

from fastapi import APIRouter, Request

from semmem.management.access import Act, Denied
from semmem.management.api import May
from semmem.management.audit import Audit
from semmem.management.door import CALLER
from semmem.management.fields import UserId


def audit_routes(audit: Audit | None, _: May) -> APIRouter:
    """``audit`` None: there is no log."""
    routes = APIRouter()

    @routes.get("/v1/audit/name")
    async def get_audit_name(request: Request, user_id: UserId = None) -> dict[str, Any]:
        """What a user is called in the audit log."""
        request.scope[CALLER].must(Act.ADMINISTER)
        if not user_id:
            raise Denied(401, "MISSING_USER_ID", "name the user who is looked for")
        if audit is None:
            raise Denied(404, "NOT_FOUND", "no audit log is written (listeners.api.audit.to)")
        return {"user_id": user_id, "name": audit.name(user_id)}

    return routes
