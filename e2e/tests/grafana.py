"""The queries of the chart's dashboards and rules, with the variables substituted as Grafana does it."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from prometheus import Prometheus
from support import ROOT

FILES = ROOT / "charts" / "plimsoll" / "files"
DASHBOARDS = FILES / "dashboards"
SCRAPE_SECONDS = 2
PANEL_POINTS = 1000
"""Points that Grafana requests: about the width of a panel in pixels."""

_VARIABLE = re.compile(r"\$\{(\w+)(?::\w+)?\}|\$(\w+)")
_LABEL_VALUES = re.compile(r"label_values\((?:(?P<selector>.+),\s*)?(?P<label>\w+)\)", re.DOTALL)
_SELECTOR = re.compile(r"\b(?:plimsoll[_:][\w:]*|up\b)(?:\{[^{}]*\})?")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"[^\"]*\"")
_SECONDS = {"m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class Query:
    """An expression and its place."""

    where: str
    expression: str


def dashboards() -> set[str]:
    """Return the names of all dashboards."""
    return {path.stem for path in DASHBOARDS.glob("*.json")}


def queries(dashboard: str, prometheus: Prometheus, chosen: Mapping[str, str]) -> list[Query]:
    """Return the queries of a dashboard with these values of variables, and the first value of every other."""
    document = json.loads((DASHBOARDS / f"{dashboard}.json").read_text())
    values = _built_in(document["time"]["from"])
    for variable in document["templating"]["list"]:
        values[variable["name"]] = _value(variable, prometheus, values, chosen.get(variable["name"]))
    return [
        Query(f"{dashboard}: {panel['title']}", _substitute(target["expr"], values))
        for panel in _panels(document["panels"])
        for target in panel.get("targets", [])
    ]


def rules() -> list[dict[str, Any]]:
    """Return all rules of the chart."""
    return [rule for group in yaml.safe_load((FILES / "rules.yaml").read_text())["groups"] for rule in group["rules"]]


def selectors(rule: Mapping[str, Any]) -> list[Query]:
    """Return the series of a rule's expression, with any values of the labels in its matchers."""
    name = str(rule.get("alert") or rule.get("record"))
    return [Query(name, _MATCHER.sub(r'\1!=""', found[0])) for found in _SELECTOR.finditer(rule["expr"])]


def _built_in(since: str) -> dict[str, str]:
    """Return Grafana's built-in variables for a view since a time such as `now-6h`."""
    seconds = int(since.removeprefix("now-")[:-1]) * _SECONDS[since[-1]]
    interval = max(SCRAPE_SECONDS, seconds // PANEL_POINTS)
    return {
        "__interval": f"{interval}s",
        "__interval_ms": f"{interval * 1000}",
        "__rate_interval": f"{max(interval + SCRAPE_SECONDS, 4 * SCRAPE_SECONDS)}s",
        "__range": f"{seconds}s",
        "__range_s": f"{seconds}",
        "__range_ms": f"{seconds * 1000}",
    }


def _panels(panels: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for panel in panels:
        yield panel
        yield from _panels(panel.get("panels", []))


def _value(variable: Mapping[str, Any], prometheus: Prometheus, values: Mapping[str, str], wanted: str | None) -> str:
    """Return the value of a variable; fail if it offers none, or not the wanted one."""
    if variable["type"] == "datasource":
        return "prometheus"
    assert variable["type"] == "query", f"variable {variable['name']}: type {variable['type']} is not supported"
    text = variable["query"] if isinstance(variable["query"], str) else variable["query"]["query"]
    matched = _LABEL_VALUES.fullmatch(text.strip())
    assert matched, f"variable {variable['name']}: {text}"
    selector = _substitute(matched["selector"] or f'{{{matched["label"]}!=""}}', values)
    offered = prometheus.label_values(matched["label"], selector)
    assert offered, f"variable {variable['name']} offers nothing: {text}"
    assert wanted is None or wanted in offered, f"variable {variable['name']} offers {offered}, not {wanted}"
    return wanted or offered[0]


def _substitute(text: str, values: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: values[found[1] or found[2]], text)
