"""deploy/compose: two readers of the Compose Specification accept it, and its parts fit together.

No image can be had here, so nothing of it is started.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from semmem import __version__
from tests.integration.deploy.manifests import DEPLOY, SECRET, Json, read_by
from tests.integration.deploy.test_deploy import DOCKERFILE, semmem_check

FOLDER = DEPLOY / "compose"
TEXT = (FOLDER / "compose.yaml").read_text()
EXAMPLE = (FOLDER / "example.env").read_text()
CONFIG: Json = yaml.safe_load((FOLDER / "semmem.yaml").read_text())
SECRETS = re.findall(r"^(\w+)=$", EXAMPLE, re.MULTILINE)
SIDECAR_ENVOY = DEPLOY / "k8s" / "overlays" / "sidecar" / "envoy.yaml"


def read(text: str, secrets: list[str]) -> Json:
    found: Json = read_by("compose_file", text, dict.fromkeys(secrets, SECRET))
    return found


@pytest.fixture(scope="module")
def services() -> Json:
    found: Json = read(TEXT, SECRETS)["services"]
    return found


def test_its_readers_accept_it(services: Json) -> None:
    expected = {"envoy", "semmem", "milvus", "postgres", "valkey", "prometheus", "grafana"}
    assert services.keys() == expected


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("stop_grace_period:", "stop_grace:"),
        ("condition: service_healthy", "condition: healthy"),
        ("driver_opts:", "options:"),
    ],
)
def test_a_broken_file_is_found(right: str, wrong: str) -> None:
    assert right in TEXT
    with pytest.raises(AssertionError, match="refused"):
        read(TEXT.replace(right, wrong), SECRETS)


@pytest.mark.parametrize("missing", SECRETS)
def test_a_secret_that_is_missing_stops_it(missing: str) -> None:
    with pytest.raises(AssertionError, match=rf"{missing}: see example\.env"):
        read(TEXT, [name for name in SECRETS if name != missing])


def test_the_example_names_every_variable_and_no_other() -> None:
    of_the_file = set(re.findall(r"\$\{(\w+)", TEXT))
    assert set(re.findall(r"^(?:# )?([A-Z_]+)=", EXAMPLE, re.MULTILINE)) == of_the_file


def test_each_image_has_a_tag_and_can_be_named_by_digest(services: Json) -> None:
    images = dict(re.findall(r"image: \$\{(\w+):-([^}]+)\}", TEXT))
    assert len(images) == len(services)
    for name, image in images.items():
        assert re.search(r":v?\d", image), image
        assert re.search(rf"^# {name}=\S+@sha256:$", EXAMPLE, re.MULTILINE), name
    assert images["SEMMEM_IMAGE"] == f"semmem:{__version__}"


def test_semmem_accepts_its_configuration(services: Json) -> None:
    semmem_check(FOLDER / "semmem.yaml", services["semmem"]["environment"])


def test_what_is_mounted_is_there(services: Json) -> None:
    files = [each.split(":")[0] for service in services.values() for each in service.get("volumes", [])]
    ours = [each for each in files if each.startswith(".")]
    assert len(ours) > 6
    assert [each for each in ours if not (FOLDER / each).exists()] == []


def test_envoy_and_semmem_meet_at_the_socket_as_the_user_of_the_image(services: Json) -> None:
    (user,) = re.findall(r"^USER (\S+)$", DOCKERFILE, re.MULTILINE)
    assert services["envoy"]["user"] == user
    assert "user" not in services["semmem"]
    path = CONFIG["listeners"]["grpc"]["unix_socket"]
    assert f"{{pipe: {{path: {path}}}}}" in SIDECAR_ENVOY.read_text()
    for name in ("envoy", "semmem"):
        assert f"socket:{Path(path).parent}" in services[name]["volumes"]
    uid, gid = user.split(":")
    assert f"uid={uid},gid={gid}," in yaml.safe_load(TEXT)["volumes"]["socket"]["driver_opts"]["o"]


def test_servers_are_asked_where_they_listen(services: Json) -> None:
    hosts = [
        CONFIG["memory"]["milvus"]["address"].split(":")[0],
        re.split(r"[@:/]+", CONFIG["journal"]["url"])[2],
        re.split(r"[@:/]+", CONFIG["memory"]["hot_cache"]["redis"]["url"])[1],
    ]
    assert hosts == ["milvus", "postgres", "valkey"]
    assert services["semmem"]["depends_on"].keys() == set(hosts)
    assert all("healthcheck" in services[name] for name in hosts)


def test_prometheus_reads_what_semmem_and_envoy_have(services: Json) -> None:
    prometheus = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yaml").read_text())
    targets = {each["job_name"]: each["static_configs"][0]["targets"] for each in prometheus["scrape_configs"]}
    health = CONFIG["listeners"]["health"]["address"].rpartition(":")[2]
    admin = yaml.safe_load(SIDECAR_ENVOY.read_text())["admin"]["address"]["socket_address"]
    assert targets == {"semmem": [f"semmem:{health}"], "envoy": [f"{admin['address']}:{admin['port_value']}"]}
    assert services["prometheus"]["network_mode"] == "service:envoy"
    assert "--web.listen-address=:9095" in services["prometheus"]["command"]
    source = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/prometheus.yaml").read_text())
    assert source["datasources"][0]["url"] == "http://envoy:9095"


def test_nothing_is_reachable_from_other_machines(services: Json) -> None:
    published = [each for service in services.values() for each in service.get("ports", [])]
    assert len(published) == 4
    assert all(each.startswith("127.0.0.1:") for each in published)


def test_semmem_has_time_to_drain(services: Json) -> None:
    drain_s = CONFIG.get("deployment", {}).get("drain_s", 20)
    assert int(services["semmem"]["stop_grace_period"].removesuffix("s")) > drain_s
