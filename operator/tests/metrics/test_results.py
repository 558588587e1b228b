"""From a result as the API server stores it to its metrics."""

import copy
from typing import Any

import pytest

from plimsoll.api.names import Verdict
from plimsoll.api.result import Trial
from plimsoll.measure.attempts import counted
from plimsoll.metrics import catalogue
from plimsoll.metrics.catalogue import Sample
from plimsoll.metrics.objects import Exposed, UnreadableError, result_metrics, result_samples
from support.full_documents import FULL_RESULT
from support.goldens import AFTERWARDS, RESULTS, values

Document = dict[str, Any]
POINT = ("plimsoll-demo", "demo-ceph", "rbd", "rbd-000")
WRITE = (*POINT, "write")


def real(point: str = "rbd-000") -> Document:
    """Return a result of the demo on Ceph, to be changed."""
    return copy.deepcopy(next(result for result in RESULTS if result["spec"]["point"] == point))


def exposed(*documents: Document) -> list[Sample]:
    return list(result_samples([result_metrics(document, now=AFTERWARDS) for document in documents]))


def test_the_numbers_are_those_of_the_summary_in_base_units() -> None:
    document = real()
    (operation,) = document["status"]["summary"]["operations"]
    samples = exposed(document)
    assert values(samples, catalogue.RESULT_IOPS) == {WRITE: operation["iops"]["mean"]}
    assert values(samples, catalogue.RESULT_BYTES) == {WRITE: operation["bytesPerSecond"]["mean"]}
    bounds = {(*WRITE, bound): operation["iops"][bound] for bound in ("low", "high")}
    assert values(samples, catalogue.RESULT_IOPS_BOUND) == bounds
    percentiles = operation["latency"]["percentiles"]
    assert values(samples, catalogue.RESULT_LATENCY) == {
        (*WRITE, quantile): pytest.approx(percentiles[name] / 1e9)
        for name, quantile in (("50", "0.5"), ("95", "0.95"), ("99", "0.99"), ("99.9", "0.999"))
        if name in percentiles
    }
    assert (*WRITE, "0.5") in values(samples, catalogue.RESULT_LATENCY)
    mean = operation["latency"]["meanNanoseconds"] / 1e9
    assert values(samples, catalogue.RESULT_LATENCY_MEAN) == {WRITE: pytest.approx(mean)}


def test_only_the_info_describes_the_measurement() -> None:
    samples = exposed(real())
    assert values(samples, catalogue.RESULT_INFO) == {(*POINT, "fio", "randwrite 4Ki qd16", "2"): 1}
    assert [sample.metric for sample in samples if "parameters" in sample.metric.labels] == [catalogue.RESULT_INFO]


def test_a_result_with_one_operation_has_18_series() -> None:
    """As the docs say."""
    assert len([sample for sample in exposed(real()) if sample.labels]) == 18


def test_the_worst_of_the_trials_that_count_is_exposed() -> None:
    document = real()
    trials = document["status"]["trials"]
    samples = exposed(document)
    assert values(samples, catalogue.RESULT_TRIALS) == {POINT: 2}
    assert values(samples, catalogue.RESULT_OVERLAP) == {POINT: min(trial["window"]["overlap"] for trial in trials)}
    spread = max(trial["window"]["spreadSeconds"] for trial in trials)
    assert values(samples, catalogue.RESULT_SPREAD) == {POINT: spread}
    stall = max(trial["stalls"]["seconds"] for trial in trials)
    assert values(samples, catalogue.RESULT_STALL) == {POINT: stall}


def test_a_trial_that_does_not_count_is_not_exposed() -> None:
    """Neither an attempt that another one replaced, nor a pass without numbers that are believed."""
    document = real()
    trials = document["status"]["trials"]
    last = trials.pop()
    bad = copy.deepcopy(last) | {"finishedAt": "2099-01-01T00:00:00Z"}
    bad["window"] |= {"overlap": 0.001, "spreadSeconds": 99.0}
    bad["stalls"]["seconds"] = 99.0
    trials += [last | {"attempt": 1}, bad, bad | {"passNumber": 7, "verdict": "Invalid"}]
    trials += [bad | {"passNumber": 8, "outcome": "Aborted"}]
    for metric in (catalogue.RESULT_OVERLAP, catalogue.RESULT_SPREAD, catalogue.RESULT_STALL, catalogue.RESULT_TIME):
        assert values(exposed(document), metric) == values(exposed(real()), metric)


def test_the_trials_that_count_are_those_of_the_summary() -> None:
    """Of every real result the times are those of the trials that `measure.summary` would take."""
    for document in RESULTS:
        trials = counted(Trial.model_validate(trial) for trial in document["status"]["trials"])
        samples = exposed(document)
        assert [*values(samples, catalogue.RESULT_TRIALS).values()] == [len(trials)]
        overlaps = [trial.window.overlap for trial in trials if trial.window is not None]
        assert [*values(samples, catalogue.RESULT_OVERLAP).values()] == ([min(overlaps)] if overlaps else [])


def test_of_an_invalid_result_there_is_a_verdict_and_no_number() -> None:
    document = real()
    document["status"]["verdict"] = "Invalid"
    samples = exposed(document)
    assert {sample.metric for sample in samples if sample.labels} == {catalogue.RESULT_INFO, catalogue.RESULT_VERDICT}
    assert {labels[-1]: value for labels, value in values(samples, catalogue.RESULT_VERDICT).items()} == {
        "Valid": 0,
        "Suspect": 0,
        "Invalid": 1,
    }


def test_of_a_result_without_a_trial_there_is_nothing() -> None:
    document = real()
    del document["status"]
    assert result_metrics(document, now=AFTERWARDS) is None


def test_what_a_tool_does_not_know_is_absent() -> None:
    document = real()
    status = document["status"]
    (operation,) = status["summary"]["operations"]
    operation["latency"] = {"kind": "none", "count": 0}
    operation["iops"] = {"trials": 1, "mean": 5.0}
    for trial in status["trials"]:
        del trial["window"], trial["stalls"]
    samples = exposed(document)
    absent = (
        catalogue.RESULT_LATENCY,
        catalogue.RESULT_LATENCY_MEAN,
        catalogue.RESULT_IOPS_BOUND,
        catalogue.RESULT_STALL,
        catalogue.RESULT_OVERLAP,
        catalogue.RESULT_SPREAD,
    )
    assert not [sample for sample in samples if sample.metric in absent]
    assert values(samples, catalogue.RESULT_IOPS) == {WRITE: 5.0}


def test_every_field_may_have_a_value() -> None:
    verdicts = values(exposed(FULL_RESULT), catalogue.RESULT_VERDICT)
    assert {labels[-1] for labels, value in verdicts.items() if value} == {Verdict.VALID}


def test_what_a_later_version_adds_does_not_matter() -> None:
    document = real()
    document["status"]["new"] = {"a": [1]}
    document["status"]["summary"]["operations"][0]["new"] = 1
    assert result_metrics(document, now=AFTERWARDS) == result_metrics(real(), now=AFTERWARDS)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("status", "verdict"), "Excellent"),
        (("status", "summary", "operations"), "none"),
        (("status", "summary", "operations", 0, "iops", "mean"), "fast"),
        (("status", "trials", 0, "finishedAt"), "yesterday"),
        (("status", "trials", 0, "finishedAt"), "2026-01-01T00:00:00"),
        (("spec", "clients"), None),
    ],
)
def test_a_result_that_cannot_be_read_is_refused_with_the_place(path: tuple[str | int, ...], value: object) -> None:
    document: Any = real()
    part = document
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    with pytest.raises(UnreadableError, match=r"\.".join(map(str, path[:1]))):
        result_metrics(document, now=AFTERWARDS)


def numbered(number: int, namespace: str = "") -> Exposed:
    document = real()
    document["spec"]["run"] = f"run-{number}"
    document["metadata"]["namespace"] = namespace or document["metadata"]["namespace"]
    for trial in document["status"]["trials"]:
        trial["finishedAt"] = f"2026-01-01T00:00:{number:02d}Z"
    record = result_metrics(document, now=AFTERWARDS)
    assert record is not None
    return record


def test_of_too_many_results_the_newest_are_exposed() -> None:
    records = [numbered(number) for number in (3, 1, 4, 0, 2)]
    samples = list(result_samples(records, limit=2))
    assert {labels[1] for labels in values(samples, catalogue.RESULT_INFO)} == {"run-4", "run-3"}
    assert values(samples, catalogue.RESULTS_OMITTED) == {(): 3}


def test_a_namespace_with_many_results_hides_none_of_another() -> None:
    records = [*(numbered(number, "many") for number in range(10, 50)), numbered(2, "few"), numbered(1, "few")]
    samples = list(result_samples(records, limit=5))
    shown = [labels[:2] for labels in values(samples, catalogue.RESULT_INFO)]
    assert shown == [("many", "run-49"), ("few", "run-2"), ("many", "run-48"), ("few", "run-1"), ("many", "run-47")]


def test_a_trial_that_finished_in_the_future_finished_now() -> None:
    document = real()
    document["status"]["trials"][0]["finishedAt"] = "9999-12-31T23:59:59Z"
    now = 1.8e9
    assert values(list(result_samples([result_metrics(document, now)])), catalogue.RESULT_TIME) == {POINT: now}
    ages = [record.age for record in (result_metrics(document, now), result_metrics(document, now + 60)) if record]
    assert ages == [now, now + 60]


def test_of_two_results_with_the_same_labels_the_newer_is_exposed() -> None:
    """As when one was just recreated: the index may still have the other one."""
    newer = real()
    newer["status"]["trials"][0]["finishedAt"] = "2099-01-01T00:00:00Z"
    newer["status"]["summary"]["operations"][0]["iops"]["mean"] = 1.0
    for pair in ((real(), newer), (newer, real())):
        samples = exposed(*pair)
        assert values(samples, catalogue.RESULT_IOPS) == {WRITE: 1.0}
        assert values(samples, catalogue.RESULTS_OMITTED) == {(): 1}


def test_what_cannot_be_read_is_counted() -> None:
    samples = list(result_samples([None, result_metrics(real(), now=AFTERWARDS), None]))
    assert values(samples, catalogue.RESULTS_UNREADABLE) == {(): 2}
    assert len(values(samples, catalogue.RESULT_INFO)) == 1


def test_of_a_matrix_there_are_the_median_and_the_slowest_pair_only() -> None:
    document = real()
    cells = {"bytesPerSecond": [10, 30, 20], "clients": [0, 0, 1], "peers": [1, 2, 2]}
    members = [{"number": number, "node": f"node-{number}"} for number in range(3)]
    document["status"]["summary"]["matrix"] = {"trials": 2, "members": members, "outliers": [], **cells}
    samples = exposed(document)
    assert values(samples, catalogue.RESULT_LINK_MEDIAN) == {POINT: 20}
    assert values(samples, catalogue.RESULT_LINK_LEAST) == {POINT: 10}
    assert len([sample for sample in samples if sample.labels]) == 20
    assert values(exposed(real()), catalogue.RESULT_LINK_LEAST) == {}
