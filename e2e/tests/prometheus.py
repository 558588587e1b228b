"""The Prometheus of e2e/monitoring, through the API server's proxy."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from support import ROOT, Cluster

MONITORING = ROOT / "e2e" / "monitoring" / "monitoring"


@dataclass(frozen=True, slots=True)
class Sample:
    """A series and its value at an instant; a scalar has no labels."""

    labels: Mapping[str, str]
    value: float


class Prometheus:
    """One Prometheus."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        done = subprocess.run([MONITORING, "url"], capture_output=True, text=True, check=True)
        self._root = done.stdout.strip()

    def query(self, expression: str, at: float | None = None) -> list[Sample]:
        """Return the samples of an expression now, or at a Unix time."""
        found = self._get("query", query=expression, **({} if at is None else {"time": f"{at:.3f}"}))
        rows = found["result"]
        if found["resultType"] == "scalar":
            return [Sample({}, float(rows[1]))]
        return [Sample(row["metric"], float(row["value"][1])) for row in rows]

    def value(self, expression: str, at: float | None = None) -> float | None:
        """Return the only value of an expression, None if it has none."""
        samples = self.query(expression, at)
        assert len(samples) <= 1, f"{expression}: {samples}"
        return samples[0].value if samples else None

    def label_values(self, label: str, selector: str) -> list[str]:
        """Return the values of a label in the series of a selector."""
        found: list[str] = self._get(f"label/{label}/values", **{"match[]": selector})
        return found

    def targets(self) -> list[dict[str, Any]]:
        """Return the active targets with the health of their last scrape."""
        found: list[dict[str, Any]] = self._get("targets", state="active")["activeTargets"]
        return found

    def rules(self) -> list[dict[str, Any]]:
        """Return all rules with their health, their group, and the state of alerts."""
        groups = self._get("rules")["groups"]
        return [{**rule, "group": group["name"]} for group in groups for rule in group["rules"]]

    def alerts(self, name: str) -> list[dict[str, Any]]:
        """Return the pending and firing alerts of that name."""
        return [alert for alert in self._get("alerts")["alerts"] if alert["labels"]["alertname"] == name]

    def _get(self, path: str, **parameters: str) -> Any:
        address = f"{self._root}/api/v1/{path}" + (f"?{urlencode(parameters)}" if parameters else "")
        answer = self._cluster.api.read(address)
        assert answer is not None, f"{path} {parameters}: Prometheus does not answer"
        assert answer["status"] == "success", answer
        assert not answer.get("warnings"), f"{path} {parameters}: {answer['warnings']}"
        return answer["data"]
