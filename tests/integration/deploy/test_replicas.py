"""Many replicas of one semmem: what they share, how many there are, and what semmem refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.integration.deploy.manifests import LAYOUTS, Layout, layout
from tests.integration.deploy.test_deploy import semmem_check


@pytest.fixture(params=LAYOUTS)
def shipped(request: pytest.FixtureRequest) -> Layout:
    return layout(request.param)


def test_the_number_of_replicas_is_the_one_semmem_is_told(shipped: Layout) -> None:
    told = shipped.config["deployment"]["replicas"]
    scalers = shipped.all("HorizontalPodAutoscaler")
    assert [each["spec"]["minReplicas"] for each in scalers] in ([], [told])
    assert shipped.workload["spec"].get("replicas", told) == told
    assert ("replicas" in shipped.workload["spec"]) != bool(scalers), "one of them says how many"


@pytest.mark.parametrize("name", [each for each in LAYOUTS if each not in ("base", "overlays/single")])
def test_many_replicas_keep_nothing_of_their_own(name: str) -> None:
    many = layout(name)
    assert many.workload["kind"] == "Deployment"
    assert many.config["journal"]["url"].startswith("postgresql://")
    assert many.config["memory"]["milvus"]["address"]
    data = next(each for each in many.pod["spec"]["volumes"] if each["name"] == "data")
    assert data.keys() == {"name", "emptyDir"}
    secrets = {
        each["name"]: each["valueFrom"]["secretKeyRef"]
        for each in many.container("semmem")["env"]
        if "valueFrom" in each
    }
    assert secrets["SEMMEM_MEMORY__INJECTION__FENCE_KEY"] == {"name": "semmem-fence", "key": "key"}


@pytest.mark.parametrize("without", [("journal", "url"), ("memory", "milvus")])
def test_semmem_refuses_many_replicas_that_share_nothing(without: tuple[str, str], tmp_path: Path) -> None:
    shared = layout("overlays/shared")
    config = shared.config
    del config[without[0]][without[1]]
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(config))
    with pytest.raises(AssertionError, match=r"deployment\.replicas"):
        semmem_check(file, {})


def test_the_autoscaler_means_the_workload_and_asks_for_what_is_requested() -> None:
    shared = layout("overlays/shared")
    scaler = shared.one("HorizontalPodAutoscaler")["spec"]
    assert scaler["scaleTargetRef"] == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": shared.workload["metadata"]["name"],
    }
    resources = [each["resource"]["name"] for each in scaler["metrics"] if each["type"] == "Resource"]
    assert set(resources) <= shared.container("semmem")["resources"]["requests"].keys()
