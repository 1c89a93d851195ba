"""deploy/envoy.yaml itself: a real Envoy accepts it, as shipped, with its example switched on, and as derived."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from demo.envoy import derive
from tests.support.harness import ENVOY, IDENTITY_HEADERS, SHIPPED_ENVOY, Json

UPSTREAMS = [
    "http://127.0.0.1:8000",
    "http://localhost:11434/v1",
    "https://api.example.com",
    "https://models.example.com:8443/api/v1/",
    "https://192.0.2.1/",
]


def validate(config: Path) -> None:
    argv = [str(ENVOY), "--mode", "validate", "--disable-hot-restart", "-l", "error", "-c", str(config)]
    result = subprocess.run(argv, capture_output=True, text=True, timeout=240, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def derived(upstream: str, **options: Any) -> Json:
    shipped = yaml.safe_load(SHIPPED_ENVOY.read_text())
    return derive(shipped, listener_port=1, admin_port=2, semmem_port=3, upstream=upstream, **options)


def manager(config: Json) -> Json:
    found: Json = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    return found


def cluster(config: Json, name: str) -> Json:
    return next(entry for entry in config["static_resources"]["clusters"] if entry["name"] == name)


def test_envoy_accepts_the_shipped_configuration() -> None:
    validate(SHIPPED_ENVOY)


def test_envoy_accepts_its_commented_examples(tmp_path: Path) -> None:
    text = SHIPPED_ENVOY.read_text()
    login = text.index("  - name: semmem\n    type: STATIC")
    copy_of_semmem = (
        text[login:].replace("name: semmem", "name: login", 2).replace("cluster_name: semmem", "cluster_name: login")
    )
    examples = re.compile(r"^ *# - .*(?:\n *#   .*)*", re.MULTILINE)
    switched_on = examples.sub(lambda example: example[0].replace("# ", ""), text) + copy_of_semmem
    config = tmp_path / "envoy.yaml"
    config.write_text(switched_on)

    filters = [entry["name"] for entry in manager(yaml.safe_load(switched_on))["http_filters"]]
    routes = manager(yaml.safe_load(switched_on))["route_config"]["virtual_hosts"][0]["routes"]
    assert filters.index("semmem.strip_identity") < filters.index("envoy.filters.http.jwt_authn")
    assert filters.index("envoy.filters.http.jwt_authn") < filters.index("semmem.mutate")
    paths = [route["match"].get("path") for route in routes]
    assert paths == ["/v1/chat/completions", "/v1/responses", "/v1/messages", None]
    validate(config)


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_envoy_accepts_what_is_derived_for(tmp_path: Path, upstream: str) -> None:
    config = tmp_path / "envoy.json"
    config.write_text(json.dumps(derived(upstream, upstream_key_variable="KEY", show_outcome=True)))

    validate(config)


def test_deriving_changes_addresses_and_adds_demo_authentication_and_nothing_else() -> None:
    shipped, changed = yaml.safe_load(SHIPPED_ENVOY.read_text()), derived("http://127.0.0.1:4")

    filters = manager(changed)["http_filters"]
    added = filters.pop(1)
    assert added["name"] == "demo.authentication"
    ports = {"9901": "2", "10000": "1", "50051": "3", "8000": "4"}
    text = json.dumps(shipped)
    for old, new in ports.items():
        text = text.replace(f'"port_value": {old}', f'"port_value": {new}')
    assert json.dumps(changed) == text


def test_identity_headers_go_before_anything_else_sees_them() -> None:
    first = manager(yaml.safe_load(SHIPPED_ENVOY.read_text()))["http_filters"][0]

    removed = {mutation["remove"] for mutation in first["typed_config"]["mutations"]["request_mutations"]}
    assert removed == {*IDENTITY_HEADERS, "x-semmem-user"}


def test_a_hosted_model_is_reached_by_name_over_verified_tls() -> None:
    config = derived("https://models.example.com/api/v1", upstream_key_variable="KEY")

    tls = cluster(config, "llm")["transport_socket"]["typed_config"]
    assert tls["sni"] == "models.example.com"
    validation = tls["common_tls_context"]["validation_context"]
    assert validation["match_typed_subject_alt_names"] == [
        {"san_type": "DNS", "matcher": {"exact": "models.example.com"}}
    ]
    assert cluster(config, "llm")["type"] == "LOGICAL_DNS"
    chat, *_, rest = manager(config)["route_config"]["virtual_hosts"][0]["routes"]
    assert chat["route"]["prefix_rewrite"] == "/api/v1/chat/completions"
    assert rest["route"]["prefix_rewrite"] == "/api/"
    for route in (chat, rest):
        assert route["route"]["auto_host_rewrite"] is True
        (header,) = route["request_headers_to_add"]
        assert header["header"]["value"] == "Bearer %ENVIRONMENT(KEY)%"


@pytest.mark.parametrize(
    "upstream", ["", "api.example.com", "ftp://host", "http://", "https://u:p@host", "https://h/?q=1"]
)
def test_an_upstream_that_is_no_base_url_is_refused(upstream: str) -> None:
    with pytest.raises(ValueError, match="an upstream is"):
        derived(upstream)
