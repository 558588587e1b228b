import json

import pytest

from plimsoll.ceph.pools import CrushRule, parse_counters, parse_crush_rules, parse_pools, parse_profile
from plimsoll.ceph.watch import PoolCounters
from support.goldens import CEPH_VERSIONS, CRUSH_RULES, NEW_ROOK, ceph, rook


@pytest.mark.parametrize("version", CEPH_VERSIONS)
def test_counters_of_all_pools(version: str) -> None:
    counters = parse_counters(ceph("df-detail", version))
    assert set(counters) == {".mgr", "golden", "golden-data"}
    assert counters["golden"] == PoolCounters(reads=15, writes=10, read_bytes=9216, written_bytes=10240)


@pytest.mark.parametrize(("version", "number"), [("18.2", 9), ("20.2", 17)])
def test_replicated_and_erasure_coded_pools(version: str, number: int) -> None:
    pools = parse_pools(ceph("osd-pool-ls-detail", version))
    golden, data = pools["golden"], pools["golden-data"]
    assert (golden.type, golden.size, golden.min_size, golden.crush_rule) == ("replicated", 3, 2, 0)
    assert (golden.pg_num, golden.pgp_num, golden.autoscale_mode, golden.is_settled) == (8, 8, "off", True)
    assert golden.applications == ("rbd",)
    assert golden.flags == {"hashpspool", "selfmanaged_snaps"}
    assert (data.type, data.erasure_code_profile, data.number) == ("erasure", "golden-data", number)
    assert data.stripe_width == 2 * 4096


def test_pools_with_optimizations_and_a_stripe_unit() -> None:
    pools = parse_pools(rook("osd-pool-ls-detail", NEW_ROOK))
    assert {name: pool.stripe_width for name, pool in pools.items()} == {
        ".mgr": 0,
        "team-pool": 0,
        "fast-ec": 32768,
        "plain-ec": 8192,
    }
    assert [name for name, pool in pools.items() if "ec_optimizations" in pool.flags] == ["fast-ec"]
    assert [name for name, pool in pools.items() if not pool.is_settled] == ["plain-ec"]


@pytest.mark.parametrize("version", CEPH_VERSIONS)
def test_flags_that_pause_scrubs_are_seen(version: str) -> None:
    assert {"noscrub", "nodeep-scrub"} <= parse_pools(ceph("osd-pool-ls-detail-noscrub", version))["golden"].flags


def test_only_options_that_were_set_are_listed() -> None:
    assert parse_pools(rook("osd-pool-ls-detail"))["bench-rep3"].options == {"compression_mode": "aggressive"}


def test_unfinished_pool_has_the_flag_creating() -> None:
    assert "creating" in parse_pools(rook("osd-pool-ls-detail"))["bad-ec42"].flags


@pytest.mark.parametrize("field", ["pg_num_target", "pg_placement_num", "pg_placement_num_target"])
def test_pool_with_a_target_ahead_is_not_settled(field: str) -> None:
    document = json.loads(ceph("osd-pool-ls-detail"))
    document[1][field] = 16
    assert not parse_pools(json.dumps(document))["golden"].is_settled


@pytest.mark.parametrize(
    ("text", "plugin"),
    [
        (ceph("erasure-code-profile", "18.2"), "jerasure"),
        (ceph("erasure-code-profile", "20.2"), "isa"),
        (rook("erasure-code-profile"), "jerasure"),
        (rook("erasure-code-profile", NEW_ROOK), "isa"),
        (rook("erasure-code-profile-fast-ec", NEW_ROOK), "isa"),
    ],
)
def test_profile(text: str, plugin: str) -> None:
    profile = parse_profile(text)
    assert (profile.data_chunks, profile.coding_chunks) == (2, 1)
    assert (profile.plugin, profile.technique) == (plugin, "reed_sol_van")


def test_crush_rules() -> None:
    rules = parse_crush_rules(CRUSH_RULES)
    assert rules[0] == CrushRule(number=0, failure_domain="host", takes=(("default", ""),))
    assert rules[1] == CrushRule(number=1, failure_domain="host", takes=(("default", "ssd"),))
    assert (rules[1].root, rules[1].device_class) == ("default", "ssd")
    assert rules[2].failure_domain == ""


def test_crush_rules_of_ceph_20() -> None:
    rules = parse_crush_rules(rook("crush-rule-dump", NEW_ROOK))
    assert [rule.failure_domain for rule in rules.values()] == ["host", "osd", "osd", "osd"]
    assert {rule.root for rule in rules.values()} == {"default"}


@pytest.mark.parametrize(
    ("text", "named"),
    [('{"pools":[{"name":"a"}]}', r"pools\[0\]\.stats"), ('{"pools":[{"name":"a","stats":{"rd":"x"}}]}', "rd")],
)
def test_counters_name_what_is_wrong(text: str, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        parse_counters(text)
