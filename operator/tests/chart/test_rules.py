"""The chart's alerts, checked and run by the real promtool."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from chart.promql import counters_without_rate, problems_of, promtool

ROOT = Path(__file__).parents[3]
RULES = ROOT / "charts" / "plimsoll" / "files" / "rules.yaml"
TESTS = Path(__file__).parent / "rules_test.yaml"
RUNBOOK = (ROOT / "docs" / "how-to" / "monitoring.md").read_text()
OPERATIONS = (ROOT / "docs" / "how-to" / "troubleshooting.md").read_text()
RUNBOOK_URL = "https://github.com/plimsoll/plimsoll/blob/main/docs/how-to/monitoring.md"

ALERTS: dict[str, dict[str, Any]] = {
    rule["alert"]: rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
}
TESTED = [test for group in yaml.safe_load(TESTS.read_text())["tests"] for test in group["alert_rule_test"]]


@pytest.mark.chart
def test_prometheus_reads_the_rules() -> None:
    assert f"{len(ALERTS)} rules found" in promtool("check", "rules", RULES)


@pytest.mark.chart
def test_alerts_fire_when_they_should_and_not_otherwise() -> None:
    promtool("test", "rules", TESTS)


@pytest.mark.parametrize("alert", ALERTS)
def test_every_alert_is_tested_firing_and_silent(alert: str) -> None:
    outcomes = {bool(test["exp_alerts"]) for test in TESTED if test["alertname"] == alert}
    assert outcomes == {True, False}


def test_only_alerts_that_exist_are_tested() -> None:
    assert {test["alertname"] for test in TESTED} == ALERTS.keys()


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_reads_what_plimsoll_exposes(alert: str) -> None:
    expr = ALERTS[alert]["expr"]
    assert list(problems_of(expr)) == []
    assert counters_without_rate(expr) == set()


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_says_what_it_means_and_what_to_do(alert: str) -> None:
    rule = ALERTS[alert]
    assert alert.startswith("Plimsoll")
    assert rule["labels"]["severity"] in {"info", "warning"}
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    assert rule["annotations"]["runbook_url"] == f"{RUNBOOK_URL}#{alert.lower()}"


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_has_its_section_in_the_runbook(alert: str) -> None:
    section = RUNBOOK.partition(f"\n### {alert}\n")[2].partition("\n### ")[0]
    for part in ("Meaning", "Look at", "Do"):
        assert f"- *{part}*: " in section, f"docs/how-to/monitoring.md does not say, of {alert}: {part}"


def test_the_runbook_has_no_section_of_an_alert_that_is_gone() -> None:
    assert set(re.findall(r"^### (Plimsoll\w+)$", RUNBOOK, re.MULTILINE)) == ALERTS.keys()


def test_rules_name_reasons_that_runs_have() -> None:
    matched = re.findall(r'reason(?:=|!=|=~|!~)"([^"]+)"', RULES.read_text())
    reasons = {reason for group in matched for reason in group.split("|")}
    assert reasons
    assert {reason for reason in reasons if f"`{reason}`" not in OPERATIONS} == set()
