"""Bounds on names that a client, a model server or an operator's caller gives.

A name ends up as a key of caches, in the journal and in the store, so none is kept as it comes: its UTF-8 bytes are
counted, and a name with a control character or a lone surrogate is no name. What then becomes of it depends on what it
names. A user is refused: nobody is safer than the wrong one. A conversation, a project or an agent goes on under a
digest, so that the same long name means the same thing in every request and on every replica."""

import hashlib
import unicodedata

NAME_BYTES_MAX = 1024
"""UTF-8 bytes: 256 characters of four bytes each, and what the store's columns hold. A constant, because ``bounded``
names depend on it: with another limit the same conversation would be another one."""

HASHED_PREFIX = "h_"


def fits(name: str, bytes_max: int = NAME_BYTES_MAX) -> bool:
    """Whether a name is Unicode text of at most so many bytes in UTF-8."""
    if len(name) > bytes_max:  # before it is encoded: the name may be as long as a body
        return False
    try:
        return len(name.encode()) <= bytes_max
    except UnicodeEncodeError:
        return False


def usable(name: str | None) -> str | None:
    """The name as it is; None for none, a too long one, and one with control characters or lone surrogates."""
    if not name or not fits(name):
        return None
    return name if name.isprintable() or all(unicodedata.category(each) != "Cc" for each in name) else None


def bounded(name: str | None) -> str | None:
    """The name as it is when it is usable, else ``h_`` and a digest that is always the same. None for none."""
    if not name or usable(name):
        return name or None
    return HASHED_PREFIX + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:40]
