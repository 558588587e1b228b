"""What reads are read from, beside the memory of the OSDs."""

from pathlib import Path

import pytest

from plimsoll.api.surroundings import ClusterSummary
from plimsoll.measure.cluster import data_set_text
from plimsoll.tools.base import Output
from plimsoll.tools.rados_bench import RADOS_BENCH, RadosBenchParameters, RadosOperation

GIB = 2**30
GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize(
    ("memory", "text"),
    [(48 * GIB, "of 12 GiB, 25 % of the OSDs' memory"), (None, "of 12 GiB, the OSDs' memory is unknown")],
)
def test_a_label_says_what_reads_are_read_from(memory: int | None, text: str) -> None:
    cluster = ClusterSummary(samples=1, failed=0, data_set_bytes=12 * GIB, osd_memory_bytes=memory)
    assert data_set_text([None, cluster]) == text


def test_a_label_says_nothing_of_writes_and_without_ceph() -> None:
    assert data_set_text([None]) == ""
    assert data_set_text([ClusterSummary(samples=1, failed=0, osd_memory_bytes=GIB)]) == ""


def test_rados_bench_says_what_it_wrote_to_be_read() -> None:
    stdout = (GOLDEN / "ceph-18.2" / "rados-bench-write.txt").read_text()
    output = Output(exit_code=0, stdout=stdout, stderr="", files={})
    parameters = RadosBenchParameters(operation=RadosOperation.RAND, object_size=4 * 2**20)
    assert RADOS_BENCH.prepared_bytes(parameters, output) == 250 * 4 * 2**20
    assert RADOS_BENCH.prepared_bytes(parameters, Output(exit_code=0, stdout="", stderr="", files={})) is None
