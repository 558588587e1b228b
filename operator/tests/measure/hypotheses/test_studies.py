"""The hypotheses and claims of the studies, as a user writes them, on the values that the studies published.

Single published values stand for three trials that scatter by 1 %; the studies' own scatter is mostly unknown.
"""

from typing import Any

import pytest
import yaml

from plimsoll.api.hypothesis import Hypothesis
from plimsoll.measure.hypotheses.select import MeasuredRun
from support.results import decided, point, run_of_points

SCATTER = (0.99, 1.0, 1.01)


def around(rate: float) -> list[float]:
    return [rate * one for one in SCATTER]


def written(text: str) -> Hypothesis:
    return Hypothesis.model_validate(yaml.safe_load(text))


def variants(workload: str, rates: dict[str, float], repeat: int = 1, **parameters: Any) -> list[MeasuredRun]:
    """Return runs of each variant."""
    return [
        run_of_points(point(f"{workload}-000", around(rate), **parameters), variant=name, name=f"of-{name}-{number}")
        for name, rate in rates.items()
        for number in range(repeat)
    ]


def one_run(*points: tuple[str, float, int, dict[str, Any]]) -> MeasuredRun:
    """Return a run of points: workload, rate, clients and parameters."""
    return run_of_points(
        *(
            point(f"{workload}-{n:03d}", around(rate), clients=clients, **parameters)
            for n, (workload, rate, clients, parameters) in enumerate(points)
        )
    )


def test_kit_throughput_scales_with_osds() -> None:
    """Gudu et al., figure 3: reads of 16 OSDs are 1.91 times those of 8."""
    given = written("""
      name: scales-with-osds
      left: {variant: osds-16, workload: read, quantity: bytesPerSecond}
      of: {variant: osds-8, workload: read, quantity: bytesPerSecond}
      atLeastPercent: 180
    """)
    found = decided(given, *variants("read", {"osds-8": 288, "osds-16": 1.91 * 288}))
    assert "read of osds-16 reaches 191 % (187 to 195) of the throughput of read of osds-8" in found.sentence
    assert found.verdict == "Held"


@pytest.mark.parametrize(("last", "verdict"), [(5, "Held"), (8, "Refuted")])
def test_kit_throughput_scales_with_clients_up_to_saturation(last: int, verdict: str) -> None:
    """Figure 4b: reads are at the limit of 111 MB/s per client up to 5 clients."""
    given = written(f"""
      name: scales-with-clients
      left: {{workload: rados, quantity: bytesPerSecond}}
      over: clients
      range: {{first: 1, last: {last}}}
      exponentAtLeast: "0.95"
    """)
    found = decided(given, one_run(*(("rados", 111 * min(n, 5), n, {}) for n in range(1, 9))))
    assert found.verdict == verdict


def test_kit_rbd_costs_something_over_rados() -> None:
    """Figure 5: RADOS is 6 to 23 % under RBD, so RBD does not reach at most 95 % of it."""
    given = written("""
      name: rbd-costs
      left: {workload: rbd, where: {blockSize: 4Mi}, quantity: bytesPerSecond}
      of: {workload: rados, where: {objectSize: 4Mi}, quantity: bytesPerSecond}
      atMostPercent: 95
    """)
    points = ("rbd", 355.0, 8, {"blockSize": "4Mi"}), ("rados", 309.0, 8, {"objectSize": "4Mi"})
    assert decided(given, one_run(*points)).verdict == "Refuted"


def test_kit_the_journal_on_disk_limits() -> None:
    """Figure 4: with the journal in memory, writes are twice as fast."""
    given = written("""
      name: journal-limits
      left: {variant: memory, workload: write, quantity: bytesPerSecond}
      of: {variant: disk, workload: write, quantity: bytesPerSecond}
      atLeastPercent: 150
    """)
    assert decided(given, *variants("write", {"disk": 150, "memory": 300})).verdict == "Held"


def test_ornl_rados_reaches_seventy_percent_of_raw() -> None:
    """Wang et al.: RADOS reads 7499 of 11000 MB/s, about 70 % in their words."""
    given = written("""
      name: rados-of-raw
      left: {workload: rados, quantity: bytesPerSecond}
      of: {workload: raw, quantity: bytesPerSecond}
      atLeastPercent: 65
      atMostPercent: 75
    """)
    found = decided(given, one_run(("rados", 7499, 8, {}), ("raw", 11000, 8, {})))
    assert (found.verdict, "68 %" in found.sentence) == ("Held", True)


def test_ornl_servers_scale_nearly_linearly() -> None:
    """Figure 4: four servers lose 13.6 % against four times one server."""
    given = written("""
      name: scales-with-servers
      left: {variant: servers-4, workload: rados, quantity: bytesPerSecond}
      of: {variant: servers-1, workload: rados, quantity: bytesPerSecond}
      atLeastPercent: 360
    """)
    rates = {"servers-1": 1654.0, "servers-4": 5716.0}
    undecided = decided(given, *variants("rados", rates))
    assert undecided.verdict == "Undecided", "4 % are less than three times the scatter of single trials"
    assert decided(given, *variants("rados", rates, repeat=5)).verdict == "Refuted"


def test_utsa_reads_gain_little_from_threads() -> None:
    """Zhang et al., table 5: from 2 to 16 threads the bandwidth grows from 128.23 to 142.55."""
    given = written("""
      name: threads-gain-little
      left: {workload: rados, where: {clients: 1}, quantity: bytesPerSecond}
      over: concurrency
      exponentAtMost: "0.1"
    """)
    rates = {2: 128.23, 4: 129.41, 8: 131.84, 12: 134.36, 16: 142.55}
    found = decided(given, one_run(*(("rados", rate, 1, {"concurrency": n}) for n, rate in rates.items())))
    assert (found.verdict, ", from 2 to 16; at most 0.1 was expected" in found.sentence) == ("Held", True)


def test_ctu_small_writes_of_the_array_are_faster() -> None:
    """4K writes of the 3PAR array are 31 times those of Ceph; large writes 1.4 times."""
    given = written("""
      name: array-small-writes
      left: {variant: array, workload: write, where: {blockSize: 4Ki}, quantity: iops}
      of: {variant: ceph, workload: write, where: {blockSize: 4Ki}, quantity: iops}
      atLeastPercent: 1000
    """)
    found = decided(given, *variants("write", {"ceph": 141, "array": 31 * 141}, blockSize="4Ki"))
    assert (found.verdict, "3,100 %" in found.sentence) == ("Held", True)


def test_ctu_two_tools_agree_on_latency() -> None:
    """Write latencies of ioping and fio differ by a factor of 1.7 on Ceph."""
    given = written("""
      name: ioping-agrees-with-fio
      left: {workload: ioping, quantity: iops}
      of: {workload: fio, where: {ioDepth: 1}, quantity: iops}
      atLeastPercent: 90
      atMostPercent: 110
    """)
    fio = ("fio", 141.0, 1, {"ioDepth": 1}), ("fio", 800.0, 1, {"ioDepth": 16})
    assert decided(given, one_run(("ioping", 83.0, 1, {}), *fio)).verdict == "Refuted"
