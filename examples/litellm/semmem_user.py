"""Who is asking, from LiteLLM to semmem: the user of the key, in one header that Envoy's side trusts."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

from fastapi import Request
from litellm.integrations.custom_logger import CustomLogger
from litellm.proxy._types import ProxyException, UserAPIKeyAuth

HEADER = "x-litellm-user"
"""In ``identity.trusted_headers`` of semmem's configuration."""
SESSION_HEADERS = ("x-session-id", "x-conversation-id")
MEMORY_HEADERS = (*SESSION_HEADERS, "x-project-id", "x-semmem-memory")
"""What a client may say about its own conversation, passed on as it came."""
NAMED_BY_CLIENTS = ("extra_headers", "headers", "provider_specific_header")
"""Members of a body by which a client would set headers of its own."""
KEYS: dict[str, str] = json.loads(Path(os.environ["KEYS_FILE"]).read_text(encoding="utf-8"))
"""{"key": "user"}, read once."""


async def user_of_key(request: Request, api_key: str) -> UserAPIKeyAuth:
    """The user whose key this is, by the file KEYS_FILE. With LiteLLM's own keys this is not needed: each has a
    ``user_id`` there. Raises for a key that nobody has."""
    for known, user in KEYS.items():
        if secrets.compare_digest(known.encode(), api_key.encode()):
            return UserAPIKeyAuth(api_key=api_key, user_id=user)
    raise ProxyException("nobody has this key", type="auth_error", param="key", code=401)


class NamesTheUser(CustomLogger):
    """Before each call: the user's header is set from the key, and nothing that a client named stands beside it."""

    async def async_pre_call_hook(
        self, user_api_key_dict: UserAPIKeyAuth, cache: Any, data: dict[str, Any], call_type: str
    ) -> dict[str, Any]:
        sent = (data.get("proxy_server_request") or {}).get("headers") or {}
        asked = {name.lower(): value for name, value in sent.items()}
        for member in NAMED_BY_CLIENTS:
            data.pop(member, None)
        passed = {name: asked[name] for name in MEMORY_HEADERS if name in asked}
        named = {HEADER: user_api_key_dict.user_id} if user_api_key_dict.user_id else {}
        return {**data, "extra_headers": {**passed, **named}}


names_the_user = NamesTheUser()
