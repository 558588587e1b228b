"""Versions of Ceph: as commands and Rook write them, and which are refused."""

import json

import pytest

from plimsoll.ceph.versions import (
    age_problem,
    mixture_problem,
    optimizations_problem,
    parse_versions,
    version_name,
    version_number,
)
from support.goldens import NEW_ROOK, ceph, rook, rook_object


@pytest.mark.parametrize(
    ("text", "number", "name"),
    [
        (ceph("versions", "18.2"), (18, 2, 7), "18.2.7 reef"),
        (ceph("versions", "20.2"), (20, 2, 4), "20.2.4 tentacle"),
        (rook("versions", NEW_ROOK), (20, 2, 4), "20.2.4 tentacle"),
    ],
)
def test_the_version_of_all_daemons(text: str, number: tuple[int, int, int], name: str) -> None:
    (version,) = parse_versions(text, file_system=False)
    assert (version_number(version), version_name(version)) == (number, name)


def test_the_version_that_rook_writes() -> None:
    status = rook_object("cephcluster-ready-health-ok")["status"]
    assert version_number(status["version"]["version"]) == (20, 2, 4)
    assert [version_number(version) for version in status["ceph"]["versions"]["overall"]] == [(20, 2, 4)]


NEW, OLD = (next(iter(parse_versions(ceph("versions", version), file_system=False))) for version in ("20.2", "18.2"))


@pytest.mark.parametrize("text", ["", "ceph version Development (no_version) tentacle (dev)", "0x20.2.4", "twenty"])
def test_a_version_without_a_number_is_unknown_and_refused_by_nothing(text: str) -> None:
    assert version_number(text) is None
    assert age_problem("c", text) == optimizations_problem("c", text) == ""


@pytest.mark.parametrize(
    ("version", "is_too_old", "lacks_optimizations"),
    [
        ("16.2.15-0", True, True),
        ("17.2.9-0", True, True),
        ("18.1.3-0", True, True),
        ("18.2.0-0", False, True),
        ("ceph version 19.2.6 (0) squid (stable)", False, True),
        ("ceph version 20.1.0 (0) tentacle (rc)", False, False),
        ("20.2.4-0", False, False),
        ("21.0.0-0", False, False),
    ],
)
def test_what_is_too_old(version: str, *, is_too_old: bool, lacks_optimizations: bool) -> None:
    assert bool(age_problem("c", version)) == is_too_old
    assert bool(optimizations_problem("c", version)) == lacks_optimizations


def test_a_refusal_names_both_versions_and_the_remedy() -> None:
    assert age_problem("the cluster", "17.2.9-0") == (
        "the cluster runs Ceph 17.2.9, and Plimsoll measures Ceph 18.2 and later; upgrade Ceph"
    )
    assert optimizations_problem("the cluster", "19.2.6-0") == (
        "the cluster runs Ceph 19.2.6, and optimizations of erasure coding need Ceph 20 or later; upgrade Ceph, or "
        "remove the field"
    )


def test_a_mixture_names_all_versions_and_one_version_is_none() -> None:
    new, old = NEW, OLD
    assert mixture_problem("the cluster", [new]) == mixture_problem("the cluster", []) == ""
    text = json.dumps({"mon": {new: 3}, "osd": {old: 3}, "overall": {new: 3, old: 3}})
    problem = mixture_problem("the cluster", parse_versions(text, file_system=False))
    assert problem.startswith(f"the cluster runs different versions of Ceph ({old}; {new}); wait")


@pytest.mark.parametrize(
    ("kind", "matters", "matters_to_files"),
    [
        ("mon", True, True),
        ("mgr", True, True),
        ("osd", True, True),
        ("mds", False, True),
        ("rgw", False, False),
        ("rbd-mirror", False, False),
        ("cephfs-mirror", False, False),
        ("ceph-exporter", False, False),
    ],
)
def test_only_daemons_that_numbers_depend_on_have_to_be_of_one_version(
    kind: str, *, matters: bool, matters_to_files: bool
) -> None:
    daemons = {name: {NEW: 3} for name in ("mon", "mgr", "osd", "mds")}
    text = json.dumps({**daemons, kind: {NEW: 2, OLD: 1}, "overall": {NEW: 11, OLD: 1}})
    for file_system, expected in ((False, matters), (True, matters_to_files)):
        versions = parse_versions(text, file_system=file_system)
        assert versions == ((OLD, NEW) if expected else (NEW,))
        assert bool(mixture_problem("the cluster", versions)) == expected


def test_an_old_daemon_that_no_number_depends_on_is_too_old_for_nothing() -> None:
    text = json.dumps({"osd": {NEW: 3}, "rgw": {"ceph version 16.2.15 (0) pacific (stable)": 1}})
    assert parse_versions(text, file_system=True) == (NEW,)
