"""A secret key in a file of its own, made once and readable by its owner alone."""

import errno
import os
import re
import secrets
import tempfile
from pathlib import Path

KEY_BYTES = 32
_KEY = re.compile(rb"[0-9a-f]{%d}\s*" % (2 * KEY_BYTES))


def read_or_make(path: Path) -> bytes:
    """The key in the file; a new random one where there is no file. Several processes may ask at the same time.
    Blocking. Raises OSError naming the file when it cannot be read or made, or holds no key."""
    try:
        return _read(path)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make(path)
        return _read(path)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_mode & 0o077:
            os.fchmod(file.fileno(), 0o600)
        text = file.read(4 * KEY_BYTES)
    if not _KEY.fullmatch(text):
        raise OSError(
            errno.EINVAL, f"holds no key of {2 * KEY_BYTES} hex digits; without it a new one is made", str(path)
        )
    return bytes.fromhex(text.decode())


def _make(path: Path) -> None:
    """A whole file under its name or none, and the first of several wins: a name is linked to what is on disk."""
    file, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mode 0600
    try:
        with os.fdopen(file, "wb") as opened:
            opened.write(secrets.token_hex(KEY_BYTES).encode() + b"\n")
            opened.flush()
            os.fsync(opened.fileno())
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(temporary)
