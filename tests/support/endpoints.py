"""More than one replica of semmem in Envoy's configuration."""

from __future__ import annotations

import copy
from typing import Any

Json = dict[str, Any]


def another_endpoint(config: Json, port: int) -> Json:
    """One more replica on this machine is added, in place; its endpoint, to be changed further."""
    semmem = next(each for each in config["static_resources"]["clusters"] if each["name"] == "semmem")
    endpoints = semmem["load_assignment"]["endpoints"][0]["lb_endpoints"]
    added = copy.deepcopy(endpoints[0])
    added["endpoint"]["address"]["socket_address"]["port_value"] = port
    endpoints.append(added)
    found: Json = added["endpoint"]
    return found
