"""A conductor's samples, of what a session cannot easily be brought to."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.names import LatencyKind, Operation, Outcome, RunPhase, Verdict
from plimsoll.api.operation import Latency, OperationResult, Rates
from plimsoll.api.status import CurrentTrial, Live, LiveRate, Prefill, RunState, TrialKey
from plimsoll.metrics import catalogue
from plimsoll.metrics.live import LiveView, live_snapshot, samples_of
from support.client_documents import make_plan
from support.goldens import check_against_catalogue, scraped, values
from support.results import trial

KEY = TrialKey(point="w-000", pass_number=1, attempt=2)
(POINT,) = make_plan(points=1).points
NONE = Rates(iops=0.0, bytes_per_second=0)
IDLE = LiveView(
    namespace="bench",
    run="nightly",
    now=1000.0,
    state=RunState(),
    planned=2,
    armed=0,
    measuring=0,
    attempts={},
    trial=None,
    is_running=False,
    last=None,
    gate_open=None,
)


def operation(**percentiles: int) -> OperationResult:
    latency = Latency(
        kind=LatencyKind.FULL, count=1, percentiles={name.strip("p"): value for name, value in percentiles.items()}
    )
    return OperationResult(
        operation=Operation.READ, ios=1, bytes=1, rates=NONE, whole_run=NONE, sum_of_rates=NONE, latency=latency
    )


def test_latencies_are_those_percentiles_that_the_last_trial_has() -> None:
    last = (POINT, trial(0, operation(p50=1_000_000, p90=5, p99=2_500_000)))
    point = ("bench", "nightly", "w", "w-000", "read")
    assert values(samples_of(replace(IDLE, last=last)), catalogue.LIVE_LATENCY) == {
        (*point, "0.5"): 0.001,
        (*point, "0.99"): 0.0025,
    }


def test_a_prefill_is_exposed_once_its_size_is_known() -> None:
    assert not values(samples_of(IDLE), catalogue.LIVE_PREFILL)
    state = RunState(prefill=Prefill(done_bytes=5, total_bytes=20))
    assert values(samples_of(replace(IDLE, state=state)), catalogue.LIVE_PREFILL) == {
        ("bench", "nightly", "total"): 20,
        ("bench", "nightly", "done"): 5,
    }


# Not `builds` of the models themselves: it would give the required fields twice, by name and by alias.
rates = st.builds(
    lambda operation, iops, size: LiveRate(operation=operation, iops=iops, bytes_per_second=size),
    st.sampled_from(Operation),
    st.floats(0, 2**62),
    st.integers(0, 2**62),
)
times = st.floats(0, 10**11)  # the latest time that a state may have
trials = st.builds(
    lambda label, start, end: CurrentTrial(key=KEY, label=label, clients=(0,), starts_at=start, ends_at=end),
    st.text(),
    times,
    times,
)
states = st.builds(
    RunState,
    phase=st.sampled_from(RunPhase),
    prefill=st.builds(Prefill, done_bytes=st.integers(0, 2**60), total_bytes=st.integers(0, 2**60)),
    current=st.none() | trials,
    live=st.none()
    | st.builds(
        Live, clients=st.integers(0, 500), rates=st.lists(rates, unique_by=lambda one: one.operation).map(tuple)
    ),
)
views = st.builds(
    LiveView,
    namespace=st.text(),
    run=st.text(),
    now=times,
    state=states,
    planned=st.integers(1, 500),
    armed=st.integers(0, 500),
    measuring=st.integers(0, 500),
    attempts=st.dictionaries(st.tuples(st.sampled_from(Outcome), st.sampled_from(Verdict)), st.integers(0, 2**40)),
    trial=st.none() | st.text().map(lambda label: (POINT.model_copy(update={"label": label}), KEY)),
    is_running=st.booleans(),
    last=st.none() | st.just((POINT, trial(0, operation(p50=1, p95=2)))),
    gate_open=st.none() | st.booleans(),
)


@given(views)
def test_whatever_a_conductor_knows_is_a_scrape_that_the_catalogue_describes(view: LiveView) -> None:
    families = scraped(live_snapshot(view))
    check_against_catalogue(families)
    assert sum(len(family.samples) for family in families) < 60
    elapsed = values(samples_of(view), catalogue.LIVE_TRIAL_ELAPSED).values()
    assert all(0 <= ratio <= 1 for ratio in elapsed)
