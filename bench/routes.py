"""Envoy's configuration: the shipped one, with the filters of other sidecars beside semmem's and one route per case."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from bench.cases import CASE_HEADER, Case
from demo.envoy import derive
from demo.stack import HOME

OURS = ("semmem.mutate", "semmem.observe")

Config = dict[str, Any]


def envoy_config(
    cases: Sequence[Case], *, sidecars: Mapping[str, int], upstream_port: int, patience: float = 1.0
) -> Config:
    """``sidecars``: the port of each that the cases ask, by name; semmem's own among them."""
    shipped = yaml.safe_load((HOME / "deploy" / "envoy.yaml").read_text(encoding="utf-8"))
    config = derive(
        shipped,
        listener_port=0,
        admin_port=0,
        semmem_port=sidecars["semmem"],
        upstream=f"http://127.0.0.1:{upstream_port}",
        show_outcome=True,
    )
    resources = config["static_resources"]
    others = {name: port for name, port in sidecars.items() if name != "semmem"}
    semmems = next(cluster for cluster in resources["clusters"] if cluster["name"] == "semmem")
    resources["clusters"] += [_cluster(semmems, name, port) for name, port in others.items()]
    manager = resources["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    filters = manager["http_filters"]
    for entry in filters:
        if "message_timeout" in entry["typed_config"]:
            seconds = float(entry["typed_config"]["message_timeout"].removesuffix("s"))
            entry["typed_config"]["message_timeout"] = f"{seconds * patience:g}s"
    after = next(index for index, entry in enumerate(filters) if entry["name"] == OURS[-1]) + 1
    filters[after:after] = [*_filters(filters, others)]
    host = manager["route_config"]["virtual_hosts"][0]
    host["routes"] = [_route(host["routes"][0], case) for case in cases]
    return config


def _cluster(of_semmem: Config, name: str, port: int) -> Config:
    cluster = copy.deepcopy(of_semmem)
    cluster["name"] = name
    cluster["load_assignment"]["cluster_name"] = name
    endpoint = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]
    endpoint["address"]["socket_address"]["port_value"] = port
    return cluster


def _filters(shipped: Sequence[Config], names: Mapping[str, int]) -> Iterator[Config]:
    for name in names:
        for of_semmem in [entry for entry in shipped if entry["name"] in OURS]:
            entry = copy.deepcopy(of_semmem)
            entry["name"] = entry["name"].replace("semmem", name)
            entry["typed_config"]["stat_prefix"] = entry["typed_config"]["stat_prefix"].replace("semmem", name)
            entry["typed_config"]["grpc_service"]["envoy_grpc"]["cluster_name"] = name
            yield entry


def _route(shipped: Config, case: Case) -> Config:
    route = copy.deepcopy(shipped)
    route["match"]["headers"].append({"name": CASE_HEADER, "string_match": {"exact": case.name}})
    enabled = route.pop("typed_per_filter_config")["semmem.mutate"]
    if case.filters:
        route["typed_per_filter_config"] = dict.fromkeys(case.filters, enabled)
    return route
