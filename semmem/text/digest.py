"""Names made of texts, the same on every replica and for every try."""

from __future__ import annotations

import struct
from base64 import b32encode
from hashlib import sha256

from semmem.text.remembered import Remembered

_length = struct.Struct(">Q").pack


def digest(*parts: str) -> str:
    """SHA-256 over length-prefixed parts (so that no two lists of parts collide), 32 hex digits."""
    try:
        encoded = [part.encode() for part in parts]
    except UnicodeEncodeError:
        encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    return sha256(b"".join([_length(len(data)) + data for data in encoded])).hexdigest()[:32]


known_digest = Remembered(digest, 8192)
"""``digest`` of what is likely to come again, in a seventh of the time; not for secrets."""


def stable_id(prefix: str, *lines: str) -> str:
    """The prefix and 26 base32 characters (130 of SHA-256's bits)."""
    return prefix + b32encode(sha256("\n".join(lines).encode()).digest()).decode().lower()[:26]
