"""The exit codes of the commands, and what they say to do about numbers that are not Valid."""

import os
import re
import signal
from pathlib import Path

import pytest

from plimsoll.api.names import Verdict
from plimsoll.cli import Exit
from plimsoll.measure.checks.judge import CHECKS
from support.command_line import (
    LABELS,
    NAMESPACE,
    SUITE_SPEC,
    ConnectedKube,
    condition,
    ended_round,
    invoke,
    measured_runs,
    run,
    suite,
)
from support.results import result, steady, trials_of

RUN, SUITE = "bench/nightly", "bsuite/bench/weekly"


@pytest.fixture
def kube(connected: ConnectedKube) -> ConnectedKube:
    connected.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    connected.put(run())
    return connected


def end(kube: ConnectedKube, reason: str) -> None:
    """Let the run end with a result."""
    succeeded = str(reason in {"Valid", "Suspect"})
    kube.put(run(condition("Succeeded", succeeded, "the end", reason), completionTime="2026-01-31T12:00:00Z"))
    measured = result(trials_of(steady(1000)), run="nightly")
    stored = measured.model_dump(mode="json", exclude_none=True)
    stored["metadata"] |= {"namespace": NAMESPACE, "labels": LABELS}
    stored["status"] |= {"display": {"iops": "1000"}, "verdict": Verdict.VALID}
    del stored["status"]["fingerprint"]
    kube.put(stored)


def test_the_table_in_the_docs_has_every_code() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "cli.md").read_text()
    rows = page.partition("## Exit codes")[2].partition("\n## ")[0]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", rows, re.MULTILINE)] == [*Exit]


@pytest.mark.parametrize(
    ("reason", "code", "strict"),
    [
        ("Valid", Exit.DONE, Exit.DONE),
        ("Suspect", Exit.DONE, Exit.NOT_VALID),
        ("InvalidResults", Exit.NOT_VALID, Exit.NOT_VALID),
        ("ClientsNotReady", Exit.ERROR, Exit.ERROR),
    ],
)
def test_the_end_of_a_run_decides_the_code(kube: ConnectedKube, reason: str, code: Exit, strict: Exit) -> None:
    end(kube, reason)
    for options in ([], ["--quiet"]):
        invoke("watch", RUN, *options, code=code)
        invoke("watch", RUN, *options, "--strict", code=strict)


@pytest.mark.parametrize(("verdict", "code"), [("Suspect", Exit.DONE), ("Invalid", Exit.NOT_VALID)])
def test_the_last_line_names_what_to_do_about_numbers_that_are_not_valid(
    kube: ConnectedKube, verdict: str, code: Exit
) -> None:
    check = next(check for check in CHECKS if check.reason == "ClientThrottled")
    findings = [{"reason": name, "verdict": verdict, "message": "m"} for name in (check.reason, "ClientStalled")]
    for document in (suite(rounds=[ended_round(0, "NoRegression")]), *measured_runs([0])):
        if document["kind"] == "BenchmarkResult":
            document["status"] |= {"verdict": verdict, "findings": findings}
        kube.put(document)
    last = invoke("watch", SUITE, code=code).splitlines()[-1]
    assert re.fullmatch(rf"What to do about ClientThrottled at [-\w]+: {re.escape(check.remedy)}", last)


def test_invalid_numbers_of_a_round_fail_also_without_output(kube: ConnectedKube) -> None:
    for document in (suite(rounds=[ended_round(0, "NoRegression")]), *measured_runs([0])):
        if document["kind"] == "BenchmarkResult":
            document["status"]["verdict"] = "Invalid"
        kube.put(document)
    assert len(invoke("watch", SUITE, "--quiet", code=Exit.NOT_VALID).splitlines()) == 1


def test_a_suite_that_compares_no_rounds_ends_with_its_comparisons_of_variants(kube: ConnectedKube) -> None:
    cost = {"name": "cost", "baseline": {"variant": "old"}, "candidate": {"variant": "new"}}
    document = suite(rounds=[ended_round(0, "NoRegression", accepted=True)])
    for stored in (document | {"spec": SUITE_SPEC | {"comparisons": [cost]}}, *measured_runs([0])):
        kube.put(stored)
    lines = invoke("watch", SUITE, code=Exit.DONE).splitlines()
    assert lines[-2].endswith(" of suite bench/weekly ended: measured; the suite compares no rounds")
    assert lines[-1].startswith("Comparison cost, new against old: NoRegression: in 2 of 2 gating metrics")


def test_a_suspect_number_of_a_round_fails_only_with_strict(kube: ConnectedKube) -> None:
    for document in (suite(rounds=[ended_round(0, "NoRegression")]), *measured_runs([0])):
        if document["kind"] == "BenchmarkResult":
            document["status"]["verdict"] = "Suspect"
        kube.put(document)
    invoke("watch", SUITE, "--quiet", code=Exit.DONE)
    invoke("watch", SUITE, "--quiet", "--strict", code=Exit.NOT_VALID)
    for source in (SUITE, f"bench/{document['spec']['run']}"):
        invoke("results", source, code=Exit.DONE)
        invoke("results", source, "--strict", code=Exit.NOT_VALID)
    kube.put(suite(rounds=[ended_round(0, "Regressed")]))
    invoke("watch", SUITE, "--strict", code=Exit.REGRESSION)


@pytest.mark.parametrize("form", ["table", "junit", "markdown"])
def test_results_of_a_suite_fail_if_a_later_round_was_not_evaluated(kube: ConnectedKube, form: str) -> None:
    rounds = [ended_round(1, "Failed"), ended_round(0, "NoRegression")]
    for document in (suite(rounds=rounds), *measured_runs([0])):
        kube.put(document)
    output = invoke("results", SUITE, "-o", form, code=Exit.ERROR)
    # Once on standard error; a pipeline also reads it in the file.
    assert output.count("measured too little to be evaluated") == (1 if form == "table" else 2)
    kube.put(suite(rounds=rounds[1:]))
    invoke("results", SUITE, "-o", form, code=Exit.DONE)


def test_a_timeout_and_an_interruption_have_their_own_codes(kube: ConnectedKube) -> None:
    assert "has not ended yet" in invoke("watch", RUN, "--timeout", "1s", code=Exit.TIMEOUT)
    kube.interfere = lambda _: os.kill(os.getpid(), signal.SIGINT)
    assert "`plimsoll watch bench/nightly` follows it again" in invoke("watch", RUN, code=Exit.INTERRUPTED)
    assert "interrupted" in invoke("results", RUN, code=Exit.INTERRUPTED)
