"""Mutual TLS between a real Envoy and semmem, with the shipped fragment and certificates that are renewed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import httpx
import pytest
import yaml

from demo.envoy import derive
from demo.processes import Child
from demo.stack import HOME, envoy_argv, wait_for_envoy
from tests.core.envoy.test_tls import Pki
from tests.support.harness import (
    ENVOY,
    SHIPPED_ENVOY,
    START_S,
    EnvoyProcess,
    House,
    StandInModel,
    eventually,
    patient,
    semmem_process,
)

FILES = {"cert_file": "tls.crt", "key_file": "tls.key", "client_ca_file": "ca.crt"}
BUDGET = "User's budget for the Hawaii trip is $10,000"


def with_tls(config: dict[str, object], folder: Path) -> dict[str, object]:
    """The derived configuration with the shipped TLS fragment, its files replaced by ours."""
    fragment = (HOME / "deploy" / "envoy-semmem-tls.yaml").read_text().replace("/etc/envoy/tls", str(folder))
    clusters = config["static_resources"]["clusters"]  # type: ignore[index]
    next(cluster for cluster in clusters if cluster["name"] == "semmem").update(yaml.safe_load(fragment))
    return config


@pytest.mark.long(8)
def test_memory_works_over_mutual_tls_and_survives_a_renewal(model: StandInModel, tmp_path: Path, alice: str) -> None:
    ours, envoys = tmp_path / "semmem-tls", tmp_path / "envoy-tls"
    ours.mkdir()
    envoys.mkdir()
    pki = Pki(ours)
    own = pki.ca.issue_cert("envoy")
    (envoys / "tls.crt").write_bytes(b"".join(pem.bytes() for pem in own.cert_chain_pems))
    (envoys / "tls.key").write_bytes(own.private_key_pem.bytes())
    (envoys / "ca.crt").write_bytes(pki.ca.cert_pem.bytes())
    tls = {name: str(ours / file) for name, file in FILES.items()}
    override = {"memory": {"backend": "in_process"}, "listeners": {"grpc": {"tls": tls}}}

    with semmem_process(tmp_path / "semmem", override) as semmem, httpx.Client(timeout=20, trust_env=False) as http:
        shipped = yaml.safe_load(SHIPPED_ENVOY.read_text())
        derived = derive(
            shipped,
            listener_port=0,
            admin_port=0,
            semmem_port=semmem.grpc_port,
            upstream=model.url,
            show_outcome=True,
        )
        patient(derived)
        file, admin = tmp_path / "envoy.json", tmp_path / "envoy-admin"
        file.write_text(json.dumps(with_tls(derived, envoys)))
        envoy = Child("envoy", envoy_argv(ENVOY, str(file), admin), log=tmp_path / "log", cwd=HOME, environ=os.environ)
        try:
            url = wait_for_envoy(envoy, http, admin, timeout_s=START_S)
            house = House(model, semmem, EnvoyProcess(envoy, url, admin.read_text().strip()), http)
            semmem.remember(alice, BUDGET)

            def recalled() -> bool:
                return house.chat(alice, "What's my budget for the Hawaii trip?").outcome == "injected"

            eventually(recalled, within_s=60, what="a memory over mutual TLS")
            assert house.envoy.stat("cluster.semmem.ssl.handshake") >= 1
            assert house.envoy.stat("cluster.semmem.ssl.connection_error") == 0
            pki.issue()  # the connection that exists stays as it is
            assert recalled()
        finally:
            envoy.terminate()
            envoy.wait(10)
