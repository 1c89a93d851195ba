"""What a running Envoy says of semmem on its admin page: filters, routes, cluster, and how much came by.

Read from ``/config_dump``, ``/clusters`` and ``/stats``, whatever the configuration came from (a file, xDS, a gateway's
controller): filters and routes are looked for everywhere in it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import httpx

Json = dict[str, Any]

TIMEOUT_S = 15.0


@dataclass(frozen=True, slots=True)
class Filter:
    """An ext_proc filter of semmem's. ``role``: ``observe`` where Envoy waits for no answer (``observability_mode``, by
    which semmem tells them apart too), else ``mutate``. ``enabled``: without any route's word."""

    name: str
    role: str
    cluster: str
    enabled: bool
    config: Json

    def has(self, *path: str) -> Any:
        """What the configuration says there; None: nothing."""
        found: Any = self.config
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found


class EnvoyAdmin:
    """Raises httpx.HTTPError where nobody answers, ValueError for an answer that is not Envoy's."""

    def __init__(self, url: str) -> None:
        self._url = url

    def state(self) -> str:
        """One word, LIVE where it serves."""
        answer = self._get("/server_info").json()
        if not isinstance(answer, dict) or "state" not in answer:
            raise ValueError("no state in it")
        return str(answer["state"])

    @cached_property
    def filters(self) -> list[Filter]:
        """Every ext_proc filter that names semmem, or whose cluster is one of those; each once. Others ask others."""
        found = {each.name: each for each in map(_filter, self._dicts) if each is not None}
        clusters = {each.cluster for each in found.values() if "semmem" in f"{each.name} {each.config}"}
        return [each for each in found.values() if each.cluster in clusters]

    def routes_with(self, name: str) -> tuple[list[str], list[str]]:
        """What routes match that switch the filter of this name on, and those that switch it off."""
        on, off = list[str](), list[str]()
        for entry in self._dicts:
            own = (entry.get("typed_per_filter_config") or {}).get(name)
            if isinstance(own, dict) and "match" in entry:
                (off if own.get("disabled") else on).append(_matched(entry["match"]))
        return list(dict.fromkeys(on)), list(dict.fromkeys(off))

    def hosts(self, cluster: str) -> list[tuple[str, bool]] | None:
        """Addresses, each with whether Envoy sends it anything. None: there is no such cluster."""
        told = self._get("/clusters", format="json").json()
        for status in told.get("cluster_statuses", ()):
            if status.get("name") == cluster:
                return [_host(each) for each in status.get("host_statuses", ())]
        return None

    def requests(self) -> int:
        """Requests that listeners of clients have had, whatever their path."""
        told = self._get("/stats", format="json", filter="downstream_rq_total$").json()
        return sum(
            int(each["value"])
            for each in told.get("stats", ())
            if "value" in each and each["name"].startswith("http.") and not each["name"].startswith("http.admin.")
        )

    @cached_property
    def _dicts(self) -> list[Json]:
        """Every object of the configuration. Without recursion: it may be deep."""
        found, left = list[Json](), [self._get("/config_dump").json()]
        while left:
            entry = left.pop()
            if isinstance(entry, dict):
                found.append(entry)
                left += reversed(entry.values())
            elif isinstance(entry, list):
                left += reversed(entry)
        return found

    def _get(self, path: str, **asked: str) -> httpx.Response:
        return httpx.get(self._url + path, params=asked, timeout=TIMEOUT_S, trust_env=False).raise_for_status()


def _filter(entry: Json) -> Filter | None:
    config = entry.get("typed_config")
    if not isinstance(config, dict) or not str(config.get("@type", "")).endswith(".ext_proc.v3.ExternalProcessor"):
        return None
    service = config.get("grpc_service") or {}
    cluster = (service.get("envoy_grpc") or {}).get("cluster_name", "")
    role = "observe" if config.get("observability_mode") else "mutate"
    return Filter(str(entry.get("name", "")), role, cluster, not entry.get("disabled", False), config)


def _matched(match: Any) -> str:
    if isinstance(match, dict):
        for kind, behind in (("path", ""), ("prefix", "*"), ("path_separated_prefix", "/*")):
            if kind in match:
                return f"{match[kind]}{behind}"
    return "a pattern"


def _host(told: Json) -> tuple[str, bool]:
    address = (told.get("address") or {}).get("socket_address") or {}
    health = told.get("health_status") or {}
    failed = any(health.get(flag) for flag in ("failed_active_health_check", "failed_outlier_check"))
    at = f"{address.get('address', '?')}:{address.get('port_value', '?')}"
    return at, not failed and health.get("eds_health_status", "HEALTHY") == "HEALTHY"
