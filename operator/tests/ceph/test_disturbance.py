"""Which OSDs a disturbance takes away, in a map of hosts with two OSDs each."""

import json
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from plimsoll.api.status import OsdsSeen
from plimsoll.ceph.disturbance import NotDisturbableError, check_now, chosen_osds, is_too_much
from plimsoll.ceph.environment import Outputs
from plimsoll.ceph.watch import ClusterStatus, Outage, parse_status
from support.ceph_programs import GOLDEN

POOLS = json.loads((GOLDEN / "osd-pool-ls-detail.json").read_text())
STEPS = [{"op": "take", "item": -1, "item_name": "default"}, {"op": "chooseleaf_firstn", "num": 0, "type": "host"}]


def outputs(
    *,
    hosts: int = 3,
    used: float = 10.0,
    out: Collection[int] = (),
    noup: Collection[int] = (),
    empty: Collection[int] = (),
    stretched: bool = False,
) -> Outputs:
    """Return the cluster's answers: OSDs 0 and 1 are on host 0, and so on; each is `used` percent full.

    Those that are `empty` hold other pools only.
    """
    osds = range(2 * hosts)
    nodes: list[dict[str, Any]] = [
        {"id": -1, "name": "default", "type": "root", "children": [-2 - host for host in range(hosts)]},
        *(
            {"id": -2 - host, "name": f"host-{host}", "type": "host", "children": [2 * host, 2 * host + 1]}
            for host in range(hosts)
        ),
        *(
            {"id": osd, "name": f"osd.{osd}", "type": "osd", "device_class": "ssd", "status": "up", "reweight": weight}
            for osd in osds
            for weight in (0 if osd in out else 1,)
        ),
    ]
    filled = [
        {"id": osd, "kb": 2**20, "utilization": used, "pgs": 8, "status": "up", "reweight": 0 if osd in out else 1}
        for osd in osds
    ]
    flags = [{"osd": osd, "state": ["exists", "up", *(["noup"] if osd in noup else [])]} for osd in osds]
    rules = [{"rule_id": number, "rule_name": f"rule-{number}", "steps": STEPS} for number in range(2)]
    groups = [
        {"pgid": f"{pool['pool_id']}.{osd:x}", "acting": [osd, 2**31 - 1]}
        for pool in POOLS
        for osd in osds
        if pool["pool_name"] != "golden-data" or osd not in empty
    ]
    sites = {"size": 4, "min_size": 2, "peering_crush_bucket_count": 2} if stretched else {}
    return Outputs(
        osd_tree=json.dumps({"nodes": nodes}),
        osd_df=json.dumps({"nodes": filled}),
        osd_dump=json.dumps({"osds": flags}),
        pools=json.dumps([{**pool, **sites} for pool in POOLS]),
        crush_rules=json.dumps(rules),
        groups=json.dumps({"pg_stats": groups}),
    )


def chosen(outputs: Outputs, count: int, fill_percent: int = 70) -> tuple[int, ...]:
    pools = ("golden", "golden-data")
    return chosen_osds(outputs, pools=pools, neighbours=(), count=count, fill_percent=fill_percent)


@pytest.mark.parametrize(
    ("state", "count", "expected"),
    [
        ({}, 1, (0,)),
        ({}, 2, (0, 1)),
        ({"noup": [0]}, 1, (1,)),
        ({"noup": [0]}, 2, (2, 3)),
        ({"out": [0, 2]}, 2, (4, 5)),
        ({"empty": [0, 1]}, 1, (2,)),
        ({"empty": [0]}, 2, (2, 3)),
        ({"stretched": True}, 2, (0, 1)),
        ({"used": 60.0}, 2, (0, 1)),  # with three copies on three hosts, the data of a whole host goes nowhere
        ({"used": 50.0, "hosts": 4}, 1, (0,)),
        ({"used": 34.0}, 1, (0,)),
    ],
)
def test_the_first_available_osds_of_one_failure_domain_are_chosen(
    state: dict[str, Any], count: int, expected: tuple[int, ...]
) -> None:
    assert chosen(outputs(**state), count) == expected


@pytest.mark.parametrize(
    ("state", "count", "words"),
    [
        # The other OSD of its host has to take over everything.
        (
            {"used": 36.0},
            1,
            r"osd\.0 .* would be 72\.0% full \(spec\.limits\.fillPercent is 70\); delete",
        ),
        ({"used": 62.0, "hosts": 4}, 1, r"they would be 70\.9% full"),
        ({}, 3, r"osd\.0, osd\.1, osd\.2 .* \(size 3, min_size 2\), and they are in 2; lower disturb\.osds\.count"),
        ({"noup": [0, 3, 5]}, 2, r"osd\.1, osd\.2 .* and they are in 2; lower"),
        (
            {"noup": [0, 1, 2, 3, 5]},
            2,
            r"count is 2, but the number of OSDs that are up and in and hold placement groups of pool golden-data is 1",
        ),
        ({"empty": range(1, 6)}, 2, r"hold placement groups of pool golden-data is 1; lower it, or use a pool with"),
        ({"stretched": True, "empty": [0, 3, 5]}, 2, r"osd\.1, osd\.2 .* might lose all copies in one of them; set"),
    ],
)
def test_osds_that_the_cluster_cannot_spare_are_refused(state: dict[str, Any], count: int, words: str) -> None:
    with pytest.raises(NotDisturbableError, match=words):
        chosen(outputs(**state), count)


MOST = OsdsSeen(up=3, members=3)
HEALTHY = parse_status((GOLDEN / "status-healthy.json").read_text())


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (HEALTHY, ""),
        (
            replace(HEALTHY, pg_states={"active+clean+laggy": 1, "active+clean": 40, "active+remapped+backfilling": 1}),
            "",
        ),
        (None, "Ceph did not report its status"),
        (replace(HEALTHY, osds_up=2), "other OSDs were down or out"),
        (replace(HEALTHY, osds_in=2), "other OSDs were down or out"),
        (replace(HEALTHY, pg_states={"active+undersized+degraded": 2}), r"not active\+clean just before \(2 active"),
    ],
)
def test_osds_stay_if_the_cluster_has_lost_something_just_before(status: ClusterStatus | None, words: str) -> None:
    if not words:
        check_now(status, MOST)
        return
    with pytest.raises(NotDisturbableError, match=words):
        check_now(status, MOST)


@pytest.mark.parametrize(
    ("action", "up", "members", "expected"),
    [
        ("Down", 3, 3, False),
        ("Down", 2, 3, False),
        ("Down", 2, 2, False),
        ("Down", 1, 3, True),
        ("Out", 3, 2, False),
        ("Out", 3, 1, True),
        ("Out", 2, 2, True),
    ],
)
def test_an_outage_ends_if_more_osds_are_missing(action: Any, up: int, members: int, *, expected: bool) -> None:
    outage = Outage(osds=(0,), action=action)
    assert is_too_much(replace(HEALTHY, osds_up=up, osds_in=members), MOST, outage) is expected
