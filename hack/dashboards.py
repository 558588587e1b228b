"""Write the chart's dashboards; with --check, fail if they are out of date."""

# ruff: noqa: INP001 - a script, run by path
import json
import sys
from pathlib import Path

from generated import update
from grafana import live, operator, results, suites
from grafana_foundation_sdk.cog.encoder import JSONEncoder

DIRECTORY = Path(__file__).parent.parent / "charts" / "plimsoll" / "files" / "dashboards"

PAGES = {
    "live.json": live.page,
    "results.json": results.page,
    "suites.json": suites.page,
    "operator.json": operator.page,
}


def _text(name: str) -> str:
    """Return a dashboard as Grafana imports it."""
    document = PAGES[name]().builder.build()
    return json.dumps(document, cls=JSONEncoder, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    sys.exit(update(((DIRECTORY / name, _text(name)) for name in PAGES), DIRECTORY.glob("*.json")))
