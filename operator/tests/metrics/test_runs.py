"""From a run as the API server stores it to its metrics."""

import copy
from datetime import datetime
from typing import Any

from plimsoll.metrics import catalogue
from plimsoll.metrics.catalogue import Sample
from plimsoll.metrics.objects import Exposed, run_metrics, run_samples
from support.full_documents import FULL_STATUS
from support.goldens import RUN, values

NAMES = ("plimsoll-demo", "demo-ceph")


def real(**status: Any) -> dict[str, Any]:
    """Return the run of the demo on Ceph with parts of its status replaced."""
    document = copy.deepcopy(RUN)
    document["status"] |= status
    return document


def exposed(*documents: dict[str, Any]) -> list[Sample]:
    return list(run_samples([run_metrics(document) for document in documents]))


def test_a_finished_run_is_exposed_as_kubectl_shows_it() -> None:
    status, samples = RUN["status"], exposed(RUN)
    display = status["display"]
    assert values(samples, catalogue.RUN_INFO) == {(*NAMES, display["status"], display["verdict"]): 1}
    points = status["points"]
    assert values(samples, catalogue.RUN_POINTS) == {
        (*NAMES, "planned"): points["total"],
        (*NAMES, "completed"): points["completed"],
        (*NAMES, "invalid"): points["invalid"],
    }
    for metric, field in ((catalogue.RUN_START, "startTime"), (catalogue.RUN_COMPLETION, "completionTime")):
        assert values(samples, metric) == {NAMES: datetime.fromisoformat(status[field]).timestamp()}
    assert not values(samples, catalogue.RUN_ESTIMATE)
    assert values(samples, catalogue.OPERATOR_RUNS) == {(display["status"],): 1}


def test_conditions_are_true_false_or_unknown_and_the_last_one_of_a_type_counts() -> None:
    conditions = [
        {"type": "Succeeded", "status": "Unknown", "reason": "Measuring"},
        {"type": "Admitted", "status": "True", "reason": "Admitted"},
        {"type": "Measured", "status": "False", "reason": "Old"},
        {"type": "Measured", "status": "False", "reason": "Incomplete"},
    ]
    assert values(exposed(real(conditions=conditions)), catalogue.RUN_CONDITION) == {
        (*NAMES, "Succeeded", "Measuring"): -1,
        (*NAMES, "Admitted", "Admitted"): 1,
        (*NAMES, "Measured", "Incomplete"): 0,
    }


def test_every_field_may_have_a_value() -> None:
    samples = exposed(RUN | {"status": FULL_STATUS})
    assert values(samples, catalogue.RUN_ESTIMATE)


def test_a_run_that_the_operator_has_not_seen_is_exposed() -> None:
    document = copy.deepcopy(RUN)
    del document["status"]
    samples = exposed(document)
    assert {sample.metric for sample in samples if sample.labels[:2] == NAMES} == {catalogue.RUN_INFO}
    assert values(samples, catalogue.RUN_INFO) == {(*NAMES, "", ""): 1}


def test_an_unreadable_run_is_exposed_as_such_and_spoils_nothing() -> None:
    samples = exposed(real(startTime="yesterday"))
    assert values(samples, catalogue.RUN_INFO) == {(*NAMES, "Unreadable", ""): 1}
    assert values(samples, catalogue.OPERATOR_RUNS) == {("Unreadable",): 1}


def test_of_two_runs_with_one_name_the_later_is_exposed() -> None:
    later = copy.deepcopy(RUN)
    later["metadata"]["creationTimestamp"] = "2099-01-01T00:00:00Z"
    del later["status"]
    for pair in ((RUN, later), (later, RUN)):
        assert values(exposed(*pair), catalogue.RUN_INFO) == {(*NAMES, "", ""): 1}


def test_of_too_many_runs_unfinished_ones_come_first_and_all_are_counted() -> None:
    def named(name: str, **status: Any) -> Exposed:
        return run_metrics(real(**status) | {"metadata": RUN["metadata"] | {"name": name}})

    ended = [named(f"ended-{i}", completionTime=f"2026-01-01T00:00:0{i}Z") for i in range(3)]
    active = [named("active", completionTime=None, display={"status": "Measuring"})]
    samples = list(run_samples([*ended, *active], limit=2))
    assert {labels[1] for labels in values(samples, catalogue.RUN_INFO)} == {"active", "ended-2"}
    assert values(samples, catalogue.RUNS_OMITTED) == {(): 2}
    assert values(samples, catalogue.OPERATOR_RUNS) == {(RUN["status"]["display"]["status"],): 3, ("Measuring",): 1}
