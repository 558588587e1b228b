"""Searches for the line count with the most probes that they may make."""

from typing import Any

from plimsoll.api.suite import decode_suite
from plimsoll.suite.children import variant_plans
from plimsoll.suite.rounds.observed import size_problem
from support.specs import RUN, suite_document

LINE = {"vary": "Rate", "start": 1000, "limit": 20_000, "objectives": [{"percentile": "99", "latency": "1us"}]}


def problem(repeat: int, **more: Any) -> str:
    workload = {"name": "reads", "fio": {"ioDepth": [64], "blockSize": [512 * n for n in range(1, 26)]}} | more
    run = RUN | {"workloads": [workload], "repetitions": 1, "timeouts": {"totalSeconds": 2_000_000}}
    suite = decode_suite(suite_document(run=run, variants=[{"name": "one"}]))
    return size_problem(repeat, variant_plans(suite, seed=1).values())


def test_a_search_counts_as_40_trials() -> None:
    assert problem(10, line=LINE) == ""
    assert problem(11, line=LINE).startswith("a round would have 11,000 trials: 1,000 in 1 variant ")
    assert problem(11) == ""
