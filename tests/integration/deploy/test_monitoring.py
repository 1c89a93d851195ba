"""Alert rules and dashboard: every metric and label that they name is exported, by a semmem and an Envoy that run.

Whether the alerts fire and the dashboard shows something, Prometheus itself says: tests/system.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import pytest
import yaml

from tests.core.test_operations import cells, samples
from tests.integration.deploy.manifests import (
    DEPLOY,
    LAYOUTS,
    SERVED,
    Json,
    Layout,
    read_by,
    validate_others,
    with_monitoring,
)
from tests.support.harness import house, stand_in_model

RULES = yaml.safe_load((DEPLOY / "prometheus" / "rules.yaml").read_text())["groups"]
ALERTS: list[Json] = [rule for group in RULES for rule in group["rules"]]
RULE_TESTS = yaml.safe_load((DEPLOY / "prometheus" / "rules.test.yaml").read_text())["tests"]
DASHBOARD: Json = json.loads((DEPLOY / "grafana" / "semmem.json").read_text())
PANELS: list[Json] = DASHBOARD["panels"]
ADAPTER = yaml.safe_load((DEPLOY / "prometheus" / "adapter.yaml").read_text())["rules"]["custom"]
OF_PROMETHEUS = {"job", "instance", "le", "namespace", "pod"}
"""Labels that whoever reads the pages puts on."""
_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? ", re.MULTILINE)


def dashboard_queries() -> list[str]:
    """Every expression, with the variables that Grafana would replace."""
    return [
        target["expr"].replace("$__rate_interval", "1m").replace("$envoy_job", ".+").replace("$job", ".+")
        for panel in PANELS
        for target in panel.get("targets", [])
    ]


def adapter_queries() -> list[str]:
    def filled(rule: Json) -> str:
        series = rule["seriesQuery"].partition("{")[0]
        text: str = rule["metricsQuery"].replace("<<.Series>>", series).replace("<<.GroupBy>>", "pod")
        return text.replace("<<.LabelMatchers>>", 'namespace="semmem"')

    return [filled(rule) for rule in ADAPTER] + [rule["seriesQuery"] for rule in ADAPTER]


def expressions() -> list[str]:
    return [alert["expr"] for alert in ALERTS] + dashboard_queries() + adapter_queries()


def asked(texts: list[str]) -> list[list[tuple[str, list[str]]]]:
    """The selectors of each expression; AssertionError when one cannot be parsed."""
    found: list[list[tuple[str, list[str]]]] = read_by("promql_selectors", texts)
    return found


Exported = dict[str, set[str]]
"""Sample names and their labels."""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """What semmem and Envoy have on their pages after one request."""
    with stand_in_model() as model, house(tmp_path_factory.mktemp("house"), model) as home:
        assert home.chat("ute", "Where do I live?").status == 200
        own = home.semmem.metrics_text()
        page = httpx.get(f"http://{home.envoy.admin}/stats/prometheus", trust_env=False).text
    semmem = set(re.findall(r"^# TYPE (\w+) ", own, re.MULTILINE))
    known = {name: labels for name, labels in samples().items() if family(name) in semmem or name in semmem}
    for name, labels in _SAMPLE.findall(own + page):
        known.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return known


def family(sample: str) -> str:
    """As a page calls the family of a sample: of a counter with ``_total``, of a histogram without its suffix."""
    return re.sub(r"_(bucket|count|sum)$", "", sample)


def unknown(texts: list[str], exported: Exported) -> list[tuple[str, str]]:
    """Metrics, and labels of metrics, that nobody exports."""
    missing = []
    for text, selectors in zip(texts, asked(texts), strict=True):
        names = [name for name, _ in selectors if name]
        known = set().union(*(exported.get(name, set()) for name in names)) | OF_PROMETHEUS
        missing += [(text, name) for name in names if name not in exported]
        missing += [(text, label) for _, labels in selectors for label in labels if label not in known]
    return missing


def test_every_metric_and_label_that_is_asked_for_is_exported(exported: Exported) -> None:
    assert len(expressions()) > 50
    assert unknown(expressions(), exported) == []


def test_a_metric_or_label_that_nobody_exports_is_found(exported: Exported) -> None:
    planted = ["rate(semmem_request_total[5m])", "sum by (reason) (semmem_journal_queue)", 'up{user="a"}']
    found = {wrong for _, wrong in unknown(planted, exported)}
    assert {"semmem_request_total", "reason", "user"} <= found


def test_a_query_that_is_no_promql_is_found() -> None:
    with pytest.raises(AssertionError, match="unclosed"):
        asked(["sum by (job"])


# --- alerts ----------------------------------------------------------------------------------------------------------


def test_each_alert_is_tested_with_a_series_that_it_is_for_and_one_that_it_is_not() -> None:
    cases = [case for test in RULE_TESTS for case in test["alert_rule_test"]]
    names = [alert["alert"] for alert in ALERTS]
    assert sorted(case["alertname"] for case in cases if case["exp_alerts"]) == sorted(names)
    assert sorted(case["alertname"] for case in cases if not case["exp_alerts"]) == sorted(names)


def test_each_alert_says_what_it_means_and_how_bad_it_is() -> None:
    for alert in ALERTS:
        assert alert["labels"]["severity"] in ("warning", "critical"), alert["alert"]
        assert alert["annotations"].keys() == {"summary", "description", "runbook_url"}, alert["alert"]
        assert alert["for"], alert["alert"]


def test_each_alert_leads_to_its_row_on_the_page_on_operations() -> None:
    for alert, row in zip(ALERTS, cells("Alerts worth having"), strict=True):
        name = alert["alert"]
        assert row[0] == f'<a id="{name.lower()}"></a>`{name}`'
        assert alert["annotations"]["runbook_url"] == f"docs/operations.md#{name.lower()}"


def test_the_operators_rules_are_the_same() -> None:
    rule = yaml.safe_load((DEPLOY / "k8s" / "components" / "monitoring" / "prometheus-rule.yaml").read_text())
    assert rule["spec"]["groups"] == RULES


# --- dashboard -------------------------------------------------------------------------------------------------------


def test_panels_have_room_and_a_name_of_their_own() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in PANELS:
        place = panel["gridPos"]
        cells_of = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells_of & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells_of
    assert len({panel["id"] for panel in PANELS}) == len({panel["title"] for panel in PANELS}) == len(PANELS)


def test_numbers_to_see_at_a_glance_come_first() -> None:
    row, *panels = PANELS
    assert row["type"] == "row"
    first = [panel for panel in panels if panel["gridPos"]["y"] == 1]
    assert panels[: len(first)] == first
    assert {panel["type"] for panel in first} == {"stat"}
    assert sum(panel["gridPos"]["w"] for panel in first) == 24


def test_every_panel_asks_the_chosen_data_source_for_the_chosen_jobs() -> None:
    variables = {each["name"] for each in DASHBOARD["templating"]["list"]}
    assert variables == {"datasource", "job", "envoy_job"}
    for panel in (each for each in PANELS if each["type"] != "row"):
        assert panel["datasource"]["uid"] == "${datasource}"
        for target in panel["targets"]:
            assert re.search(r'job=~"\$(envoy_)?job"', target["expr"]), target["expr"]
            assert target["datasource"]["uid"] == "${datasource}"


def test_every_metric_of_an_alert_is_on_the_dashboard_or_beside_it() -> None:
    of_alerts, of_panels = (
        {family(name) for each in asked(texts) for name, _ in each if name}
        for texts in ([alert["expr"] for alert in ALERTS], dashboard_queries())
    )
    assert of_alerts - of_panels == {"semmem_extproc_errors_total", "semmem_extproc_streams_shed_total"}


# --- the operator's objects ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """overlays/shared with the component, as a reader would combine them."""
    return with_monitoring("overlays/shared", tmp_path_factory.mktemp("watched"))


def test_the_operators_objects_have_the_fields_of_their_schemas(watched: Layout) -> None:
    assert {each["kind"] for each in watched.of_others} == {"ServiceMonitor", "PrometheusRule"}
    validate_others(watched.of_others)


@pytest.mark.parametrize(("right", "wrong"), [("endpoints:", "endpoint:"), ("for: 2m", "during: 2m")])
def test_a_broken_object_of_the_operator_is_found(right: str, wrong: str, watched: Layout) -> None:
    assert right in watched.text
    broken = Layout("", "", tuple(yaml.safe_load_all(watched.text.replace(right, wrong))))
    with pytest.raises(AssertionError, match="refused"):
        validate_others(broken.of_others)


@pytest.mark.parametrize("name", [*SERVED, "overlays/sidecar", "overlays/envoy-gateway", "overlays/istio"])
def test_prometheus_finds_the_metrics_of_every_layout(name: str, tmp_path: Path) -> None:
    assert name in LAYOUTS
    shipped = with_monitoring(name, tmp_path)
    monitor = shipped.one("ServiceMonitor")["spec"]
    chosen = monitor["selector"]["matchLabels"].items()
    services = [each for each in shipped.all("Service") if chosen <= each["metadata"].get("labels", {}).items()]
    (port,) = [
        port for each in services for port in each["spec"]["ports"] if port["name"] == monitor["endpoints"][0]["port"]
    ]
    assert port["targetPort"] == "health"


def test_the_dashboard_is_shipped_for_grafanas_sidecar(watched: Layout) -> None:
    (dashboard,) = [each for each in watched.all("ConfigMap") if each["metadata"]["name"] == "semmem-dashboard"]
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(dashboard["data"]["semmem.json"]) == DASHBOARD


def test_the_autoscalers_measures_are_those_that_the_adapter_makes(watched: Layout) -> None:
    metrics = watched.one("HorizontalPodAutoscaler")["spec"]["metrics"]
    assert [each["pods"]["metric"]["name"] for each in metrics if each["type"] == "Pods"] == [
        rule["name"]["as"] for rule in ADAPTER
    ]
