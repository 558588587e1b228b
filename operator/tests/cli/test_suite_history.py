"""`plimsoll results` of rounds: the last round of a suite, compared with those before."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner, Result

from plimsoll.api.names import RunPhase
from plimsoll.api.status import RunState
from plimsoll.api.suite import load_suite
from plimsoll.api.suite_status import round_name
from plimsoll.cli import main
from plimsoll.cli.suite_rounds import RoundStart, evaluate_rounds, read_round
from plimsoll.suite.children import suite_digest, turns_by_name
from support.results import result, steady, trials_of

MINUTE = 29_000_000
RATES = (1000, 1006, 994)


def written(
    path: Path, number: int, scale: float = 1.0, *, target: str = "/fast", name: str = "s", left: int = 3
) -> Path:
    """Write a round as `plimsoll run` leaves it, and return its directory; `left` runs are complete."""
    directory = path / f"round-{name}-{number}"
    directory.mkdir()
    spec = {
        "run": {
            "storage": {"storageClass": {"name": "any"}, "volume": {"size": "16Mi"}},
            "workloads": [{"name": "w", "fio": {}}],
        },
        "variants": [{"name": "old"}],
        "comparisons": [{"name": "upgrade", "baseline": {"rounds": "Accepted"}}],
    }
    header = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BenchmarkSuite", "metadata": {"name": name}}
    (directory / "suite.yaml").write_text(yaml.safe_dump({**header, "spec": spec}))
    suite = load_suite((directory / "suite.yaml").read_text())
    start = RoundStart(minute=MINUTE + number, seed=1, digest=suite_digest(suite.spec), targets={"old": (target,)})
    (directory / "round.json").write_text(start.model_dump_json())
    for run, rate in [*zip(turns_by_name(suite, minute=start.minute, seed=1), RATES, strict=True)][:left]:
        results = directory / run / "results"
        results.mkdir(parents=True)
        found = result(trials_of(steady(rate * scale)), run=run)
        (results / "w-000.json").write_text(found.model_dump_json())
        (directory / run / "state.json").write_text(RunState(phase=RunPhase.COMPLETE).model_dump_json())
    return directory


def shown(directories: Sequence[Path], *options: str) -> Result:
    return CliRunner().invoke(main, ["results", *map(str, directories), *options], env={"COLUMNS": "160"})


def document(directories: Sequence[Path], *options: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shown(directories, "-o", "json", *options).stdout)
    return found


def test_a_round_like_the_others_has_no_regression_whatever_the_order_of_the_arguments(tmp_path: Path) -> None:
    rounds = [written(tmp_path, number) for number in range(4)]
    found = shown([rounds[3], *rounds[:3]])
    assert found.exit_code == 0, found.output
    assert f"upgrade: is round {round_name(MINUTE + 3)} worse than 3 accepted rounds?" in found.output
    assert "old: NoRegression" in found.output
    assert found.output.count("accepted, pinned") == 4


def test_a_slower_round_is_a_regression_until_it_is_accepted(tmp_path: Path) -> None:
    rounds = [written(tmp_path, number) for number in range(4)]
    slow = [written(tmp_path, 4 + number, 0.8) for number in range(4)]
    alarm = shown([*rounds, slow[0]])
    assert alarm.exit_code == 3
    assert (
        f"If this is intended, add --accept {round_name(MINUTE + 4)}: the baseline then starts with this round."
        in alarm.output
    )
    assert shown([*rounds, *slow]).exit_code == 3
    for chosen in (round_name(MINUTE + 4), str(slow[0])):
        assert shown([*rounds, *slow], "--accept", chosen).exit_code == 0
        assert shown([*rounds, slow[0]], "--accept", chosen).exit_code == 0
    states = document([*rounds, *slow], "--accept", str(slow[0]))["rounds"]
    assert [one["accepted"] for one in states] == [False] * 4 + [True] * 4
    assert [one["verdict"] for one in states][4:] == ["Regressed", "Inconclusive", "Inconclusive", "NoRegression"]


def test_repeats_that_differ_are_inconclusive_in_every_form_of_output(tmp_path: Path) -> None:
    rounds = [written(tmp_path, number) for number in range(4)]
    file = max(rounds[-1].glob("*/results/w-000.json"))
    found = json.loads(file.read_text())
    found["status"]["fingerprint"]["identitySha256"] = "other"
    file.write_text(json.dumps(found))
    table, document_ = shown(rounds), shown(rounds, "-o", "json")
    assert (table.exit_code, document_.exit_code) == (4, 4), table.output
    assert "are not repetitions of the same" in table.output


def test_a_round_whose_results_are_gone_cannot_be_accepted(tmp_path: Path) -> None:
    rounds = [written(tmp_path, number) for number in range(4)]
    for file in rounds[2].glob("*/results/w-000.json"):
        file.unlink()
    refused = shown(rounds, "--accept", str(rounds[2]))
    assert refused.exit_code == 2
    words = " ".join(refused.output.split())
    assert f"--accept {round_name(MINUTE + 2)}: a run of the round in {rounds[2]} has no results" in words.replace(
        "│ ", ""
    )


def test_slow_drift_is_told_from_a_regression(tmp_path: Path) -> None:
    rounds = [written(tmp_path, number, 1 - 0.015 * max(0, number - 4)) for number in range(9)]
    found = shown(rounds)
    assert found.exit_code == 3
    assert "old: Regression; drift from the pinned rounds: Regression, but " in found.output
    (variant,) = document(rounds)["judgements"][0]["variants"]
    assert (variant["drift"], variant["isDrift"]) == ("Regression", True)
    assert variant["againstAccepted"] != "Regression"


def test_an_improvement_is_named_and_its_loss_found(tmp_path: Path) -> None:
    rounds = [written(tmp_path, number, 1.2 if number >= 4 else 1.0) for number in range(7)]
    better = shown(rounds[:5])
    assert better.exit_code == 0, better.output
    assert "NoRegression, improved" in better.output
    lost = written(tmp_path, 7)
    assert shown([*rounds, lost]).exit_code == 3
    (variant,) = document([*rounds, lost])["judgements"][0]["variants"]
    (rate,) = (one for one in variant["found"] if (one["metric"], one["against"]) == ("iops", "Accepted"))
    assert (rate["rounds"], rate["conclusion"], rate["improved"]) == (3, "Regression", False)
    assert variant["isDrift"] is False


def test_a_single_round_is_inconclusive_and_says_what_is_missing(tmp_path: Path) -> None:
    found = shown([written(tmp_path, 0)])
    assert found.exit_code == 4
    assert "accepted rounds before this one: 0; at least 3 show how much rounds differ" in found.output


def test_a_round_without_all_runs_is_inconclusive_and_not_accepted(tmp_path: Path) -> None:
    rounds = [*(written(tmp_path, number) for number in range(4)), written(tmp_path, 4, left=2)]
    found = shown(rounds)
    assert found.exit_code == 4
    assert "old: 1 of 3 runs are not measured completely" in found.output
    assert document(rounds)["rounds"][-1]["accepted"] is False
    refused = shown(rounds, "--accept", round_name(MINUTE + 4))
    assert refused.exit_code == 2
    assert "the round lacks runs; complete it with plimsoll run --resume" in refused.output


def test_the_document_has_the_change_of_each_metric(tmp_path: Path) -> None:
    rounds = [*(written(tmp_path, number) for number in range(4)), written(tmp_path, 4, 0.8)]
    (judgement,) = document(rounds)["judgements"]
    assert (judgement["name"], judgement["acceptedRounds"], judgement["conclusion"]) == ("upgrade", 4, "Regression")
    found = {one["metric"]: one for one in judgement["variants"][0]["found"]}
    assert found["iops"]["ratio"] == pytest.approx(0.8, abs=1e-3)
    assert [found[one]["conclusion"] for one in ("iops", "p99")] == ["Regression", "NoRegression"]


def test_accepting_something_else_is_refused(tmp_path: Path) -> None:
    rounds = [written(tmp_path, 0)]
    found = shown(rounds, "--accept", "12")
    assert found.exit_code == 2
    assert f"--accept 12: is none of the rounds; they are {round_name(MINUTE)} (" in found.output


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"number": 1, "name": "t"}, "contain rounds of different suites, s and t; give the rounds of one suite"),
        ({"number": 1, "target": "/slow"}, "measured variant old on different targets, /fast and /slow"),
    ],
)
def test_rounds_that_do_not_belong_together_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    rounds = [read_round(written(tmp_path, 0)), read_round(written(tmp_path, **changes))]
    with pytest.raises(click.ClickException, match=message):
        evaluate_rounds(rounds)


def test_a_round_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    directory = written(tmp_path, 0)
    found = shown([directory, directory])
    assert found.exit_code == 1
    assert f"started in the same minute, {round_name(MINUTE)}; give one of them" in found.output
