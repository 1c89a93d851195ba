"""The Helm chart: helm itself renders it, and with its own values it is what kustomize makes of deploy/k8s."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.integration.deploy.manifests import (
    DEPLOY,
    SECRET,
    TOOLS,
    Json,
    Layout,
    layout,
    run,
    validate_objects,
    validate_others,
    with_monitoring,
)
from tests.integration.deploy.test_deploy import semmem_check

CHART = DEPLOY / "chart"
HELM = TOOLS / "helm"
DIGEST = "sha256:" + "0123456789abcdef" * 4

Chart = Callable[..., Layout]


@pytest.fixture
def chart(tmp_path: Path) -> Chart:
    """The chart's objects with these values, written as YAML."""

    def render(values: str = "{}", release: str = "semmem") -> Layout:
        file = tmp_path / "values.yaml"
        file.write_text(values)
        text = run(HELM, "template", release, CHART, "--namespace", "semmem", "--values", file)
        return Layout("chart", text, tuple(each for each in yaml.safe_load_all(text) if each))

    return render


def compared(shipped: Layout) -> dict[tuple[str, str], Json]:
    """Objects by kind and name, without what each of the two tools adds so that another configuration restarts pods."""
    found = {}
    for each in copy.deepcopy(shipped.objects):
        if each["kind"] in ("StatefulSet", "Deployment"):
            template = each["spec"]["template"]
            template["metadata"]["annotations"].pop("checksum/config", None)
            for volume in template["spec"]["volumes"]:
                if "configMap" in volume:
                    volume["configMap"]["name"] = unhashed(volume["configMap"]["name"])
        each["metadata"]["name"] = unhashed(each["metadata"]["name"])
        found[each["kind"], each["metadata"]["name"]] = each
    return found


def unhashed(name: str) -> str:
    return re.sub(r"^(semmem-config)-[a-z0-9]{10}$", r"\1", name)


@pytest.mark.parametrize("name", ["single", "shared"])
def test_the_chart_is_what_kustomize_makes(name: str, chart: Chart) -> None:
    ours, theirs = compared(chart(f"layout: {name}")), compared(layout(f"overlays/{name}"))
    assert ours.keys() == theirs.keys()
    for key, expected in theirs.items():
        assert ours[key] == expected, key


def test_so_it_is_with_monitoring(chart: Chart, tmp_path: Path) -> None:
    (tmp_path / "kustomize").mkdir()
    theirs = compared(with_monitoring("overlays/shared", tmp_path / "kustomize"))
    assert compared(chart("{layout: shared, monitoring: {enabled: true}}")) == theirs


def test_a_difference_would_be_noticed(chart: Chart) -> None:
    assert compared(chart("resources: {requests: {cpu: 2}}")) != compared(layout("overlays/single"))


VALUES = {
    "single": """
        image: {repository: registry.example.com/semmem, digest: "DIGEST", pullSecrets: [registry]}
        storage: {size: 50Gi, className: fast}
        config: {memory: {default_retrieval_limit: 7}}
        extraEnv: [{name: SEMMEM_LOG__LEVEL, value: debug}]
        nodeSelector: {disk: ssd}
        tolerations: [{key: ssd, operator: Exists}]
        podAnnotations: {team: chat}
    """.replace("DIGEST", DIGEST),
    "shared": """
        layout: shared
        autoscaling: {minReplicas: 3, maxReplicas: 30}
        config: {memory: {milvus: {address: "milvus.databases:19530"}}}
        secrets: {fence: {name: mine, key: fence}, journal: {name: mine, key: database}}
        envoy: {namespaceLabels: {kubernetes.io/metadata.name: edge}, podLabels: {app: envoy}}
        monitoring: {enabled: true, namespace: prometheus, runbooks: "https://docs.example/operations.html"}
    """,
}


@pytest.mark.parametrize("values", VALUES)
def test_kubernetes_and_semmem_accept_what_values_make_of_it(values: str, chart: Chart, tmp_path: Path) -> None:
    made = chart(VALUES[values])
    validate_objects(made.of_kubernetes, "1.37")
    validate_others(made.of_others)
    config = tmp_path / "config.yaml"
    config.write_text(made.file("config.yaml"))
    semmem_check(config, made.environment())


def test_values_arrive_where_they_belong(chart: Chart) -> None:
    single, shared = chart(VALUES["single"]), chart(VALUES["shared"])
    assert single.container("semmem")["image"] == f"registry.example.com/semmem@{DIGEST}"
    (claim,) = single.workload["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["storageClassName"] == "fast"
    assert claim["spec"]["resources"]["requests"] == {"storage": "50Gi"}
    assert single.config["memory"] == {"default_retrieval_limit": 7}
    assert single.pod["metadata"]["annotations"].items() >= {"team": "chat", "prometheus.io/port": "9090"}.items()
    assert single.environment()["SEMMEM_LOG__LEVEL"] == "debug"

    assert shared.config["deployment"]["replicas"] == shared.one("HorizontalPodAutoscaler")["spec"]["minReplicas"] == 3
    assert shared.config["memory"]["milvus"]["address"] == "milvus.databases:19530"
    assert shared.config["listeners"] == layout("overlays/shared").config["listeners"]
    assert shared.environment()["SEMMEM_JOURNAL__PASSWORD"] == SECRET
    named = {each["name"]: each["valueFrom"]["secretKeyRef"]["key"] for each in shared.container("semmem")["env"]}
    assert named["SEMMEM_MEMORY__INJECTION__FENCE_KEY"] == "fence"
    alert = shared.one("PrometheusRule")["spec"]["groups"][0]["rules"][0]
    assert alert["annotations"]["runbook_url"] == "https://docs.example/operations.html#semmemgone"
    envoy = shared.one("NetworkPolicy")["spec"]["ingress"][0]["from"]
    assert envoy == [
        {
            "podSelector": {"matchLabels": {"app": "envoy"}},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "edge"}},
        }
    ]


RELEASES = ("semmem", "chat", "semmem-eu")
EVERYTHING = "{layout: LAYOUT, monitoring: {enabled: true, labels: {release: prometheus}}}"


def selectors(value: object, key: str = "") -> Iterator[Json]:
    """Whom an object acts on; not whom a NetworkPolicy lets in."""
    if isinstance(value, list):
        for each in value:
            yield from selectors(each)
    elif isinstance(value, dict):
        if key in ("selector", "podSelector", "labelSelector"):
            yield value.get("matchLabels", value)
        for name, inner in value.items():
            if name != "from":
                yield from selectors(inner, name)


@pytest.mark.parametrize("name", ["single", "shared"])
def test_releases_in_one_namespace_have_nothing_in_common(name: str, chart: Chart) -> None:
    made = {release: chart(EVERYTHING.replace("LAYOUT", name), release) for release in RELEASES}
    named = [(each["kind"], each["metadata"]["name"]) for shipped in made.values() for each in shipped.objects]
    assert len(named) == len(set(named))
    for release, shipped in made.items():
        validate_objects(shipped.of_kubernetes, "1.37")
        wanted = {"app.kubernetes.io/name": "semmem", "app.kubernetes.io/instance": release}
        assert all(wanted.items() <= each["metadata"]["labels"].items() for each in shipped.objects)
        assert shipped.pod["metadata"]["labels"] == wanted
        found = list(selectors(list(shipped.objects)))
        assert len(found) >= 5
        assert all(each == wanted for each in found)


@pytest.mark.parametrize("name", ["single", "shared"])
def test_what_a_release_names_is_its_own(name: str, chart: Chart) -> None:
    shipped = chart(EVERYTHING.replace("LAYOUT", name), "chat")
    spec, pod = shipped.workload["spec"], shipped.pod["spec"]
    assert shipped.workload["metadata"]["name"] == spec.get("serviceName", "chat") == "chat"
    assert pod["serviceAccountName"] == shipped.one("ServiceAccount")["metadata"]["name"] == "chat"
    assert {each["configMap"]["name"] for each in pod["volumes"] if "configMap" in each} == {"chat-config"}
    assert {each["spec"]["scaleTargetRef"]["name"] for each in shipped.all("HorizontalPodAutoscaler")} <= {"chat"}
    assert {each["metadata"]["name"] for each in shipped.all("Service")} == {
        "chat",
        *["chat-pods"] * (name == "shared"),
    }
    assert {each["metadata"]["name"] for each in shipped.all("ConfigMap")} == {"chat-config", "chat-dashboard"}
    assert shipped.config["listeners"]["api"]["allowed_hosts"][0] == "chat"
    for kind in ("ServiceMonitor", "PrometheusRule"):
        assert shipped.one(kind)["metadata"]["labels"]["release"] == "prometheus"


def test_another_configuration_restarts_the_pods(chart: Chart) -> None:
    first, second = (
        each.pod["metadata"]["annotations"]["checksum/config"]
        for each in (chart(), chart("config: {memory: {default_retrieval_limit: 7}}"))
    )
    assert first != second


@pytest.mark.parametrize(
    "wrong", ["layout: sidecar", "replicas: 3", "autoscaling: {minReplicas: 1}", "image: {digest: latest}"]
)
def test_values_that_nobody_knows_are_refused(wrong: str, chart: Chart) -> None:
    with pytest.raises(AssertionError, match=r"values don't meet the specifications"):
        chart(wrong)


def test_helm_finds_nothing_to_say_about_it() -> None:
    run(HELM, "lint", "--strict", "--quiet", CHART)


def test_the_packed_chart_is_the_same(chart: Chart, tmp_path: Path) -> None:
    """The files that it takes from deploy/k8s are in the archive, not links that lead nowhere."""
    run(HELM, "package", CHART, "--destination", tmp_path)
    (archive,) = tmp_path.glob("semmem-*.tgz")
    text = run(HELM, "template", "semmem", archive, "--namespace", "semmem")
    assert text == chart().text


def test_its_version_is_that_of_the_image(chart: Chart) -> None:
    assert chart().container("semmem")["image"] == layout("base").container("semmem")["image"]
