"""Suites on the command line, against a real kube-apiserver."""

import asyncio
import json
import signal
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from plimsoll.api.suite_status import round_name
from plimsoll.cli import Exit
from support.apiserver import ApiServer, Document
from support.command_line import (
    GROUP,
    MINUTE,
    SECONDS,
    Bench,
    active_round,
    ended_round,
    line_with,
    measured_runs,
    suite,
    suite_condition,
)

pytestmark = pytest.mark.crd

WATCH = ("watch", "bsuite/weekly")
WAIT = (*WATCH, "--quiet")
ACCEPTED: dict[str, Any] = {"accepted": True, "pinned": True}
BEFORE = [ended_round(number, **ACCEPTED) for number in (2, 1, 0)]


@pytest.fixture
def bench(apiserver: ApiServer, tmp_path: Path) -> Bench:
    """Return a namespace with the suite `weekly`."""
    namespace = f"test-{uuid.uuid4().hex[:8]}"
    apiserver.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}).expect(201)
    document = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BenchmarkSuite", "metadata": {"name": "weekly"}}
    path = f"{GROUP}/namespaces/{namespace}/benchmarksuites"
    made = apiserver.request("POST", path, document | {"spec": suite()["spec"]}).expect(201)
    return Bench(apiserver=apiserver, namespace=namespace, directory=tmp_path, uid=made["metadata"]["uid"])


def say(bench: Bench, shown: str, message: str = "", **status: object) -> None:
    """Write the suite's status as the operator does."""
    current = {"observedGeneration": 1, "display": {"status": shown, "message": message}, "round": None}
    bench.say(current | status, "benchmarksuites", "weekly")


def measure(bench: Bench, numbers: Sequence[int], scale: Mapping[int, float] | None = None) -> None:
    """Create the runs of rounds, with their results."""
    for document in measured_runs(numbers, scale, uid=bench.uid):
        document["metadata"] |= {"namespace": bench.namespace}
        plural = {"BenchmarkRun": "benchmarkruns", "BenchmarkResult": "benchmarkresults"}[document["kind"]]
        if document["kind"] == "BenchmarkRun":
            document["spec"] = suite()["spec"]["run"]
        bench.apiserver.request("POST", bench.path(plural), document).expect(201)
        bench.say(document["status"], plural, document["metadata"]["name"])


async def test_a_round_is_watched_to_its_end_and_its_results_are_shown(bench: Bench) -> None:
    measure(bench, range(4), {3: 0.8})
    async with bench.running(*WATCH) as process:
        await line_with(process, "not seen by the operator yet")
        say(bench, "Measuring", round=active_round(3, done=2, cause="Change"), rounds=BEFORE)
        await line_with(process, f"Measuring  round {round_name(MINUTE + 3)} (Change): 2 of 6 runs done")
        say(bench, "Regressed", "worse", rounds=[ended_round(3, "Regressed"), *BEFORE])
        await line_with(process, "old: 3 of 3 runs, each counted as a trial")
        await line_with(process, f"upgrade: is round {round_name(MINUTE + 3)} worse than 3 accepted rounds?")
        await line_with(process, "old: Regression")
        await line_with(process, f"Round {round_name(MINUTE + 3)} of suite {bench.namespace}/weekly ended: Regressed")
        assert await asyncio.wait_for(process.wait(), SECONDS) == 3


async def test_a_requested_round_is_waited_for(bench: Bench) -> None:
    say(bench, "Idle", rounds=BEFORE)
    annotation = {"metadata": {"annotations": {"plimsoll.dev/request-round": "before the upgrade"}}}
    path = bench.path("benchmarksuites", "weekly")
    bench.apiserver.request("PATCH", path, annotation, content="application/merge-patch+json").expect(200)
    async with bench.running(*WAIT, "--round", "before the upgrade") as process:
        asked: dict[str, Any] = {"requestedRound": "before the upgrade", "requestedMinute": MINUTE + 3}
        say(bench, "Measuring", round=active_round(3, cause="Requested"), rounds=BEFORE, **asked)
        say(bench, "Idle", rounds=[ended_round(3, "Inconclusive", "Requested"), *BEFORE], **asked)
        await line_with(
            process, f"Round {round_name(MINUTE + 3)} of suite {bench.namespace}/weekly ended: Inconclusive"
        )
        assert await asyncio.wait_for(process.wait(), SECONDS) == 4


def test_a_suite_that_cannot_measure_ends_waiting_with_1(bench: Bench) -> None:
    say(bench, "VariantRefused", conditions=[suite_condition("Stalled", "VariantRefused", "variant new: quota")])
    done = bench.kubectl(*WAIT, config=bench.config(namespace=bench.namespace))
    assert done.returncode == 1
    assert "VariantRefused: variant new: quota" in done.stderr


async def test_interrupted_watching_reports_that_the_round_continues(bench: Bench) -> None:
    async with bench.running(*WATCH) as process:
        await line_with(process, "not seen by the operator yet")
        process.send_signal(signal.SIGINT)
        await line_with(process, f"`kubectl plimsoll watch bsuite/{bench.namespace}/weekly` follows it again")
        assert await asyncio.wait_for(process.wait(), SECONDS) == Exit.INTERRUPTED


def test_results_are_those_of_the_last_round_and_its_verdict_the_operators(bench: Bench) -> None:
    measure(bench, range(4), {3: 0.8})
    say(bench, "Regressed", rounds=[ended_round(3, "Regressed"), *BEFORE])
    done = bench.kubectl("results", "bsuite/weekly", "-o", "json", config=bench.config(namespace=bench.namespace))
    assert done.returncode == 3, done.stderr
    found = json.loads(done.stdout)
    assert [one["round"] for one in found["rounds"]] == [round_name(MINUTE + number) for number in range(4)]
    assert [one["accepted"] for one in found["rounds"]] == [True, True, True, False]
    assert {one["variant"]: one["conclusion"] for one in found["judgements"][0]["variants"]} == dict.fromkeys(
        ("old", "new"), "Regression"
    )
    assert [one["verdict"] for one in found["hypotheses"]] == ["Held"]


RULES: list[Document] = [
    {"apiGroups": ["plimsoll.dev"], "resources": ["benchmarksuites"], "verbs": ["get"]},
    {"apiGroups": ["plimsoll.dev"], "resources": ["benchmarkruns", "benchmarkresults"], "verbs": ["list"]},
]


def test_rights_of_a_viewer_are_enough(bench: Bench) -> None:
    measure(bench, [0])
    say(bench, "Idle", rounds=[ended_round(0, "Inconclusive")])
    done = bench.kubectl("results", f"bsuite/{bench.namespace}/weekly", config=bench.may(*RULES))
    assert done.returncode == 4, done.stderr
