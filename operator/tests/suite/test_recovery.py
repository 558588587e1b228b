"""Rounds of a suite whose workload takes OSDs away."""

from collections.abc import Sequence

import pytest

from plimsoll.api.names import Metric
from plimsoll.api.suite import Allowance
from plimsoll.api.suite_status import Conclusion
from plimsoll.suite.evaluation import projected, rule_of
from plimsoll.suite.judging import judge
from plimsoll.suite.measured import MeasuredRound, measured_round
from report.test_disturbance import disturbed
from support.results import result


def _round(minute: int, runs: int, clean: Sequence[float | None]) -> MeasuredRound:
    """Return a round as the operator reads it, each run with trials that recovered after these seconds."""
    trials = [disturbed(number, clean=seconds) for number, seconds in enumerate(clean)]
    results = [[result(trials, run=f"r{minute}-{number}")] for number in range(runs)]
    stored = [
        [projected(each.model_dump(mode="json", by_alias=True, exclude_none=True)) for each in run] for run in results
    ]
    return measured_round(minute=minute, digest="d", repeat=runs, runs={"v": stored})


@pytest.mark.parametrize("runs", [1, 3])
@pytest.mark.parametrize(
    ("clean", "conclusion"),
    [
        ((30.0, 31.0, 32.0), Conclusion.NO_REGRESSION),
        ((60.0, 62.0, 64.0), Conclusion.REGRESSION),
        ((30.0, 31.0, None), Conclusion.INCONCLUSIVE),
        ((None, None, None), Conclusion.INCONCLUSIVE),
    ],
)
def test_a_round_judges_the_time_to_recover(clean: Sequence[float | None], conclusion: Conclusion, runs: int) -> None:
    earlier = [_round(minute, runs, [each + minute / 10 for each in (30.0, 31.0, 32.0)]) for minute in range(1, 6)]
    rule = rule_of(Allowance(rate_percent=10, latency_percent=25))
    (judgement,) = judge(earlier, earlier, _round(9, runs, clean), ["v"], rule).variants
    assert judgement.conclusion is conclusion
    metrics = {change.group.metric for change in judgement.judged}
    assert metrics >= {Metric.DURING, *([Metric.RECOVERY] if None not in clean else [])}
    if None in clean:
        assert "a gating metric has no value, or is 0, in a run: w-000" in judgement.reasons
