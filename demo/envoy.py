"""A runnable Envoy configuration derived from the shipped one: other addresses, and a stand-in for authentication."""

from __future__ import annotations

import copy
import re
import ssl
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import SplitResult, urlsplit

DEMO_TOKEN_PREFIX = "demo-"
DEMO_USER = re.compile(r"[A-Za-z0-9._@-]{1,64}")
"""Names the stand-in for authentication accepts; Lua's ``[%w._@-]`` in DEMO_AUTHENTICATION says the same."""

DEMO_AUTHENTICATION = """
-- DEMO ONLY: anybody may call himself anything. It stands where a real deployment has jwt_authn or ext_authz, and
-- leaves what jwt_authn would leave: the claims of the caller in dynamic metadata, where no client can write.
function envoy_on_request(handle)
  local user = string.match(handle:headers():get("authorization") or "", "^Bearer demo%-([%w._@-]+)$")
  if user then
    handle:streamInfo():dynamicMetadata():set("envoy.filters.http.jwt_authn", "jwt_payload", {sub = user})
  end
end
"""

_TYPES = "type.googleapis.com/envoy"
_HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"


def derive(
    config: Mapping[str, Any],
    *,
    listener_port: int,
    admin_port: int,
    semmem_port: int,
    upstream: str,
    upstream_key_variable: str | None = None,
    show_outcome: bool = False,
) -> dict[str, Any]:
    """The configuration (``deploy/envoy.yaml``, loaded) with its addresses replaced and demo authentication added.

    Ports are on 127.0.0.1; 0 lets Envoy choose. ``upstream`` is the model's base URL, with or without ``/v1`` at its
    end; https is verified against the system's certificate authorities. The demo token never reaches an upstream
    whose key is in the environment variable ``upstream_key_variable``: Envoy itself puts the key in its place, so that
    it is in no file. ``show_outcome`` switches the opt-in response header ``x-semmem-outcome`` on.
    Raises ValueError when ``upstream`` is not an http(s) URL.
    """
    derived: dict[str, Any] = copy.deepcopy(dict(config))
    resources = derived["static_resources"]
    _set_port(derived["admin"]["address"], admin_port)
    _set_port(resources["listeners"][0]["address"], listener_port)
    clusters = {cluster["name"]: cluster for cluster in resources["clusters"]}
    _set_port(_endpoint(clusters["semmem"])["address"], semmem_port)
    manager = resources["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    _add_demo_authentication(manager["http_filters"])
    if show_outcome:
        _filter(manager["http_filters"], "semmem.show_outcome")["disabled"] = False
    url = _upstream_url(upstream)
    _point_at(clusters["llm"], url)
    for route in manager["route_config"]["virtual_hosts"][0]["routes"]:
        _route_to(route, url, upstream_key_variable)
    return derived


def _set_port(address: dict[str, Any], port: int) -> None:
    address["socket_address"].update(address="127.0.0.1", port_value=port)


def _endpoint(cluster: dict[str, Any]) -> dict[str, Any]:
    endpoint: dict[str, Any] = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]
    return endpoint


def _filter(filters: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(entry for entry in filters if entry["name"] == name)


def _add_demo_authentication(filters: list[dict[str, Any]]) -> None:
    stand_in = {
        "name": "demo.authentication",
        "typed_config": {
            "@type": f"{_TYPES}.extensions.filters.http.lua.v3.Lua",
            "default_source_code": {"inline_string": DEMO_AUTHENTICATION},
        },
    }
    filters.insert(filters.index(_filter(filters, "semmem.strip_identity")) + 1, stand_in)


def _upstream_url(upstream: str) -> SplitResult:
    url = urlsplit(upstream)
    if url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment or url.username:
        raise ValueError(f"an upstream is http://host[:port][/path] or https://..., not {upstream!r}")
    return url._replace(path=url.path.rstrip("/").removesuffix("/v1"))


def _is_name(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return True
    return False


def _point_at(cluster: dict[str, Any], url: SplitResult) -> None:
    host = url.hostname or ""
    _endpoint(cluster)["address"]["socket_address"].update(
        address=host, port_value=url.port or (443 if url.scheme == "https" else 80)
    )
    if _is_name(host):
        cluster["type"] = "LOGICAL_DNS"
        cluster["dns_lookup_family"] = "V4_PREFERRED"
    if url.scheme == "https":
        cluster["transport_socket"] = _tls(host)


def _tls(host: str) -> dict[str, Any]:
    """TLS that checks the name as well as the chain: Envoy checks neither unless told to."""
    kind = "IP_ADDRESS" if not _is_name(host) else "DNS"
    bundle = ssl.get_default_verify_paths()
    validation = {
        "trusted_ca": {"filename": bundle.cafile or "/etc/ssl/certs/ca-certificates.crt"},
        "match_typed_subject_alt_names": [{"san_type": kind, "matcher": {"exact": host}}],
    }
    context: dict[str, Any] = {
        "@type": f"{_TYPES}.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        "common_tls_context": {"validation_context": validation},
    }
    if kind == "DNS":
        context["sni"] = host
    return {"name": "envoy.transport_sockets.tls", "typed_config": context}


def _route_to(route: dict[str, Any], url: SplitResult, key_variable: str | None) -> None:
    """What a hosted upstream needs of a route: its own host name, its path in front, its own key."""
    action = route["route"] = dict(route["route"])
    if url.path:
        match = route["match"]
        action["prefix_rewrite"] = url.path + (match.get("path") or match["prefix"])
    if _is_name(url.hostname or ""):
        action["auto_host_rewrite"] = True
    if key_variable:
        header = {"key": "authorization", "value": f"Bearer %ENVIRONMENT({key_variable})%"}
        route["request_headers_to_add"] = [{"header": header, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}]
