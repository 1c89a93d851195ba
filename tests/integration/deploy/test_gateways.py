"""How Envoy Gateway, Envoy AI Gateway and Istio ask semmem: the same two filters as deploy/envoy.yaml, in their order.

None of the three runs here. Their objects are held against their schemas and against envoy.yaml, which the end-to-end
tests run; what Istio would make of its EnvoyFilter is put together here and given to Envoy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.deploy.manifests import (
    DEPLOY,
    ENVOY,
    GATEWAYS,
    Json,
    Layout,
    layout,
    named,
    run,
    validate_others,
)

ENVOY_YAML = yaml.safe_load((DEPLOY / "envoy.yaml").read_text())
HCM = ENVOY_YAML["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
FILTERS = {each["name"]: each for each in HCM["http_filters"]}
ENVOY_GATEWAYS = GATEWAYS[:2]
BODY_BYTES_MAX = 16 * 1024**2


@pytest.mark.parametrize("name", GATEWAYS)
def test_a_gateways_objects_have_the_fields_of_their_schemas(name: str) -> None:
    validate_others(layout(name).of_others)


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("overlays/envoy-gateway", "shadowMode: true", "shadow: true"),
        ("overlays/envoy-gateway", "body: Streamed", "body: Buffered"),
        ("overlays/envoy-gateway", "bufferLimit: 16Mi", "bufferLimit: 16 MiB"),
        ("overlays/ai-gateway", "kind: AIGatewayRoute", "kind: AiGatewayRoute"),
        ("overlays/istio", "operation: INSERT_FIRST", "operation: FIRST"),
        ("overlays/istio", "forwardOriginalToken:", "forwardToken:"),
    ],
)
def test_a_broken_object_of_a_gateway_is_found(name: str, right: str, wrong: str) -> None:
    text = layout(name).text
    assert right in text
    broken = Layout(name, "", tuple(yaml.safe_load_all(text.replace(right, wrong))))
    with pytest.raises(AssertionError, match="refused"):
        validate_others(broken.of_others)


# --- Envoy Gateway ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ENVOY_GATEWAYS)
def test_what_policies_and_routes_name_is_there(name: str) -> None:
    shipped = layout(name)
    policies = [each for each in shipped.of_others if "targetRefs" in each["spec"]]
    assert {each["kind"] for each in policies} == {"ClientTrafficPolicy", "SecurityPolicy", "EnvoyExtensionPolicy"}
    for policy in policies:
        for target in policy["spec"]["targetRefs"]:
            assert target["name"] in named(shipped, target["kind"])
        assert policy["metadata"]["namespace"] == "semmem"
    services = named(shipped, "Service")
    assert {each["backendRefs"][0]["name"] for each in processors(shipped)} <= services


def processors(shipped: Layout) -> list[Json]:
    found: list[Json] = shipped.one("EnvoyExtensionPolicy")["spec"]["extProc"]
    return found


@pytest.mark.parametrize("name", ENVOY_GATEWAYS)
def test_envoy_gateway_asks_as_the_shipped_envoy_does(name: str) -> None:
    mutate, observe = processors(layout(name))
    ours, copy = (FILTERS[each]["typed_config"] for each in ("semmem.mutate", "semmem.observe"))
    assert mutate["processingMode"]["request"]["body"].upper() == ours["processing_mode"]["request_body_mode"]
    assert mutate["processingMode"]["request"]["attributes"] == ours["request_attributes"]
    assert mutate["processingMode"].keys() == {"allowModeOverride", "request"}, "nothing in an answer's way"
    assert mutate["messageTimeout"] == "500ms"
    assert ours["message_timeout"] == "0.5s"
    assert mutate["metadata"] == {
        "accessibleNamespaces": ours["metadata_options"]["forwarding_namespaces"]["untyped"],
        "writableNamespaces": ours["metadata_options"]["receiving_namespaces"]["untyped"],
    }
    assert "shadowMode" not in mutate
    assert observe["shadowMode"] is copy["observability_mode"] is True
    assert observe["processingMode"] == {"response": {"body": "Streamed"}}
    assert observe["metadata"]["accessibleNamespaces"] == copy["metadata_options"]["forwarding_namespaces"]["untyped"]
    assert mutate["failOpen"] is observe["failOpen"] is True


@pytest.mark.parametrize("name", ENVOY_GATEWAYS)
def test_long_conversations_fit_into_the_gateways_buffer(name: str) -> None:
    limits = {route.get("request_body_buffer_limit") for route in routes_of(HCM)} - {None}
    assert limits == {BODY_BYTES_MAX}
    assert layout(name).one("ClientTrafficPolicy")["spec"]["connection"]["bufferLimit"] == "16Mi"


def routes_of(manager: Json) -> list[Json]:
    return [route for host in manager["route_config"]["virtual_hosts"] for route in host["routes"]]


@pytest.mark.parametrize("name", ENVOY_GATEWAYS)
def test_the_header_that_names_a_user_comes_from_the_token_alone(name: str) -> None:
    shipped = layout(name)
    (provider,) = shipped.one("SecurityPolicy")["spec"]["jwt"]["providers"]
    set_here = [each["header"] for each in provider["claimToHeaders"]]
    removed = shipped.one("ClientTrafficPolicy")["spec"]["headers"]["earlyRequestHeaders"]["remove"]
    assert yaml.safe_load(shipped.environment()["SEMMEM_IDENTITY__TRUSTED_HEADERS"]) == set_here
    assert set(set_here) <= set(removed)
    assert set(removed) == stripped()
    assert "optional" not in shipped.one("SecurityPolicy")["spec"]["jwt"]


def stripped() -> set[str]:
    """The headers that deploy/envoy.yaml removes from clients' requests."""
    mutations = FILTERS["semmem.strip_identity"]["typed_config"]["mutations"]["request_mutations"]
    return {each["remove"] for each in mutations}


def test_ai_gateway_is_told_to_come_after_semmem() -> None:
    policy = layout("overlays/ai-gateway").one("EnvoyExtensionPolicy")
    assert policy["metadata"]["annotations"] == {"aigateway.envoyproxy.io/filter-order": "before-extproc"}
    assert [each["kind"] for each in policy["spec"]["targetRefs"]] == ["Gateway"], "its routes are found too late"


@pytest.mark.parametrize("name", GATEWAYS)
def test_only_the_gateways_envoy_reaches_ext_proc(name: str) -> None:
    policy = layout(name).one("NetworkPolicy")["spec"]
    (rule,) = [each for each in policy["ingress"] if each["ports"] == [{"port": 50051}]]
    (peer,) = rule["from"]
    assert peer["namespaceSelector"]["matchLabels"]
    assert peer["podSelector"]["matchLabels"]


@pytest.mark.parametrize("name", GATEWAYS)
def test_the_namespace_takes_restricted_pods_only(name: str) -> None:
    labels = layout(name).one("Namespace")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


# --- Istio -----------------------------------------------------------------------------------------------------------

ISTIO = "overlays/istio"
SEMMEM_THERE = "outbound|50051||semmem.semmem.svc.cluster.local"
JWT: Json = {
    "name": "envoy.filters.http.jwt_authn",
    "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication"},
}


def test_istios_filters_are_the_shipped_ones_in_their_order() -> None:
    names = [each["name"] for each in patched_filters()]
    assert names == [
        "semmem.strip_identity",
        JWT["name"],
        "semmem.mutate",
        "semmem.observe",
        "envoy.filters.http.router",
    ]
    for each in patched_filters():
        if each["name"] in FILTERS:
            assert each == there(FILTERS[each["name"]])


def there(ours: Json) -> Json:
    """A filter of envoy.yaml with the name that semmem's cluster has in Istio."""
    text = yaml.safe_dump(ours).replace("cluster_name: semmem\n", f"cluster_name: {SEMMEM_THERE}\n")
    found: Json = yaml.safe_load(text)
    return found


def patches(apply_to: str) -> list[Json]:
    return [each for each in layout(ISTIO).one("EnvoyFilter")["spec"]["configPatches"] if each["applyTo"] == apply_to]


def patched_filters() -> list[Json]:
    """What Istio makes of a gateway's filters: its own JWT filter and the router are there already."""
    filters = [JWT, FILTERS["envoy.filters.http.router"]]
    for each in patches("HTTP_FILTER"):
        at = {"INSERT_FIRST": 0, "INSERT_BEFORE": len(filters) - 1}[each["patch"]["operation"]]
        filters.insert(at, each["patch"]["value"])
    return filters


def test_istio_switches_semmem_on_where_the_shipped_envoy_does() -> None:
    (route,) = patches("HTTP_ROUTE")
    name = route["match"]["routeConfiguration"]["vhost"]["route"]["name"]
    (ours,) = [each for each in layout(ISTIO).one("VirtualService")["spec"]["http"] if each["name"] == name]
    shipped = [each for each in routes_of(HCM) if "typed_per_filter_config" in each]
    assert {each["uri"]["exact"] for each in ours["match"]} == {each["match"]["path"] for each in shipped}
    assert all(
        each["typed_per_filter_config"] == route["patch"]["value"]["typed_per_filter_config"] for each in shipped
    )
    (listener,) = patches("LISTENER")
    assert listener["patch"]["value"]["per_connection_buffer_limit_bytes"] == BODY_BYTES_MAX


def test_envoy_accepts_what_istio_makes_of_the_patches(tmp_path: Path) -> None:
    config = yaml.safe_load((DEPLOY / "envoy.yaml").read_text())
    listener = config["static_resources"]["listeners"][0]
    for each in patches("LISTENER"):
        listener |= each["patch"]["value"]
    manager: dict[str, Any] = listener["filter_chains"][0]["filters"][0]["typed_config"]
    manager["http_filters"] = patched_filters()
    for each in config["static_resources"]["clusters"]:
        if each["name"] == "semmem":
            each["name"] = each["load_assignment"]["cluster_name"] = SEMMEM_THERE
    file = tmp_path / "envoy.yaml"
    file.write_text(yaml.safe_dump(config))
    run(ENVOY, "--mode", "validate", "--disable-hot-restart", "-l", "error", "-c", file)


def test_istio_reaches_semmem_where_it_is() -> None:
    shipped = layout(ISTIO)
    (service,) = [each for each in shipped.all("Service") if each["metadata"]["name"] == "semmem"]
    host = f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc.cluster.local"
    ports = [each["port"] for each in service["spec"]["ports"] if each["name"].startswith("grpc")]
    assert [f"outbound|{port}||{host}" for port in ports] == [SEMMEM_THERE]
    assert shipped.one("DestinationRule")["spec"]["host"] == host


def test_istio_refuses_who_has_no_token_and_semmem_reads_the_claim_where_istio_puts_it() -> None:
    shipped = layout(ISTIO)
    assert yaml.safe_load(shipped.environment()["SEMMEM_IDENTITY__METADATA_CLAIM"]) == ["payload", "sub"]
    rules = shipped.one("AuthorizationPolicy")["spec"]
    assert (rules["action"], rules["rules"]) == ("DENY", [{"from": [{"source": {"notRequestPrincipals": ["*"]}}]}])
    selectors = {
        str(each["spec"]["selector"]["matchLabels"])
        for each in (shipped.one("RequestAuthentication"), shipped.one("AuthorizationPolicy"))
    }
    assert selectors == {str(shipped.one("EnvoyFilter")["spec"]["workloadSelector"]["labels"])}
