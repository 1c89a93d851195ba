"""deploy/ as it ships: the tools of its readers accept it, and it keeps what the architecture promises."""

from __future__ import annotations

import os
import re
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
import yaml

from semmem import __version__
from semmem.cli import main as semmem
from tests.integration.deploy.manifests import (
    DEPLOY,
    ENVOY,
    LAYOUTS,
    SERVED,
    SIDECAR,
    TOOLS,
    Json,
    Layout,
    layout,
    run,
    validate_objects,
)

DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
KUBERNETES = ("1.30", "1.37")
ENVOY_SECONDS = 1
"""What Envoy itself takes to leave on SIGTERM, at most."""


@pytest.fixture(params=LAYOUTS)
def shipped(request: pytest.FixtureRequest) -> Layout:
    return layout(request.param)


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def is_loopback(address: str) -> bool:
    return address.startswith("127.")


# --- the readers' own tools ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", KUBERNETES)
def test_kubernetes_knows_every_field(shipped: Layout, version: str) -> None:
    validate_objects(shipped.of_kubernetes, version)


@pytest.mark.parametrize(("right", "wrong"), [("runAsNonRoot", "runAsNoRoot"), ("StatefulSet", "StatefullSet")])
def test_a_field_or_a_kind_that_kubernetes_does_not_know_is_found(right: str, wrong: str) -> None:
    objects = list(yaml.safe_load_all(layout("base").text.replace(right, wrong)))
    with pytest.raises(AssertionError, match=wrong):
        validate_objects(objects, KUBERNETES[-1])


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    run(TOOLS / "hadolint", "--no-color", DEPLOY / "Dockerfile")


def semmem_check(file: Path, environment: dict[str, str]) -> None:
    """``semmem check --elsewhere`` in this process; AssertionError with all that it said when it does not accept."""
    told = StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(told), redirect_stderr(told):
        for name in [each for each in os.environ if each.startswith("SEMMEM_")]:
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        status = semmem(["check", "--elsewhere", str(file)])
    assert status == 0, told.getvalue()


def test_semmem_accepts_its_configuration_with_the_environment_of_its_container(
    shipped: Layout, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(shipped.file("config.yaml"))
    semmem_check(config, shipped.environment())


def test_semmem_accepts_the_configuration_inside_the_image() -> None:
    semmem_check(DEPLOY / "config.yaml", {})


@pytest.mark.parametrize("name", ["envoy.yaml", "k8s/overlays/sidecar/envoy.yaml"])
def test_envoy_accepts_its_configuration(name: str) -> None:
    run(ENVOY, "--mode", "validate", "--disable-hot-restart", "-l", "error", "-c", DEPLOY / name)


# --- Envoy -----------------------------------------------------------------------------------------------------------


def test_the_sidecars_envoy_differs_from_the_shipped_one_in_three_addresses() -> None:
    sidecar = layout(SIDECAR)
    expected, ours = (
        yaml.safe_load(text) for text in ((DEPLOY / "envoy.yaml").read_text(), sidecar.file("envoy.yaml"))
    )
    resources = expected["static_resources"]
    resources["listeners"][0]["address"]["socket_address"]["address"] = "0.0.0.0"
    clusters = {each["name"]: each for each in resources["clusters"]}
    clusters["llm"]["type"] = "STRICT_DNS"
    endpoint_of(clusters["llm"])["address"]["socket_address"]["address"] = "model"
    endpoint_of(clusters["semmem"])["address"] = {"pipe": {"path": sidecar.config["listeners"]["grpc"]["unix_socket"]}}
    assert ours == expected


def endpoint_of(cluster: Json) -> Json:
    endpoint: Json = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]
    return endpoint


def test_the_sidecars_socket_lies_in_a_folder_that_both_containers_have() -> None:
    sidecar = layout(SIDECAR)
    folder = str(Path(sidecar.config["listeners"]["grpc"]["unix_socket"]).parent)
    mounts = [[each["name"] for each in c["volumeMounts"] if each["mountPath"] == folder] for c in sidecar.containers()]
    assert mounts == [["socket"], ["socket"]]
    assert [each["emptyDir"]["medium"] for each in sidecar.pod["spec"]["volumes"] if each["name"] == "socket"] == [
        "Memory"
    ]


# --- pods ------------------------------------------------------------------------------------------------------------


def test_pods_meet_the_restricted_security_standard(shipped: Layout) -> None:
    spec = shipped.pod["spec"]
    security = spec["securityContext"]
    assert security["runAsNonRoot"] is True
    assert security["runAsUser"] > 0
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
    assert {kind for volume in spec["volumes"] for kind in volume.keys() - {"name"}} <= {"configMap", "emptyDir"}


def test_every_container_can_do_no_more_than_it_must(shipped: Layout) -> None:
    for container in shipped.containers():
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }, container["name"]


def test_every_container_says_what_it_needs_and_where_it_ends(shipped: Layout) -> None:
    for container in shipped.containers():
        resources = container["resources"]
        assert {"cpu", "memory"} <= resources["requests"].keys(), container["name"]
        assert "memory" in resources["limits"], container["name"]


def test_scratch_space_ends_somewhere(shipped: Layout) -> None:
    for volume in shipped.pod["spec"]["volumes"]:
        assert "emptyDir" not in volume or volume["emptyDir"]["sizeLimit"]


def test_no_pod_holds_a_token_of_the_cluster(shipped: Layout) -> None:
    assert shipped.one("ServiceAccount")["automountServiceAccountToken"] is False
    assert shipped.pod["spec"]["automountServiceAccountToken"] is False
    assert shipped.pod["spec"]["serviceAccountName"] == shipped.one("ServiceAccount")["metadata"]["name"]


def test_no_secret_is_shipped(shipped: Layout) -> None:
    assert not shipped.all("Secret")
    env = shipped.container("semmem")["env"]
    assert all("secretKeyRef" in entry["valueFrom"] for entry in env if "value" not in entry)
    assert not [entry["name"] for entry in env if "value" in entry and re.search("TOKEN|KEY|PASSWORD", entry["name"])]


def test_a_pods_files_come_from_the_maps_that_are_shipped_with_it(shipped: Layout) -> None:
    asked = {volume["configMap"]["name"] for volume in shipped.pod["spec"]["volumes"] if "configMap" in volume}
    assert asked == {each["metadata"]["name"] for each in shipped.all("ConfigMap")}
    assert all(re.search(r"-[a-z0-9]{10}$", name) for name in asked), "another content is another name"


# --- probes ----------------------------------------------------------------------------------------------------------


def test_nothing_outside_the_process_can_make_semmem_restart(shipped: Layout) -> None:
    assert shipped.container("semmem")["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "health"}


@pytest.mark.parametrize("name", SERVED)
def test_a_shared_semmem_takes_traffic_when_it_is_ready(name: str) -> None:
    semmem = layout(name).container("semmem")
    assert {semmem[probe]["httpGet"]["path"] for probe in ("startupProbe", "readinessProbe")} == {"/readyz"}


def test_a_sidecar_starts_before_envoy_and_has_no_say_in_whether_the_gateway_is_ready() -> None:
    (semmem,) = layout(SIDECAR).pod["spec"]["initContainers"]
    assert (semmem["name"], semmem["restartPolicy"]) == ("semmem", "Always")
    assert semmem["startupProbe"]["httpGet"]["path"] == "/healthz"
    assert "readinessProbe" not in semmem


def test_the_kubelet_can_reach_the_health_port(shipped: Layout) -> None:
    address = shipped.config["listeners"]["health"]["address"]
    ports = {port["name"]: port["containerPort"] for port in shipped.container("semmem")["ports"]}
    assert ports["health"] == port_of(address)
    assert not is_loopback(address)
    assert shipped.pod["metadata"]["annotations"]["prometheus.io/port"] == str(port_of(address))


def test_there_is_time_to_drain(shipped: Layout) -> None:
    spec = shipped.pod["spec"]
    before = sum(each["lifecycle"]["preStop"]["sleep"]["seconds"] for each in spec["containers"] if "lifecycle" in each)
    drain_s = shipped.config["deployment"]["drain_s"]
    assert spec["terminationGracePeriodSeconds"] > before + ENVOY_SECONDS + drain_s


# --- who reaches what ------------------------------------------------------------------------------------------------


def test_every_selector_means_these_pods(shipped: Layout) -> None:
    labels = shipped.pod["metadata"]["labels"].items()
    selectors: list[Json] = [each["spec"]["selector"] for each in shipped.all("Service")]
    selectors += [
        each["spec"]["selector"]["matchLabels"] for each in (shipped.workload, shipped.one("PodDisruptionBudget"))
    ]
    selectors.append(shipped.one("NetworkPolicy")["spec"]["podSelector"]["matchLabels"])
    spread = shipped.pod["spec"].get("topologySpreadConstraints", [])
    selectors += [each["labelSelector"]["matchLabels"] for each in spread]
    assert all(selector and selector.items() <= labels for selector in selectors)


def test_services_lead_to_ports_that_are_there(shipped: Layout) -> None:
    named = {port["name"] for container in shipped.containers() for port in container["ports"]}
    assert {port["targetPort"] for each in shipped.all("Service") for port in each["spec"]["ports"]} <= named
    names = {each["metadata"]["name"] for each in shipped.all("Service")}
    assert {each["spec"]["serviceName"] for each in shipped.all("StatefulSet")} <= names


def test_semmems_ports_are_its_listeners(shipped: Layout) -> None:
    addresses = [each["address"] for each in shipped.config["listeners"].values() if "address" in each]
    reachable = {port_of(address) for address in addresses if not is_loopback(address)}
    assert {port["containerPort"] for port in shipped.container("semmem")["ports"]} == reachable


def admitted(shipped: Layout, port: int) -> list[Json]:
    """Everybody the NetworkPolicy lets in at a port; an empty peer stands for anybody."""
    policy = shipped.one("NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress"]
    rules = [rule for rule in policy["ingress"] if port in [each["port"] for each in rule["ports"]]]
    return [peer for rule in rules for peer in rule.get("from", [{}])]


@pytest.mark.parametrize("name", SERVED)
def test_only_envoy_reaches_ext_proc_and_only_labelled_pods_the_api(name: str) -> None:
    shared, label = layout(name), "app.kubernetes.io/name"
    listeners = {key: port_of(value["address"]) for key, value in shared.config["listeners"].items()}
    assert admitted(shared, listeners["grpc"]) == [{"podSelector": {"matchLabels": {label: "envoy"}}}]
    assert admitted(shared, listeners["api"]) == [{"podSelector": {"matchLabels": {"semmem-api": "allowed"}}}]
    token = next(each for each in shared.container("semmem")["env"] if each["name"].endswith("ADMIN_TOKEN"))
    assert "optional" not in token["valueFrom"]["secretKeyRef"]


def test_a_sidecars_ext_proc_and_api_stay_in_the_pod() -> None:
    sidecar = layout(SIDECAR)
    listeners = sidecar.config["listeners"]
    assert listeners["grpc"].keys() == {"unix_socket"}
    assert is_loopback(listeners["api"]["address"])
    assert admitted(sidecar, 10000) == [{}]
    assert [each["ports"][0]["port"] for each in sidecar.one("NetworkPolicy")["spec"]["ingress"]] == [10000, 9090]


# --- one truth in several files --------------------------------------------------------------------------------------


def test_what_semmem_keeps_lies_on_the_volume(shipped: Layout) -> None:
    mounts = {each["name"]: each["mountPath"] for each in shipped.container("semmem")["volumeMounts"]}
    claims = shipped.workload["spec"].get("volumeClaimTemplates", [])
    (volume,) = re.findall(r"^VOLUME (\S+)$", DOCKERFILE, re.MULTILINE)
    assert mounts["data"] == shipped.config["data_dir"] == volume
    assert [each["metadata"]["name"] for each in claims] == ["data"] * (shipped.workload["kind"] == "StatefulSet")
    assert yaml.safe_load((DEPLOY / "config.yaml").read_text())["data_dir"] == volume


def test_the_user_of_the_image_is_the_user_of_the_pod(shipped: Layout) -> None:
    security = shipped.pod["spec"]["securityContext"]
    (user,) = re.findall(r"^USER (\S+)$", DOCKERFILE, re.MULTILINE)
    assert user == f"{security['runAsUser']}:{security['runAsGroup']}"
    root = (DEPLOY / "root.py").read_text(encoding="utf-8")
    assert f'GROUP = "semmem:x:{security["runAsGroup"]}:' in root
    assert f'USER = "semmem:x:{security["runAsUser"]}:{security["runAsGroup"]}:' in root
    assert security["fsGroup"] == security["runAsGroup"]


def test_the_image_is_that_of_this_version(shipped: Layout) -> None:
    assert shipped.container("semmem")["image"] == f"semmem:{__version__}"
