"""`plimsoll init`: the manifests of common jobs, which are the samples, and what their comments promise."""

import re
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import yaml

from plimsoll.api.names import SUITE_KIND
from plimsoll.api.run import decode_run
from plimsoll.api.suite import decode_suite
from plimsoll.cli.init import JOBS
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import estimate, estimate_writes, make_plan
from plimsoll.suite.children import variant_plans
from support.command_line import invoke

SAMPLES = Path(__file__).parents[3] / "manifests" / "samples"
CLASS_JOBS = {"claim-latency", "new-disk"}
ROOK_JOBS = {*JOBS} - CLASS_JOBS - {"network"}
TOLERANCE = 0.1
"""The comments round."""

jobs = pytest.mark.parametrize("job", JOBS)


init = partial(invoke, "init")


def plans_of(text: str) -> tuple[list[Plan], int]:
    """Return the plans of a manifest, one for each variant of a suite, and how often each is measured."""
    document = yaml.safe_load(text)
    if document["kind"] != SUITE_KIND:
        return [make_plan(decode_run(document), seed=1)], 1
    suite = decode_suite(document)
    return [*variant_plans(suite, seed=1).values()], suite.spec.repeat


@jobs
def test_the_sample_is_what_is_printed_and_the_index_has_it(job: str) -> None:
    sample = SAMPLES / f"{job}.yaml"
    assert sample.read_text() == init(job)
    assert f"]({job}.yaml)" in (SAMPLES / "README.md").read_text()
    assert {path.name for path in SAMPLES.iterdir()} == {"README.md", *(f"{name}.yaml" for name in JOBS)}


@jobs
def test_a_manifest_is_short_and_names_no_namespace(job: str) -> None:
    """So that `kubectl -n`, Flux and kustomize choose it."""
    lines = init(job).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    assert yaml.safe_load(init(job))["metadata"] == {"name": job}


@jobs
def test_comments_say_how_long_it_takes_and_how_much_it_writes(job: str) -> None:
    text = init(job)
    plans, repeat = plans_of(text)
    ((least, most),) = re.findall(r"akes about (\d+) minutes(?:, and at most (\d+))?", text)
    total = timedelta(seconds=repeat * sum(estimate(plan).total_seconds for plan in plans))
    assert timedelta(minutes=int(most or least)) == pytest.approx(total, abs=TOLERANCE * total)
    assert bool(most) == any(estimate(plan).searches for plan in plans)
    writes = estimate_writes(plans[0])
    stated = [int(size) * 2**30 for size in re.findall(r"(?:writes|to) (\d+) GiB", text.replace("\n# ", " "))]
    if job == "new-disk":
        assert yaml.safe_load(text)["spec"]["storage"]["volume"]["size"] == "100G"
        assert stated == [pytest.approx(writes.loading, rel=TOLERANCE)]
    else:
        assert stated == [pytest.approx(size, rel=TOLERANCE) for size in (writes.preparing, writes.loading) if size]


@jobs
def test_trials_are_long_and_many_enough_to_be_valid(job: str) -> None:
    plans, repeat = plans_of(init(job))
    assert repeat == 1 or repeat >= 3
    for plan in plans:
        assert plan.repetitions >= 3
        for point in plan.points:
            assert point.ramp_seconds > 0
            assert point.runtime_seconds >= (10 if point.tool in {"iperf3", "ping"} else 60)


@pytest.mark.parametrize("job", sorted(ROOK_JOBS))
def test_rook_cluster_and_name_are_filled_in(job: str) -> None:
    text = init(job, "--rook", "storage/main", "--name", "mine")
    assert "rook-ceph" not in text
    assert job not in text
    spec = yaml.safe_load(text)["spec"]
    assert spec.get("run", spec)["storage"]["rook"]["cluster"] == {"namespace": "storage", "name": "main"}
    assert "#   rook: {clusters: {storage/main: [bench]}}\n" in text


@pytest.mark.parametrize("job", sorted(ROOK_JOBS))
def test_without_a_name_the_only_allowed_cluster_is_measured(job: str) -> None:
    plans, _ = plans_of(init(job))
    assert [plan.ceph and plan.ceph.rook for plan in plans] == [None] * len(plans)
    assert all(plan.ceph and not plan.ceph.monitors for plan in plans)


@pytest.mark.parametrize("job", [*sorted(CLASS_JOBS), "most-iops"])
@pytest.mark.parametrize("name", ["fast.ssd", "10", "0x1f", "true", "null", "2026-01-01"])
def test_storage_class_is_filled_in(job: str, name: str) -> None:
    spec = yaml.safe_load(init(job, "--storage-class", name))["spec"]
    assert spec["storage"]["storageClass"] == {"name": name}
    assert "rook" not in spec["storage"]


def test_a_search_on_a_storage_class_has_no_pool_and_no_values_of_the_chart() -> None:
    text = init("most-iops", "--storage-class", "fast")
    assert not re.search("(?i)pool|rook|copies|values|osd|cluster", text)


@pytest.mark.parametrize("name", ["main", "10", "a, b"])
def test_an_existing_pool_is_filled_in(name: str) -> None:
    storage = yaml.safe_load(init("before-upgrade", "--pool", name))["spec"]["run"]["storage"]
    assert storage["rook"]["existingPool"] == {"name": name}


@pytest.mark.parametrize("name", ["a # b", "a, b", "a\nspec: {}", "a: b", "[", "*a"])
def test_a_name_adds_nothing_to_the_manifest(name: str) -> None:
    assert init("network", "--name", name, code=1).startswith("Error: network is invalid:\n  metadata.name: ")


def test_without_a_job_each_is_listed_with_its_question() -> None:
    lines = [line.split(maxsplit=1) for line in init().splitlines()[: len(JOBS)]]
    assert [name for name, _ in lines] == list(JOBS)
    assert all(question.strip().endswith("?") for _, question in lines)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ("disk", 2, "'disk' is not one of 'claim-latency'"),
        ("--name mine", 2, "which job? It is one of claim-latency, "),
        ("storm-line --storage-class fast", 2, "--storage-class has no effect on storm-line; leave it out"),
        ("most-iops --storage-class fast --rook a/b", 2, "--storage-class and --rook are two places to measure"),
        ("network --storage-class fast", 2, "--storage-class has no effect on network"),
        ("cephfs --pool main", 2, "--pool has no effect on cephfs"),
        ("claim-latency --rook a/b", 2, "--rook has no effect on claim-latency"),
        ("cephfs --rook rook-ceph", 2, "--rook 'rook-ceph' is not NAMESPACE/NAME of a CephCluster"),
        ("claim-latency --storage-class Fast", 2, "'Fast' cannot be the name of a StorageClass"),
        ("network --name My_run", 1, "metadata.name: "),
        ("upgrade-regression --name a-name-of-more-than-thirty-letters", 1, "metadata.name: "),
    ],
)
def test_what_is_refused(arguments: str, code: int, says: str) -> None:
    assert says in init(*arguments.split(), code=code)
