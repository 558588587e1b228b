"""Hypotheses on lines are decided on the intervals of searches, or on repeated runs."""

import pytest

from plimsoll.api.hypothesis import Hypothesis
from plimsoll.api.line import Line, Vary
from plimsoll.api.names import Metric
from plimsoll.api.suite_status import HypothesisVerdict
from plimsoll.measure.hypotheses.decide import Decision, Unit, decide
from plimsoll.measure.hypotheses.select import MeasuredRun, measured_run
from plimsoll.report.suite import estimate_texts
from support.results import SEARCH, above, below, decided, hypothesis, line, point, searched, trials_at


def _asked(percent: int = 90, quantity: str = "line") -> Hypothesis:
    left, of = ({"workload": name, "quantity": quantity} for name in ("rbd", "rados"))
    return hypothesis(left=left, of=of, atLeastPercent=percent)


def _run(rbd: Line | None, rados: Line | None, number: int = 1) -> MeasuredRun:
    results = [searched(found, run=f"r{number}", point=f"{name}-0") for name, found in (("rbd", rbd), ("rados", rados))]
    return measured_run("v", f"r{number}", results)


def _decided(rbd: Line | None, rados: Line | None, percent: int = 90) -> Decision:
    return decided(_asked(percent), _run(rbd, rados))


@pytest.mark.parametrize(
    ("load", "verdict"),
    [
        (12_100, HypothesisVerdict.HELD),
        (11_800, HypothesisVerdict.UNDECIDED),
        (11_000, HypothesisVerdict.UNDECIDED),
        (9_600, HypothesisVerdict.REFUTED),
    ],
)
def test_one_run_is_decided_on_the_intervals(load: float, verdict: HypothesisVerdict) -> None:
    found = _decided(line(load), line(12_000))
    assert found.verdict is verdict
    assert found.estimate == pytest.approx(load / 12_000)
    assert (found.unit, found.replicates) == (Unit.PROBE, (20, 20))
    assert found.notes == ("noise between runs is not counted; it is if each variant has at least 3 runs",)
    assert f"% ({100 * (found.low or 0):.0f} to" in found.sentence
    assert "of the line of rados" in found.sentence


def test_an_undecided_hypothesis_needs_narrower_intervals() -> None:
    assert "precisionPercent" in _decided(line(11_000), line(12_000)).reasons[0]
    reason = "lines of fewer than 3 runs have an error of 3.5 % and decide only on an effect of more than 3 times that"
    assert _decided(line(11_800), line(12_000)).reasons[0].startswith(reason)


def test_three_runs_show_the_noise_between_them() -> None:
    runs = [_run(line(load), line(12_000), number) for number, load in enumerate((11_900, 12_000, 12_100))]
    (found,) = decide(_asked(), runs)
    assert (found.unit, found.replicates, found.verdict) == (Unit.RUN, (3, 3), HypothesisVerdict.HELD)
    apart = [_run(line(load), line(12_000), number) for number, load in enumerate((9_000, 12_000, 15_000))]
    assert decide(_asked(), apart)[0].verdict is HypothesisVerdict.UNDECIDED


@pytest.mark.parametrize(
    ("rbd", "rados", "verdict", "words"),
    [
        (above(), line(150_000), HypothesisVerdict.HELD, "rbd reaches at least 127"),
        (line(150_000), above(), HypothesisVerdict.REFUTED, "rbd reaches at most 79"),
        (below(), line(12_000), HypothesisVerdict.REFUTED, "rbd reaches at most 0.0088 % of"),
        (line(12_000), below(), HypothesisVerdict.HELD, "rbd reaches at least 1"),
        (above(), below(), HypothesisVerdict.HELD, "rbd reaches at least 2"),
    ],
)
def test_a_bound_decides_what_it_can(rbd: Line, rados: Line, verdict: HypothesisVerdict, words: str) -> None:
    found = _decided(rbd, rados)
    assert found.verdict is verdict
    assert found.sentence.startswith(words)
    assert found.estimate is None
    assert (found.low is None) != (found.high is None)
    assert found.reasons == ()
    assert estimate_texts(found)[0] == "-"
    assert estimate_texts(found)[1] in found.sentence


@pytest.mark.parametrize(
    ("rbd", "rados"), [(above(), above()), (below(), below()), (above(), line(195_000)), (line(195_000), above())]
)
def test_a_bound_that_decides_nothing_says_what_to_change(rbd: Line, rados: Line) -> None:
    found = _decided(rbd, rados, percent=105 if rados.estimate else 90)
    assert found.verdict is HypothesisVerdict.UNDECIDED
    assert "raise limit, or lower start" in found.reasons[0]


def test_runs_without_an_estimate_do_not_show_the_noise_between_them() -> None:
    (found,) = decide(_asked(), [_run(above(), line(12_000), number) for number in range(3)])
    assert found.verdict is HypothesisVerdict.UNDECIDED
    assert "raise limit" in found.reasons[0]


@pytest.mark.parametrize("missing", [line(12_000, ending=None), None])
def test_without_an_interval_nothing_is_decided(missing: Line | None) -> None:
    found = _decided(missing, line(12_000))
    assert found.verdict is HypothesisVerdict.UNDECIDED
    assert found.estimate is None
    assert "rbd-0 of run r1" in found.reasons[0]


def test_a_search_has_no_other_quantity() -> None:
    found = decided(_asked(quantity="iops"), _run(line(12_000), line(12_000)))
    assert "choose line" in found.reasons[0]


def test_a_point_at_one_load_has_no_line() -> None:
    results = [searched(line(12_000), run="r1", point="rbd-0"), point("rados-0", trials_at([98, 99, 100]))]
    found = decided(_asked(), measured_run("v", "r1", results))
    assert "rados-0 of run r1 does not search for the line" in found.reasons[0]


def test_different_loads_have_no_ratio() -> None:
    other = SEARCH.model_copy(update={"vary": Vary.DEPTH})
    results = [
        searched(line(12_000), run="r1", point="rbd-0"),
        searched(line(12_000), run="r1", point="rados-0", search=other),
    ]
    found = decided(_asked(), measured_run("v", "r1", results))
    assert found.reasons == ("the searches vary different loads (Depth and Rate), so their lines have no ratio",)


@pytest.mark.parametrize(("storm", "verdict"), [(9_600, HypothesisVerdict.HELD), (6_000, HypothesisVerdict.REFUTED)])
def test_the_storm_line_is_compared_with_the_calm_line(storm: float, verdict: HypothesisVerdict) -> None:
    results = [searched(line(12_000), point="w-000"), searched(line(storm), point="w-000-storm")]
    left, of = ({"workload": "w", "quantity": "line", "where": {"storm": it}} for it in (True, False))
    given = hypothesis(left=left, of=of, atLeastPercent=60)
    found = decided(given, measured_run("v", "r1", results))
    assert found.verdict is verdict
    assert found.estimate == pytest.approx(storm / 12_000)
    of_probes = given.model_copy(update={"left": given.left.model_copy(update={"quantity": Metric.RECOVERY})})
    assert (
        "so its trials have different loads; choose line"
        in decided(of_probes, measured_run("v", "r1", results)).reasons[0]
    )
