"""How large a round may be: searches for the line count with the most probes that they may make."""

from typing import Any

from plimsoll.api.suite import decode_suite
from plimsoll.suite.children import variant_plans
from plimsoll.suite.rounds.observed import size_problem
from support.specs import RUN, suite_document

LINE = {"vary": "Rate", "start": 1000, "limit": 20_000, "objectives": [{"percentile": "99", "latency": "1us"}]}


def problem(repeat: int, keep: int = 10, **more: Any) -> str:
    workload = {"name": "reads", "fio": {"ioDepth": [64], "blockSize": [512 * n for n in range(1, 26)]}} | more
    run = RUN | {"workloads": [workload], "repetitions": 1, "timeouts": {"totalSeconds": 2_000_000}}
    suite = decode_suite(suite_document(run=run, variants=[{"name": "one"}], keep=keep))
    # More repeats than the API server accepts, in place of more points.
    return size_problem(suite.spec.model_copy(update={"repeat": repeat}), [*variant_plans(suite, seed=1).values()])


def test_a_search_counts_as_40_trials() -> None:
    assert problem(10, line=LINE) == ""
    assert problem(11, line=LINE).startswith("a round would have 11,000 trials: 1,000 in 1 variant ")
    assert problem(11) == ""


def test_the_points_of_all_accepted_rounds_are_limited() -> None:
    sweep = {"fio": {"ioDepth": [*range(1, 21)], "blockSize": [512 * n for n in range(1, 21)]}}
    assert problem(3, keep=45, **sweep) == ""
    assert problem(3, keep=46, **sweep) == (
        "a round would be compared with 20,400 points of earlier ones: 400 in 1 variant, times keep 46 and 5 for slow "
        "drift; the operator keeps at most 20,000: lower keep, which deletes older rounds with their results, measure "
        "fewer points, or divide the suite"
    )
