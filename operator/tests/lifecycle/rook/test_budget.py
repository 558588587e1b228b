"""Whether Ceph lets a pool have its placement groups, judged by what is written of the pools that are there."""

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from plimsoll.api.storage import FileSystem, Pool
from plimsoll.lifecycle.ceph.rook_survey import Osd, fitting_file_system, fitting_placement_groups, why_over_budget


def osds(count: int, *, device_class: str = "ssd", available: bool = True) -> tuple[Osd, ...]:
    return tuple(
        Osd(number=str(number), device_class=device_class, buckets={"osd": str(number)}, available=available)
        for number in range(count)
    )


def replicated(size: int, placement_groups: int | None = None, **fields: Any) -> Pool:
    return Pool.model_validate({"replicated": {"size": size}, "placementGroups": placement_groups, **fields})


def coded(data: int, coding: int, placement_groups: int) -> Pool:
    chunks = {"dataChunks": data, "codingChunks": coding}
    return Pool.model_validate({"erasureCoded": chunks, "placementGroups": placement_groups})


def there(pg_num: str | None, **layout: Any) -> dict[str, Any]:
    return {"spec": {**layout, "parameters": {} if pg_num is None else {"pg_num": pg_num}}}


def cluster(**sections: Any) -> dict[str, Any]:
    return {"spec": {"cephConfig": sections}}


SIZE_3 = {"replicated": {"size": 3}}
CODED = {"erasureCoded": {"dataChunks": 4, "codingChunks": 2}}


@pytest.mark.parametrize(
    ("wanted", "count", "others"),
    [
        (replicated(3, 128), 3, ()),
        (replicated(1, 512), 3, ()),
        (replicated(1, 512), 1, ()),  # Ceph reckons with three
        (replicated(3, 128), 3, (there("64", **SIZE_3), there(None, **SIZE_3), there("x", **SIZE_3), {})),
        (coded(2, 1, 128), 3, ()),
    ],
)
def test_what_ceph_would_take_is_taken(wanted: Pool, count: int, others: tuple[dict[str, Any], ...]) -> None:
    assert why_over_budget(wanted, osds(count), others, {}) == ""


@pytest.mark.parametrize(
    ("wanted", "count", "others", "says"),
    [
        (replicated(3, 256), 3, (), ("256 placement groups", "256 replicas", "limit is 250", "at most 128")),
        (replicated(3, 32768), 12, (), ("8192 replicas to each OSD", "placementGroups to at most 512")),
        (replicated(3, 128), 3, (there("128", **SIZE_3),), ("in addition to 128 of other pools", "at most 64")),
        (replicated(3, 32), 6, (there("256", **CODED),), ("to 256 of other pools", "delete pools, or add OSDs")),
        (coded(2, 1, 256), 6, (), ("213 replicas to each OSD",)),
    ],
)
def test_what_ceph_would_refuse_is_refused_with_what_it_would_take(
    wanted: Pool, count: int, others: tuple[dict[str, Any], ...], says: tuple[str, ...]
) -> None:
    limit = cluster(**{"global": {"mon_max_pg_per_osd": "200"}}) if wanted.erasure_coded else {}
    told = why_over_budget(wanted, osds(count), others, limit)
    for words in says:
        assert words in told


def test_only_osds_of_the_pools_device_class_count() -> None:
    some = (*osds(3, device_class="hdd"), *osds(9), *osds(9, device_class="hdd", available=False))
    assert "256 replicas to each OSD" in why_over_budget(replicated(3, 256, deviceClass="hdd"), some, (), {})
    assert why_over_budget(replicated(3, 256, deviceClass="ssd"), some, (), {}) == ""


@pytest.mark.parametrize(
    ("sections", "limit"),
    [
        ({}, 250),
        ({"global": {"mon_max_pg_per_osd": "400"}}, 400),
        ({"global": {"mon_max_pg_per_osd": "400"}, "mon": {"mon_max_pg_per_osd": 300}}, 300),
        ({"global": None, "mon": {"mon_max_pg_per_osd": "many"}}, 250),
    ],
)
def test_the_budget_is_the_one_that_rook_was_told_of(sections: dict[str, Any], limit: int) -> None:
    assert f"limit is {limit} (mon_max_pg_per_osd)" in why_over_budget(
        replicated(3, 1024), osds(3), (), cluster(**sections)
    )


def test_without_a_count_there_are_as_many_as_fit() -> None:
    assert fitting_placement_groups(replicated(3), osds(3), (), {}).placement_groups == 64
    others = (there("128", **SIZE_3), there("64", **SIZE_3))
    assert fitting_placement_groups(replicated(3), osds(3), others, {}).placement_groups == 32
    assert fitting_placement_groups(replicated(3), osds(3), 3 * others, {}).placement_groups == 1


@given(st.integers(1, 5), st.integers(0, 15), st.integers(1, 40), st.lists(st.integers(0, 2048), max_size=4))
def test_what_is_proposed_is_taken_and_twice_as_much_is_not(
    size: int, log2: int, count: int, others: list[int]
) -> None:
    found = tuple(there(str(pg_num), **SIZE_3) for pg_num in others)
    told = why_over_budget(replicated(size, 1 << log2), osds(count), found, {})
    if "at most" in told:
        fits = int(told.partition("at most ")[2].partition(",")[0])
        assert why_over_budget(replicated(size, fits), osds(count), found, {}) == ""
        assert why_over_budget(replicated(size, 2 * fits), osds(count), found, {})


def test_a_pool_of_a_file_system_without_a_count_gets_what_the_chosen_ones_leave() -> None:
    made = FileSystem(metadata_pool=replicated(3), data_pools=(replicated(3, 128),))
    fitted = fitting_file_system(made, osds(3), [there("112", **SIZE_3)], {})
    assert fitted.data_pools[0].placement_groups == 128
    assert fitted.metadata_pool.placement_groups == 8, "112 + 128 + 8 of 250 for each OSD"


def test_an_erasure_coded_pool_of_a_file_system_has_no_pool_of_headers() -> None:
    wanted = coded(4, 2, 128)
    assert why_over_budget(wanted, osds(6), [there("128", **SIZE_3)], {}) != ""
    assert why_over_budget(wanted, osds(6), [there("128", **SIZE_3)], {}, headers=False) == ""
