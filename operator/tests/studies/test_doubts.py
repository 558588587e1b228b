"""What Plimsoll's checks say of published values, as `docs/how-to/studies.md` tells it."""

from pathlib import Path

import pytest

from plimsoll.api.names import Verdict
from plimsoll.measure.checks.hosts import cache_sized, faster_than_network
from plimsoll.measure.checks.load import littles_law
from plimsoll.measure.checks.outliers import judge_links
from plimsoll.measure.histogram import MINIMUM_BEYOND
from plimsoll.measure.matrix import MatrixCell
from plimsoll.studies.library import load_study
from plimsoll.studies.model import Published, Unit

GUIDE = (Path(__file__).parents[3] / "docs" / "how-to" / "studies.md").read_text()
MIB = {Unit.KIBIBYTES_PER_SECOND: 1 / 2**10, Unit.MEBIBYTES_PER_SECOND: 1}
RANDOM_SECONDS = 60
DD_SECONDS = 10
PERCENTILE_OPERATIONS = 100 * MINIMUM_BEYOND  # fewer have no 99th percentile
BLOCKS_MIB = {"4 KiB": 4 / 2**10, "128 KiB": 1 / 8, "1 MiB": 1, "4 MiB": 4, "16 MiB": 16}


def values(study: str, experiment: str, quantity: str) -> list[Published]:
    found = [
        one
        for one in load_study(study).values
        if (one.experiment, one.quantity) == (f"{study.upper()}-{experiment}", quantity)
    ]
    assert found
    return found


def by_threads(table: str, quantity: str) -> dict[int, float]:
    return {int(one.conditions["threads"]): one.value for one in values("utsa", table, quantity)}


def outliers(rounds: list[list[Published]], server: str) -> list[tuple[str, str]]:
    """Return the pairs that are outliers: client and server; `server` is the condition that names the latter."""
    pairs = [(str(one.conditions["client"]), str(one.conditions[server])) for cells in rounds for one in cells]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(name for pair in pairs for name in pair))}
    given = [[_cell(one, server, numbers) for one in cells] for cells in rounds]
    marked, _ = judge_links(given)
    return [(cell.client_node, cell.peer_node) for cell in marked if cell.is_outlier]


def _cell(one: Published, server: str, numbers: dict[str, int]) -> MatrixCell:
    client, peer = f"client {one.conditions['client']}", f"server {one.conditions[server]}"
    return MatrixCell(
        client=numbers[str(one.conditions["client"])],
        peer=numbers[str(one.conditions[server])],
        client_node=client,
        peer_node=peer,
        bytes_per_second=one.value * 1e6,
        iops=0,
    )


def test_utsa_netcat_has_outliers_and_iperf_has_none() -> None:
    iperf, netcat = (
        [[one] for one in values("utsa", table, f"throughput with {tool}")]
        for table, tool in (("T8", "iperf"), ("T9", "netcat"))
    )
    assert outliers(iperf, "osd") == []
    found = outliers(netcat, "osd")
    assert [f"{client} to {server}" for client, server in found] == [
        "client 1 to server 2",
        "client 1 to server 3",
        "client 2 to server 2",
        "client 3 to server 3",
        "client 5 to server 2",
        "client 7 to server 3",
    ]
    assert f"| {len(found)} of 24 cells are below 70 %" in GUIDE


@pytest.mark.parametrize("table", ["T5", "T6"])
def test_utsa_had_another_number_of_operations_in_flight_than_its_threads(table: str) -> None:
    count = by_threads(table, {"T5": "reads", "T6": "writes"}[table])
    seconds = by_threads(table, "time")
    # The rows of table 6 are swapped.
    latency = by_threads(table, {"T5": "mean latency", "T6": "maximum latency"}[table])
    in_flight = {threads: count[threads] / seconds[threads] * latency[threads] for threads in count}
    assert all(
        littles_law.verdict(100 * abs(found / threads - 1)) is Verdict.SUSPECT
        for threads, found in in_flight.items()
        if (table, threads) != ("T6", 16)
    )
    low, high = min(in_flight.values()), max(in_flight.values())
    assert f"{table[1]} had {low:.0f} to {high:.0f} in flight at all numbers of threads" in GUIDE


def test_utsa_has_too_few_operations_for_percentiles() -> None:
    counts = [*by_threads("T5", "reads").values(), *by_threads("T6", "writes").values()]
    assert max(counts) < PERCENTILE_OPERATIONS


def test_utsa_copies_of_small_files_are_too_short() -> None:
    short = [one for one in values("utsa", "T2", "time") if one.value < DD_SECONDS]
    assert {one.conditions["size"] for one in short} == {"128 MB", "256 MB"}
    assert f"{len(short)} of 24 copies take less than 10 s" in GUIDE


@pytest.mark.parametrize(("data", "memory"), [(1000e6, 4e9), (8, 6)], ids=["utsa's files", "ornl's blocks"])
def test_data_of_which_memory_holds_more_than_half_is_suspect(data: float, memory: float) -> None:
    assert cache_sized.verdict(100 * min(1, memory / data)) is Verdict.SUSPECT


def test_ctu_reads_faster_than_the_measured_link() -> None:
    links = [one.value for one in values("ctu", "NET", "throughput") if one.conditions["pair"] != "4 to 4"]
    link = max(links) * 1e9 / 8 / 2**20
    reads = [
        one.value
        for study in ("SEQ4", "SEQ16")
        for one in values("ctu", study, "mean throughput")
        if (one.conditions["system"], one.conditions["operation"]) == ("Ceph", "read")
    ]
    beyond = [read for read in reads if faster_than_network.verdict(100 * read / link) is Verdict.INVALID]
    assert beyond == [1184]
    assert f"1184 of {link:.0f} MiB/s, {100 * 1184 / link:.1f} %" in GUIDE


def test_ctu_unwritten_space_is_read_faster_than_the_link() -> None:
    (ceph,) = [one.value for one in values("ctu", "EMPTY", "throughput") if one.conditions["system"] == "Ceph"]
    assert faster_than_network.verdict(100 * ceph / 1192.1) is Verdict.INVALID


def test_ctu_random_io_of_large_blocks_has_too_few_operations() -> None:
    few = [
        one
        for one in values("ctu", "RAND", "throughput")
        if one.value * MIB[one.unit] / BLOCKS_MIB[str(one.conditions["blockSize"])] * RANDOM_SECONDS
        < PERCENTILE_OPERATIONS
    ]
    assert f"{len(few)} of 1800 cells have fewer than 1000 operations in 60 s" in GUIDE
    assert f"{len([one for one in few if one.conditions['blockSize'] == '16 MiB'])} of them with 16 MiB" in GUIDE


def test_ctu_bonds_have_outliers() -> None:
    """One test has cells of 97 Mbit/s."""
    cells = [
        one
        for one in values("ctu", "BOND", "throughput")
        if (one.conditions["policy"], one.conditions["test"]) == ("layer2+3", 2)
    ]
    assert [server for _, server in outliers([cells], "server")] == ["server srv2", "server srv3"]


@pytest.mark.parametrize("experiment", ["NFS", "ISCSI-MD"])
def test_blog_reads_faster_than_its_network(experiment: str) -> None:
    (read,) = values("blog", experiment, "sequential read throughput")
    assert faster_than_network.verdict(100 * read.value / 125) is Verdict.INVALID
    assert f"{read.value:.0f} of 125 MB/s, {100 * read.value / 125:.0f} %" in GUIDE
