"""The ports of a run: the same every time, so that printed commands go on working, and refused early when taken."""

from __future__ import annotations

import errno
import socket
from dataclasses import astuple, dataclass

from demo.processes import Failed

DEFAULT = 18750
"""Envoy's in ``make run``: assigned to nobody by IANA, and below the ports that Linux gives to clients."""
HIGHEST = 65533
HOST = "127.0.0.1"
_STEP = 10


@dataclass(frozen=True, slots=True)
class Ports:
    """What a person at the terminal talks to; 0 lets the system choose. All else is always left to the system."""

    envoy: int = 0
    api: int = 0
    health: int = 0

    @classmethod
    def starting_at(cls, first: int) -> Ports:
        """Three in a row; 0 for any free ones. Raises Failed when one of them is taken."""
        if first == 0:
            return cls()
        ports = cls(first, first + 1, first + 2)
        names = ("Envoy", "semmem's API", "health checks and metrics")
        taken = [f"{port} ({name})" for port, name in zip(astuple(ports), names, strict=True) if not _is_free(port)]
        if taken:
            raise Failed(
                f"another program listens on port {', '.join(taken)}. End that program, or choose other ports:"
                f" make run PORT={_free_after(first)} (it takes three in a row, for {', '.join(names)})"
            )
        return ports


def _free_after(first: int) -> int:
    """The first of three free ports in a row."""
    higher = range(first + _STEP, HIGHEST + 1, _STEP)
    return next((start for start in higher if all(_is_free(start + i) for i in range(3))), 0)


def _is_free(port: int) -> bool:
    try:
        socket.create_server((HOST, port)).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return False
        raise Failed(f"cannot listen on port {port}: {error.strerror}. Choose others: make run PORT=...") from error
    return True
