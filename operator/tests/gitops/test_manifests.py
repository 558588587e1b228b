"""The samples for Flux and Argo CD: references and timeouts are correct."""

import re
from pathlib import Path
from typing import Any

import yaml

from plimsoll.api.suite import load_suite
from plimsoll.cli import main
from plimsoll.cli.options import JUNIT, MARKDOWN
from plimsoll.plan.expand import estimate
from plimsoll.suite.children import variant_plans

ROOT = Path(__file__).parents[3]
GITOPS = ROOT / "manifests" / "gitops"
SUITE = GITOPS / "suite" / "suite.yaml"
GUIDE = (ROOT / "docs" / "how-to" / "gitops.md").read_text()


def documents(name: str) -> dict[str, dict[str, Any]]:
    """Return the documents of a sample by their kind."""
    found = list(yaml.safe_load_all((GITOPS / name).read_text()))
    assert all({"apiVersion", "kind", "metadata", "spec"} <= doc.keys() or doc["kind"] == "ConfigMap" for doc in found)
    return {document["kind"]: document for document in found}


def seconds(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)([smh])", text).groups()  # type: ignore[union-attr]
    return int(number) * {"s": 1, "m": 60, "h": 3600}[unit]


def test_flux_waits_as_long_as_all_runs_of_a_round_may_take() -> None:
    suite = load_suite(SUITE.read_text())
    runs = len(suite.spec.variants) * suite.spec.repeat
    waits = seconds(documents("flux/suite.yaml")["Kustomization"]["spec"]["timeout"])
    assert waits > runs * max(plan.timeouts.total_seconds for plan in variant_plans(suite, seed=1).values())


def test_a_run_of_the_suite_has_twice_the_time_that_it_should_take() -> None:
    for plan in variant_plans(load_suite(SUITE.read_text()), seed=1).values():
        assert estimate(plan).total_seconds * 2 <= plan.timeouts.total_seconds
        assert plan.repetitions >= 5


def test_nothing_deletes_a_run_to_run_it_again() -> None:
    for name in ("flux/suite.yaml", "flux/run.yaml"):
        flux = documents(name)["Kustomization"]["spec"]
        assert (flux["wait"], flux["force"]) == (True, False)
    argo = documents("argocd/application.yaml")["Application"]["spec"]
    assert not {"Replace=true", "Force=true"} & set(argo["syncPolicy"]["syncOptions"])


def test_samples_point_at_what_is_there() -> None:
    release = documents("flux/plimsoll.yaml")
    chart = ROOT / release["HelmRelease"]["spec"]["chart"]["spec"]["chart"]
    assert (chart / "Chart.yaml").is_file()
    (values,) = release["HelmRelease"]["spec"]["valuesFrom"]
    assert values["name"] == release["ConfigMap"]["metadata"]["name"]
    for path in (
        documents("flux/suite.yaml")["Kustomization"]["spec"]["path"],
        documents("argocd/application.yaml")["Application"]["spec"]["source"]["path"],
    ):
        assert (GITOPS / path / "kustomization.yaml").is_file()


def test_values_of_the_release_are_values_of_the_chart() -> None:
    given = yaml.safe_load(documents("flux/plimsoll.yaml")["ConfigMap"]["data"]["values.yaml"])
    chart = yaml.safe_load((ROOT / "charts" / "plimsoll" / "values.yaml").read_text())
    assert given.keys() <= chart.keys()
    assert given["rook"].keys() <= chart["rook"].keys()


def test_the_guide_names_every_file() -> None:
    files = {path.relative_to(GITOPS).parts[0] for path in GITOPS.rglob("*") if path.is_file()}
    assert {name for name in files if f"manifests/gitops/{name}" not in GUIDE} == set()


def test_the_workflow_calls_the_command_line_as_it_is() -> None:
    jobs = yaml.safe_load((GITOPS / "github" / "benchmark.yaml").read_text())["jobs"]
    script = "\n".join(step.get("run", "") for job in jobs.values() for step in job["steps"])
    calls = re.findall(r"kubectl plimsoll (\w+)([^>|\n]*)", script)
    assert [name for name, _ in calls] == ["watch", "results"]
    for name, arguments in calls:
        command = main.get_command(None, name)  # type: ignore[arg-type] # it needs no context
        assert command
        assert set(re.findall(r" (--?[a-z]+)", arguments)) <= {opt for option in command.params for opt in option.opts}
    (forms,) = re.findall(r"for form in (.*);", script)
    assert set(forms.split()) <= {JUNIT, MARKDOWN}


def test_the_required_check_fails_where_nothing_was_measured() -> None:
    """GitHub skips a job after one that failed or was skipped, and a skipped check counts as passed."""
    verdict = yaml.safe_load((GITOPS / "github" / "benchmark.yaml").read_text())["jobs"]["verdict"]
    assert verdict["if"] == "always()"
    (step,) = verdict["steps"]
    assert step["env"]["CODE"] == "${{ needs.measure.result == 'success' && needs.measure.outputs.code || '1' }}"
