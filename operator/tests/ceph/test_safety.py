"""What keeps a run from harming its cluster."""

from dataclasses import replace

import pytest

from plimsoll.ceph.environment import Outputs, fill_of
from plimsoll.ceph.safety import Fill, fill_problem, quota_bytes, quota_message, risk_message, risks
from support.goldens import CEPH_VERSIONS, CRUSH_RULES, ceph

GIB = 2**30
AT_60 = Fill(fullest=0.6, full=0.95, available_bytes=350 * GIB)  # one GiB of data is a thousandth of each OSD


@pytest.mark.parametrize(
    ("fill", "data", "percent", "fits"),
    [
        (AT_60, 0, 70, True),
        (AT_60, 99 * GIB, 70, True),
        (AT_60, 110 * GIB, 70, False),
        (AT_60, 110 * GIB, 72, True),
        (AT_60, 0, 59, False),
        (replace(AT_60, fullest=0.71), 0, 70, False),
        (replace(AT_60, available_bytes=0), 0, 70, True),
        (replace(AT_60, available_bytes=0), GIB, 70, False),
    ],
)
def test_data_fits_if_no_osd_ends_above_the_limit(fill: Fill, data: int, percent: int, *, fits: bool) -> None:
    assert (fill_problem(fill, data, percent=percent) == "") == fits


@pytest.mark.parametrize(("fullest", "other"), [(0.6, 0.2), (0.6, 0.59), (0.3, 0.0)])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_no_osd_ends_fuller_than_predicted(fullest: float, other: float, share: float) -> None:
    """Whichever of two OSDs is full first, by the part of the data that CRUSH gives it."""
    full, size = 0.95, 1000 * GIB
    used = {fullest: share, other: 1 - share}
    available = int(min((full - part) * size / weight for part, weight in used.items()))
    predicted = Fill(fullest=fullest, full=full, available_bytes=available)
    for data in (0, available // 3, available):
        ends = [part + data * weight / size for part, weight in used.items()]
        assert max(ends) <= predicted.after(data) + 1e-9
    assert max(ends) == pytest.approx(predicted.after(available))


def test_a_refusal_has_the_numbers_and_the_field() -> None:
    assert fill_problem(AT_60, 110 * GIB, percent=70) == (
        "spec.limits.fillPercent is 70, but the run's volumes (110Gi without copies, of 350Gi that the pool can take) "
        "would fill the fullest OSD from 60.0% to 71.0%; decrease spec.storage.volume.size or spec.clients.count, "
        "delete data, add OSDs, or raise the limit"
    )
    assert "spec.storage" not in fill_problem(AT_60, 0, percent=50)


@pytest.mark.parametrize(
    ("fill", "volumes", "quota"),
    [
        (AT_60, 0, 100 * GIB),
        (AT_60, 50 * GIB, 100 * GIB),
        (AT_60, 100 * GIB, 110 * GIB),
        (replace(AT_60, fullest=0.8), 0, 0),
        (replace(AT_60, fullest=0.97), 10 * GIB, 11 * GIB),
    ],
)
def test_a_quota_is_the_room_below_the_limit_and_above_what_the_volumes_hold(
    fill: Fill, volumes: int, quota: int
) -> None:
    assert quota_bytes(fill, volumes, percent=70) == pytest.approx(quota, abs=2**20)


@pytest.mark.parametrize(
    ("checks", "stop_on", "found"),
    [
        ({"OSD_NEARFULL", "MON_DOWN", "SLOW_OPS"}, (), {"OSD_NEARFULL", "MON_DOWN"}),
        ({"OSD_BACKFILLFULL", "OSD_FULL", "POOL_FULL"}, (), {"OSD_BACKFILLFULL", "OSD_FULL", "POOL_FULL"}),
        ({"SLOW_OPS", "OSD_DOWN"}, ("SLOW_OPS",), {"SLOW_OPS"}),
        (set(), ("SLOW_OPS",), set()),
    ],
)
def test_only_some_health_checks_are_risks(checks: set[str], stop_on: tuple[str, ...], found: set[str]) -> None:
    assert risks(checks, stop_on) == found


@pytest.mark.parametrize(
    ("appeared", "remedy"),
    [
        ({"OSD_NEARFULL", "MON_DOWN"}, "; bring monitors back, delete data, add OSDs, or lower what the run writes"),
        ({"SLOW_OPS"}, "; lower the load, or remove the check from spec.gates.stopOn"),
    ],
)
def test_a_risk_is_named_with_its_remedy(appeared: set[str], remedy: str) -> None:
    message = risk_message(appeared)
    assert message.startswith(f"{', '.join(sorted(appeared))} appeared while the run loaded the cluster")
    assert message.endswith(remedy)


def test_a_full_pool_is_named_with_its_remedy() -> None:
    assert quota_message(("p",)).startswith("pool p has reached its quota, where all writes hang; have the run write")


@pytest.mark.parametrize(
    ("version", "pool", "fullest", "available"),
    [
        (CEPH_VERSIONS[0], "golden", 0.0076375, 8094832128),
        (CEPH_VERSIONS[1], "golden-data", 0.025043, 15890639872),
    ],
)
def test_how_full_a_pool_s_osds_are_is_read(version: str, pool: str, fullest: float, available: int) -> None:
    outputs = Outputs(
        osd_tree=ceph("osd-tree", version),
        osd_df=ceph("osd-df", version),
        osd_dump=ceph("osd-dump", version),
        df_detail=ceph("df-detail", version),
        pools=ceph("osd-pool-ls-detail", version),
        crush_rules=CRUSH_RULES,
    )
    fill = fill_of(outputs, pool)
    assert fill is not None
    assert fill.fullest == pytest.approx(fullest, rel=1e-3)
    assert fill.full == pytest.approx(0.95)
    assert fill.available_bytes == available
    for incomplete in (replace(outputs, osd_df=""), replace(outputs, osd_dump=""), replace(outputs, df_detail="")):
        assert fill_of(incomplete, pool) is None
    assert fill_of(outputs, "another") is None
