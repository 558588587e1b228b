"""Write the chart's dashboards; with --check, fail if they are out of date."""

# ruff: noqa: INP001 - a script, run by path
import json
import sys
from pathlib import Path

from grafana import live, operator, results, suites
from grafana_foundation_sdk.cog.encoder import JSONEncoder

DIRECTORY = Path(__file__).parent.parent / "charts" / "plimsoll" / "files" / "dashboards"

PAGES = {
    "live.json": live.page,
    "results.json": results.page,
    "suites.json": suites.page,
    "operator.json": operator.page,
}


def main() -> int:
    """Return the exit code."""
    fresh = {name: _text(name) for name in PAGES}
    if "--check" not in sys.argv:
        DIRECTORY.mkdir(parents=True, exist_ok=True)
        for name, text in fresh.items():
            (DIRECTORY / name).write_text(text)
        return 0
    stale = [name for name, text in fresh.items() if _written(name) != text]
    stale += [path.name for path in DIRECTORY.glob("*.json") if path.name not in fresh]
    for name in stale:
        sys.stderr.write(f"{name}: the dashboard is out of date with hack/grafana; run `make generate`\n")
    return int(bool(stale))


def _text(name: str) -> str:
    """Return a dashboard as Grafana imports it."""
    document = PAGES[name]().builder.build()
    return json.dumps(document, cls=JSONEncoder, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def _written(name: str) -> str:
    path = DIRECTORY / name
    return path.read_text() if path.is_file() else ""


if __name__ == "__main__":
    sys.exit(main())
