"""A port that is taken is named, and others are proposed that are free."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator

import pytest

from demo.ports import HIGHEST, HOST, Ports
from demo.processes import Failed


@pytest.fixture
def listening() -> Iterator[int]:
    """A port on which somebody listens."""
    with socket.create_server((HOST, 0)) as server:
        yield server.getsockname()[1]


def test_zero_is_any_port() -> None:
    assert Ports.starting_at(0) == Ports(0, 0, 0)


@pytest.mark.parametrize(("before", "what"), [(0, "Envoy"), (1, "semmem's API"), (2, "health checks and metrics")])
def test_a_taken_port_is_named_with_what_it_is_for(listening: int, before: int, what: str) -> None:
    with pytest.raises(Failed, match=rf"port .*{listening} \({re.escape(what)}\)"):
        Ports.starting_at(listening - before)


def test_what_is_proposed_instead_of_a_taken_port_is_free(listening: int) -> None:
    with pytest.raises(Failed, match=r"make run PORT=\d+") as refused:
        Ports.starting_at(listening)

    proposed = re.search(r"PORT=(\d+)", str(refused.value))
    assert proposed is not None
    first = int(proposed[1])
    assert Ports.starting_at(first) == Ports(first, first + 1, first + 2)


def test_a_port_of_all_addresses_is_taken_on_loopback_too() -> None:
    with socket.create_server(("0.0.0.0", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(Failed, match=str(port)):
            Ports.starting_at(min(port, HIGHEST))
