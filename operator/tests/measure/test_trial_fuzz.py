"""No document, however wrong, may end a trial: everything becomes a finding, and what is written is JSON."""

import json
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.api.model import Model
from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.ceph.watch import ClusterSample, ClusterStatus, ClusterWatch, PoolCounters
from plimsoll.measure.histogram import Histogram
from plimsoll.measure.sample import (
    Cells,
    ClientDocument,
    Clock,
    CpuUse,
    DeviceUse,
    Gaps,
    HostUse,
    LatencySample,
    LatencySlices,
    Measurement,
    MemoryUse,
    NetworkUse,
    OperationSample,
    OsdRate,
)
from plimsoll.measure.trial import measure_round
from support.client_documents import SECOND, T0, facts, latency, quiet_host

M = TypeVar("M", bound=Model)


def drawn(model: type[M], **fields: st.SearchStrategy[object]) -> st.SearchStrategy[M]:
    """Draw a document. `builds` would add the aliases of the fields as further arguments."""
    return st.fixed_dictionaries(fields).map(model.model_validate)


integers = st.one_of(st.integers(), st.integers(0, 100), st.integers(T0, T0 + 60 * SECOND), st.just(10**400))
numbers_of_any_kind = st.one_of(st.floats(), st.floats(0, 1e9))
maybe_numbers = st.one_of(st.none(), numbers_of_any_kind)
texts = st.one_of(st.none(), st.text(max_size=20), st.just(Histogram(counts={3: 7}).encode()))
any_cells = drawn(
    Cells,
    width_nanoseconds=integers,
    ios=st.lists(numbers_of_any_kind, max_size=4).map(tuple),
    bytes=st.lists(numbers_of_any_kind, max_size=4).map(tuple),
)
any_slices = drawn(
    LatencySlices, width_nanoseconds=integers, histograms=st.lists(texts.map(str), max_size=4).map(tuple)
)
any_latency = drawn(
    LatencySample,
    kind=st.sampled_from(LatencyKind),
    count=integers,
    mean_nanoseconds=numbers_of_any_kind,
    standard_deviation_nanoseconds=numbers_of_any_kind,
    min_nanoseconds=integers,
    max_nanoseconds=integers,
    histogram=texts,
)
any_operation = drawn(
    OperationSample,
    operation=st.sampled_from(Operation),
    ios=integers,
    bytes=integers,
    short_ios=integers,
    dropped_ios=integers,
    lost_ios=integers,
    latency=st.one_of(any_latency, st.just(latency(7))),
    cells=st.one_of(st.none(), any_cells),
    slices=st.one_of(st.none(), any_slices),
    submission_nanoseconds=st.one_of(st.none(), numbers_of_any_kind),
)
any_host = drawn(
    HostUse,
    seconds=numbers_of_any_kind,
    cpu=drawn(
        CpuUse,
        limit=maybe_numbers,
        used=maybe_numbers,
        throttled_seconds=maybe_numbers,
        node_busy=st.one_of(st.floats(), st.floats(0, 1)),
        node_processors=integers,
    ),
    memory=drawn(MemoryUse, used=st.one_of(st.none(), integers), node_total=integers, node_available=integers),
    network=drawn(NetworkUse, received=numbers_of_any_kind, sent=numbers_of_any_kind, link=maybe_numbers),
    device=st.one_of(
        st.none(),
        drawn(
            DeviceUse,
            number=st.text(max_size=5),
            read=numbers_of_any_kind,
            written=numbers_of_any_kind,
            busy=st.floats(0, 1),
            queue=numbers_of_any_kind,
        ),
    ),
)
any_gaps = drawn(
    Gaps,
    width_nanoseconds=integers,
    starts=st.lists(integers, max_size=3).map(tuple),
    lengths=st.lists(integers, max_size=3).map(tuple),
)
any_measurement = drawn(
    Measurement,
    tool=st.text(max_size=5),
    tool_version=st.text(max_size=5),
    started_at=integers,
    start_is_estimated=st.booleans(),
    runtime=integers,
    operations=st.lists(any_operation, max_size=3).map(tuple),
    submitters=integers,
    in_flight=st.one_of(st.none(), integers),
    bypasses_cache=st.booleans(),
    gaps=st.one_of(st.none(), any_gaps, st.just(Gaps(width_nanoseconds=10**7, starts=(5, 700), lengths=(600, 90)))),
    osds=st.lists(
        drawn(OsdRate, osd=integers, ios=integers, bytes=integers, seconds=numbers_of_any_kind), max_size=3
    ).map(tuple),
    errors=st.lists(st.text(max_size=9), max_size=3).map(tuple),
    warnings=st.lists(st.text(max_size=9), max_size=3).map(tuple),
)
any_document = drawn(
    ClientDocument,
    client=st.integers(),
    node=st.text(max_size=5),
    exit_code=integers,
    launched_at=integers,
    finished_at=integers,
    argv=st.just(()),
    measurement=st.one_of(st.none(), any_measurement),
    parse_error=st.one_of(st.none(), st.text(max_size=9)),
    stderr_tail=st.text(max_size=9),
    data_set_bytes=integers,
    host=st.one_of(st.none(), st.just(quiet_host()), any_host),
    foreign_target=st.text(max_size=9),
    clock=st.one_of(st.none(), drawn(Clock, offset=numbers_of_any_kind, error=numbers_of_any_kind)),
)


counts = st.integers(0, 2**63 - 1)
any_counters = st.builds(PoolCounters, reads=counts, writes=counts, read_bytes=counts, written_bytes=counts)
any_status = st.builds(
    ClusterStatus,
    health=st.text(max_size=9),
    checks=st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=2),
    pg_states=st.dictionaries(st.text(max_size=9), counts, max_size=2),
    osds=counts,
    osds_up=counts,
    osds_in=counts,
    osds_up_since=st.text(max_size=3),
    osds_in_since=st.text(max_size=3),
    remapped_pgs=counts,
    recovering_bytes_per_second=counts,
    used_bytes=counts,
    total_bytes=counts,
)
any_sample = st.builds(
    ClusterSample,
    at=st.one_of(integers, st.integers(T0, T0 + 60 * SECOND)),
    status=st.one_of(st.none(), any_status),
    pools=st.dictionaries(st.sampled_from(["ours", "other", ".mgr"]), any_counters),
    problem=st.text(max_size=9),
)
any_watch = st.one_of(
    st.none(),
    st.lists(any_sample, max_size=6).map(
        lambda found: ClusterWatch(samples=tuple(sorted(found, key=lambda one: one.at)), pools=("ours",))
    ),
)


@given(st.dictionaries(st.integers(0, 5), any_document, max_size=5), st.booleans(), any_watch)
@settings(deadline=None)  # slow under load, not stuck
def test_no_document_makes_it_raise_or_write_what_is_not_json(
    documents: dict[int, ClientDocument],
    windowed: bool,  # noqa: FBT001  # drawn, not passed by hand
    watch: ClusterWatch | None,
) -> None:
    planned = facts(4, windowed=windowed, network_bytes_per_second=10**9, cluster=watch)
    numbers = measure_round(planned, documents)
    assert numbers.verdict is not Verdict.VALID or len(documents) >= 4
    whole = (numbers.window, numbers.stalls, numbers.osds, numbers.cluster)
    for model in (*numbers.findings, *numbers.operations, *numbers.slowest, *whole):
        if model is not None:
            json.dumps(model.model_dump(mode="json"), allow_nan=False)
