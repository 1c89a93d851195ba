"""One name for a list of texts, the same on every replica."""

from __future__ import annotations

import hashlib


def digest(*parts: str) -> str:
    """SHA-256 over length-prefixed parts (so that no two lists of parts collide), 32 hex digits."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "big"))
        state.update(data)
    return state.hexdigest()[:32]
