"""A user's own shares of limits, from results with the rates of KIT's test bed."""

from collections.abc import Sequence

import pytest

from plimsoll.api.names import Operation, Verdict
from plimsoll.api.result import BenchmarkResult
from plimsoll.cli.layers import layers_of
from plimsoll.studies.library import load_study
from plimsoll.studies.model import OwnShare, compare_with_study
from support.results import READ, WRITE, layer_result, osds

READS = "RADOS reads of the limit of the network"
RBD_WRITES = "RBD writes of the limit of OSDs and network"
MEGABYTE = 10**6


def measured(tool: str, operation: Operation, rate: float, clients: int = 1) -> BenchmarkResult:
    """Return the result of a point: MB/s of all clients."""
    point = f"{tool}-{operation}-{clients}"
    one = layer_result(point, tool, {operation: (rate * MEGABYTE, 1)}, osds=OSDS if tool == "osdBench" else None)
    spec = one.spec.model_copy(update={"clients": clients, "parameters": PARAMETERS.get(tool, {})})
    return one.model_copy(update={"spec": spec})


OSDS = osds(20, 60 * MEGABYTE, 15)
PARAMETERS = {"iperf3": {"direction": "Send"}}


def own_share(name: str, results: Sequence[BenchmarkResult]) -> OwnShare:
    """Return a share of KIT that its variant osds-all has measured, on a disk of 1,500 MB/s and with one replica."""
    disk = [measured("dd", WRITE, 1500)]
    found = compare_with_study(
        load_study("kit"),
        ["osds-all", "disk"],
        [],
        {"osds-all": results, "disk": disk},
        layers_of,
    )
    (share,) = [one for one in found.shares if one.name == name]
    return share.own


@pytest.mark.parametrize(
    ("iperf3", "netcat", "clients", "rate", "limit"),
    [(111, 60, 3, 285, 333), (1147.585, 388.522, 2, 733.383, 2295.17)],
    ids=["1 Gbit/s", "as recorded on the test cluster"],
)
def test_netcat_sets_no_limit_of_reads(iperf3: float, netcat: float, clients: int, rate: float, limit: float) -> None:
    links = [measured("iperf3", WRITE, iperf3), measured("netcat", READ, netcat)]
    own = own_share(READS, [*links, measured("radosBench", READ, rate, clients)])
    assert own.limit == pytest.approx(limit * MEGABYTE)
    assert own.value == pytest.approx(rate / limit)


def test_a_limit_is_that_of_the_clients_behind_the_best_rate_of_the_layer_itself() -> None:
    """RADOS is at its best with 5 clients, which the network lets write 555 MB/s, and RBD with 8 clients, at 888."""
    results = [
        measured("iperf3", WRITE, 111),
        measured("radosBench", WRITE, 480, 5),
        measured("radosBench", WRITE, 470, 8),
        measured("fio", WRITE, 790, 8),
    ]
    own = own_share(RBD_WRITES, results)
    assert own.limit == pytest.approx(888 * MEGABYTE)
    assert own.value == pytest.approx(790 / 888)


def suspect(one: BenchmarkResult) -> BenchmarkResult:
    return one.model_copy(update={"status": one.status.model_copy(update={"verdict": Verdict.SUSPECT})})


@pytest.mark.parametrize("doubtful", ["iperf3", "radosBench", "osdBench"])
def test_a_share_rests_on_the_points_behind_its_limit_too(doubtful: str) -> None:
    results = [measured("iperf3", WRITE, 111), measured("osdBench", WRITE, 1200), measured("radosBench", READ, 285, 3)]
    marked = [suspect(one) if one.spec.tool == doubtful else one for one in results]
    assert own_share(READS, marked).is_suspect is (doubtful != "osdBench"), "OSDs set no limit of reads"
    assert not own_share(READS, results).is_suspect
