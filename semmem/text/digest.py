"""One name for a list of texts, the same on every replica."""

from __future__ import annotations

import struct
from hashlib import sha256

_length = struct.Struct(">Q").pack


def digest(*parts: str) -> str:
    """SHA-256 over length-prefixed parts (so that no two lists of parts collide), 32 hex digits."""
    try:
        encoded = [part.encode() for part in parts]
    except UnicodeEncodeError:
        encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    return sha256(b"".join([_length(len(data)) + data for data in encoded])).hexdigest()[:32]
