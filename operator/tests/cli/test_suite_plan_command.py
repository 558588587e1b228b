"""`plimsoll plan` of a suite: what a round would measure, or the errors of the suite."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.command_line import invoke
from support.specs import RUN, VARIANTS, large_run, suite_document

LOCAL = [Path(__file__).parents[3] / "manifests" / "local" / "suite.yaml"]
COMPARISON = {"name": "costs", "baseline": {"variant": "small"}, "candidate": {"variant": "large"}}
RATIO = {
    "name": "deep",
    "left": {"workload": "reads", "where": {"ioDepth": 16}, "quantity": "iops"},
    "atLeastPercent": 200,
    "of": {"workload": "reads", "where": {"ioDepth": 1}, "quantity": "iops"},
}
LATENCY = {
    "name": "slower",
    "left": {"workload": "reads", "where": {"ioDepth": 16}, "quantity": "p50"},
    "atMostPercent": 200,
    "of": {"workload": "reads", "where": {"ioDepth": 1}, "quantity": "p99"},
}
SCALING = {
    "name": "scales",
    "left": {"workload": "writes", "quantity": "bytesPerSecond"},
    "over": "ioDepth",
    "exponentAtLeast": "0.8",
}


run = partial(invoke, "plan")


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Return a function that writes a suite with these parts of its specification, and returns the file."""

    def written(**spec: Any) -> str:
        file = tmp_path / "suite.yaml"
        file.write_text(yaml.safe_dump(suite_document(**spec), sort_keys=False))
        return str(file)

    return written


@pytest.mark.parametrize("path", LOCAL, ids=lambda path: path.stem)
def test_every_sample_has_a_plan(path: Path) -> None:
    assert "\nTotal " in run(str(path))


def test_plan_shows_that_a_round_has_too_many_trials_for_a_cluster(write: Any) -> None:
    large = {"run": large_run(60), "variants": [{"name": "small"}, {"name": "large"}]}
    words = "Invalid  in a cluster: a round would have 12,000 trials: 1,200 in 2 variants"
    assert words in run(write(**large, repeat=10), columns="300")
    assert "Invalid" not in run(write(**large, repeat=8))


def test_comparison_with_earlier_rounds_is_shown(write: Any) -> None:
    upgrade = {"name": "upgrade", "baseline": {"rounds": "Accepted"}}
    line = "upgrade: each variant against its accepted rounds; tolerated: 5 % less rate, 10 % more latency"
    assert line in run(write(comparisons=[upgrade])).splitlines()


def test_table_shows_variants_order_and_questions(write: Any) -> None:
    file = write(comparisons=[COMPARISON | {"allow": {"ratePercent": 7}}], hypotheses=[RATIO, LATENCY])
    assert [line.rstrip() for line in run(file, "--seed", "1").splitlines()] == [
        "sizes",
        "Variant  Changes                                         Points  Trials     Time",
        "small    -                                                    3       9  0:07:16",
        "large    workloads.reads.fio.blockSize: [4Ki] -> [64Ki]       3       9  0:07:16",
        "",
        "Repeat  Runs in their order      Time",
        "     0  small, large          0:14:32",
        "     1  large, small          0:14:32",
        "     2  large, small          0:14:32",
        "",
        "Runs     6, one at a time: 2 variants, each 3 times, in shuffled order (seed 1)",
        "Names    sizes-VARIANT-MINUTE-REPEAT, with the minute of the start since 1970; in a cluster they differ",
        "Total    0:43:36 without repeated attempts",
        "Writing  9.6 GiB to prefill and about 246 GiB in trials, at 100 MiB/s of each client without a rate limit",
        "",
        "Comparisons",
        "costs: large against small; tolerated: 7 % less rate, 10 % more latency",
        "",
        "Hypotheses",
        "deep: IOPS of reads (ioDepth 16) is at least 200 % of the IOPS of reads (ioDepth 1)",
        "slower: p50 latency of reads (ioDepth 16) is at most 200 % of the p99 latency of reads (ioDepth 1)",
    ]


def test_scaling_is_shown_in_words(write: Any) -> None:
    workloads = [{"name": "writes", "fio": {"pattern": "randwrite", "ioDepth": [1, 2, 4]}}]
    variants = [{"name": "only"}]
    said = run(write(run=RUN | {"workloads": workloads}, variants=variants, repeat=1, hypotheses=[SCALING]))
    assert "1, one at a time: 1 variant, each 1 time," in said
    assert "\nscales: throughput of writes scales with ioDepth to the power of at least 0.8\n" in said
    assert "Comparisons" not in said


def test_changes_are_shown_as_they_are_written(write: Any) -> None:
    changes = {
        "storage": {"storageClass": {"name": "slow"}},
        "clients": {"nodeSelector": {"disk": "ssd"}},
        "prepare": {"discard": False},
        "workloads": [{"name": "writes", "dd": {"blockSize": ["64Ki"]}}, {"name": "more", "fio": {}}],
    }
    text = run(write(variants=[{"name": "other", "unset": ["clients.count"], "set": changes}]))
    for words in (
        "storage.storageClass.name: fast -> slow",
        "clients.count: removed (2)",
        "clients.nodeSelector.disk: ssd",
        "workloads.writes.fio.pattern: removed (randwrite)",
        "workloads.writes.dd.blockSize: [64Ki]",
        "workloads.more: added (fio, 1 point)",
        "prepare.discard: false",
    ):
        assert f" {words} " in text


def test_a_workload_that_is_removed_has_one_line(write: Any) -> None:
    variants = [{"name": "other", "unset": ["workloads.writes"], "set": {"workloads": [{"name": "more", "dd": {}}]}}]
    text = run(write(variants=variants))
    assert text.count("workloads.writes") == 1
    assert " workloads.writes: removed " in text
    assert " workloads.more: added (dd, 1 point) " in text


@pytest.mark.parametrize("columns", [60, 80, 160])
def test_table_keeps_every_column(write: Any, columns: int) -> None:
    text = run(write(comparisons=[COMPARISON]), columns=str(columns))
    assert all(len(line) <= columns for line in text.splitlines())
    assert text.count("0:07:16") == 2


def test_json_has_everything(write: Any) -> None:
    arguments = (write(comparisons=[COMPARISON], hypotheses=[RATIO]), "--seed", "1", "-o")
    found = json.loads(run(*arguments, "json"))
    assert yaml.safe_load(run(*arguments, "yaml")) == found
    assert (found["name"], found["seed"]) == ("sizes", 1)
    small, large = found["variants"]
    assert (small["changes"], small["seconds"]) == ([], 436)
    assert large["changes"] == [{"path": "workloads.reads.fio.blockSize", "before": ["4Ki"], "after": ["64Ki"]}]
    assert [point["name"] for point in large["plan"]["points"]] == ["reads-000", "reads-001", "writes-000"]
    assert [(one["variant"], one["repeat"]) for one in found["runs"]] == [
        ("small", 0),
        ("large", 0),
        ("large", 1),
        ("small", 1),
        ("large", 2),
        ("small", 2),
    ]
    assert len({one["seed"] for one in found["runs"]}) == 6


def test_seed_decides_the_order(write: Any) -> None:
    file = write(variants=[{"name": f"v{number:02d}"} for number in range(16)])
    assert run(file, "--seed", "1") == run(file, "--seed", "1")
    assert run(file, "--seed", "1", "-o", "json") != run(file, "--seed", "2", "-o", "json")
    assert json.loads(run(file, "-o", "json"))["seed"] != json.loads(run(file, "-o", "json"))["seed"]


# Errors


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"repeats": 3}, "spec.repeats: is not a known field; did you mean repeat?"),
        ({"run": RUN | {"repetition": 3}}, "spec.run.repetition: is not a known field; did you mean repetitions?"),
        (
            {
                "variants": [
                    VARIANTS[0],
                    {"name": "large", "set": {"workloads": [{"name": "reads", "fio": {"iodepth": [1]}}]}},
                ]
            },
            "spec.variants[1].set.workloads[0].fio.iodepth: is not a known field; did you mean ioDepth? (variant",
        ),
        (
            {"hypotheses": [RATIO | {"left": {"workload": "read", "quantity": "iops"}}]},
            "spec.hypotheses[0].left.workload: ",
        ),
        ({"run": RUN | {"timeouts": {"totalSeconds": 60}}}, "spec.run.timeouts.totalSeconds: 60 is less than the "),
    ],
)
def test_bad_suite_is_refused_with_the_field_and_the_remedy(write: Any, spec: dict[str, Any], expected: str) -> None:
    file = write(**spec)
    error, first, *_ = run(file, code=1).splitlines()
    assert error == f"Error: {file} is invalid:"
    assert first.startswith(f"  {expected}")
