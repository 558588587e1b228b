"""The published values of the studies: complete, unique, and consistent with what the studies conclude from them."""

import json
from collections.abc import Sequence
from hashlib import sha256
from statistics import mean

import pytest

from plimsoll.studies.library import load_studies, load_study
from plimsoll.studies.model import Published, Study, Unit, parse_study

STUDIES = load_studies()
VALUES = [value for study in STUDIES for value in study.values]
KIB_PER_SECOND = {Unit.KIBIBYTES_PER_SECOND: 1, Unit.MEBIBYTES_PER_SECOND: 2**10}
LAYOUTS = 15

# Every value was compared with a transcription of the publications cell by cell: those of tables by a program, those of
# texts by reading. If a digest differs, a number, its unit or its conditions changed: compare them with the publication
# before you change the digest.
DIGESTS = {
    "KIT": "50e17173cf54855d02d79fd197cc6ceb9178c8f8b5b7db98d63a15ad6f92ec22",
    "ORNL": "404a41b8ad10217f1403fe459678aeecfed73878a3af7a3c8fabd427e71a7d5c",
    "UTSA": "1c1cf333f72bf535e35e67d4c6310cc19d24278ed2d984a0ab935b7b7390ee01",
    "CTU": "3b15af6238216724084c714c5a4ddac8c230a386a9adebb2172a4edcab9b7788",
    "BLOG": "f31115d421f7c2709237c18c1843399d773f63a73f3b86ab7262e1dbdac3e266",
}


def small(values: str, more: str = "") -> str:
    return f"""
key: TEST
source: {{title: t, authors: a, publication: p}}
testbed: {{}}
experiments: [{{id: TEST-A, title: t, unavailable: netperf}}]
tables:
  - {{experiment: TEST-A, place: Table 1, quantity: rate, unit: MiB/s,
      axes: {{bs: [1, 2], op: [r, w]}}, values: {values}{more}}}
"""


def test_values_of_all_studies() -> None:
    assert {study.key: len(study.values) for study in STUDIES} == {
        "KIT": 37,
        "ORNL": 44,
        "UTSA": 163,
        "CTU": 2394,
        "BLOG": 4,
    }


def digest(values: Sequence[Published]) -> str:
    """Return the SHA-256 of all values with what identifies them, in any order."""
    lines = sorted(
        json.dumps(
            [one.experiment, one.place, one.quantity, sorted(one.conditions.items()), one.value, one.unit, one.origin]
        )
        for one in values
    )
    return sha256("\n".join(lines).encode()).hexdigest()


def test_values_are_those_that_were_compared_with_the_publications() -> None:
    assert {study.key: digest(study.values) for study in STUDIES} == DIGESTS


def test_two_values_in_the_place_of_each_other_are_noticed() -> None:
    given, swapped = (parse_study(small(cells)).values for cells in ("[1, 2, 3, 4]", "[1, 3, 2, 4]"))
    assert digest(given) != digest(swapped)
    assert digest(given) == digest(given[::-1])


def test_no_value_is_published_twice_under_the_same_conditions() -> None:
    keys = [(one.experiment, one.place, one.quantity, frozenset(one.conditions.items())) for one in VALUES]
    assert len(keys) == len(set(keys))


def test_every_experiment_with_numbers_has_them() -> None:
    """The others were published as figures whose values are lost, or without numbers."""
    experiments = {one.id for study in STUDIES for one in study.experiments}
    assert experiments - {value.experiment for value in VALUES} == {
        "KIT-THR",
        "KIT-F2c",
        "ORNL-F2",
        "ORNL-TWK",
        "ORNL-F7",
        "ORNL-RA",
        "CTU-IOZ",
        "CTU-MULTI",
        "CTU-HASH",
        "BLOG-FS-A",
        "BLOG-FS-B",
        "BLOG-RBD-A",
        "BLOG-RBD-B",
        "BLOG-ISCSI",
        "BLOG-CP",
        "BLOG-OSDFS",
    }


def test_rates_are_positive_and_not_faster_than_any_of_the_test_beds() -> None:
    rates = [value for value in VALUES if value.unit in KIB_PER_SECOND]
    assert len(rates) > 2000
    assert all(0 < value.value * KIB_PER_SECOND[value.unit] < 10 * 2**20 for value in rates)


@pytest.mark.parametrize("study", STUDIES, ids=lambda one: one.key)
def test_units_that_are_not_stated_occur_in_one_study_only(study: Study) -> None:
    assert any(value.unit is Unit.NOT_STATED for value in study.values) == (study.key == "UTSA")


def random_rates(system: str, operation: str, block_size: str) -> list[float]:
    """Return the rates of all layouts at a depth of 1, in KiB/s."""
    wanted = {"system": system, "operation": operation, "blockSize": block_size, "ioDepth": 1}
    found = [
        value.value * KIB_PER_SECOND[value.unit]
        for value in load_study("ctu").values
        if value.experiment == "CTU-RAND" and wanted.items() <= value.conditions.items()
    ]
    assert len(found) == LAYOUTS
    return found


@pytest.mark.parametrize(
    ("left", "right", "block_size", "ratio"),
    [
        (("Ceph", "read"), ("Ceph", "write"), "4 KiB", 2.48),
        (("Ceph", "read"), ("Ceph", "write"), "16 MiB", 1.77),
        (("3PAR", "write"), ("3PAR", "read"), "4 KiB", 12.6),
        (("3PAR", "write"), ("3PAR", "read"), "16 MiB", 1.12),
        (("Ceph", "read"), ("3PAR", "read"), "4 KiB", 0.96),
        (("Ceph", "read"), ("3PAR", "read"), "16 MiB", 1.44),
        (("3PAR", "write"), ("Ceph", "write"), "4 KiB", 32.4),
        (("3PAR", "write"), ("Ceph", "write"), "16 MiB", 1.38),
    ],
)
def test_tables_of_random_io_have_the_ratios_that_were_calculated_from_them(
    left: tuple[str, str], right: tuple[str, str], block_size: str, ratio: float
) -> None:
    found = mean(random_rates(*left, block_size)) / mean(random_rates(*right, block_size))
    assert found == pytest.approx(ratio, rel=0.005)


def only(values: list[Published]) -> float:
    (value,) = values
    return value.value


def kit(experiment: str, quantity: str, **conditions: str | int) -> float:
    return only(
        [
            value
            for value in load_study("kit").values
            if (value.experiment, value.quantity) == (experiment, quantity)
            and conditions.items() <= value.conditions.items()
        ]
    )


def test_limits_of_kit_follow_from_its_components() -> None:
    disk = kit("KIT-DISK", "write throughput of a disk")
    assert kit("KIT-T3", "limit of reads") == 8 * disk
    for journal in ("disk", "memory"):
        osd = kit("KIT-OSD", "write throughput of an OSD", journal=journal)
        assert kit("KIT-T3", "limit of writes", journal=journal) == 8 * osd


def test_a_table_lists_its_last_axis_fastest() -> None:
    found = parse_study(small("[[1, 2], [3 KiB/s, null]]")).values
    assert [(one.value, one.unit.value, dict(one.conditions)) for one in found] == [
        (1, "MiB/s", {"bs": 1, "op": "r"}),
        (2, "MiB/s", {"bs": 1, "op": "w"}),
        (3, "KiB/s", {"bs": 2, "op": "r"}),
    ]


@pytest.mark.parametrize("study", STUDIES, ids=lambda one: one.key)
def test_ids_are_unique_and_refer_to_experiments_of_the_study(study: Study) -> None:
    ids = [one.id for one in study.experiments]
    assert len(set(ids)) == len(ids)
    assert all(one.startswith(f"{study.key}-") for one in ids)
    assert {one.experiment for one in study.tables} | {one.experiment for one in study.shares} <= set(ids)


@pytest.mark.parametrize("study", STUDIES, ids=lambda one: one.key)
def test_files_of_studies_are_complete(study: Study) -> None:
    assert all(one.reproduced_by or one.unavailable for one in study.experiments)
    assert all(not one.axes.keys() & one.conditions.keys() for one in study.tables)
    assert all((one.layer is None) != (one.ratio is None) for one in study.shares)


@pytest.mark.parametrize(
    "text",
    [
        small("[1, 2, 3]"),
        small("[1, 2, 3, fast]"),
        small("[1, 2, 3, 4]").replace("unit: MiB/s", "unit: furlongs"),
    ],
)
def test_a_damaged_table_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - pydantic's, or of a conversion
        _ = parse_study(text).values
