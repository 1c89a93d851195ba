"""Ports that somebody comes back to."""

from __future__ import annotations

import os
import random
import socket
from collections import deque

FIRST, EACH, WORKERS = 10_000, 1_000, 20
"""Below the ports that the system gives to clients, so that they are still free after a restart; each of several test
processes has so many of its own."""


_given: deque[int] = deque(maxlen=EACH // 2)
"""What was chosen lately: nobody may listen there yet."""


def free_port() -> int:
    """A port that nobody listens on, and no other worker of this test run will choose."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % WORKERS
    first = FIRST + worker * EACH
    free = [port for port in range(first, first + EACH) if port not in _given]
    for port in random.sample(free, 200):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            _given.append(port)
            return port
    raise AssertionError("no free port")
