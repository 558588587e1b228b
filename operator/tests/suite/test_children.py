"""The runs of a round: their order, names and specifications, and errors at the fields of the suite."""

import re
from collections import Counter
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.errors import Problem, SpecError
from plimsoll.api.names import OBJECT_NAME_PATTERN
from plimsoll.api.suite import BenchmarkSuite, decode_suite
from plimsoll.suite.children import (
    child_name,
    has_numbers,
    turn_in_name,
    turns_by_name,
    turns_of,
    variant_plans,
    variant_runs,
)
from support.specs import ANY_SPEC, RUN, VARIANTS, suite_document

MINUTE = 29_900_000
LABEL = r"[a-z]([-a-z0-9]{0,%d}[a-z0-9])?"
SEEDS = st.integers(0, 2**63 - 1)


@st.composite
def suites(draw: st.DrawFn) -> BenchmarkSuite:
    names = st.lists(st.from_regex(LABEL % 18, fullmatch=True), min_size=1, max_size=16, unique=True)
    return decode_suite(
        suite_document(
            draw(st.from_regex(LABEL % 28, fullmatch=True)),
            variants=[{"name": name} for name in draw(names)],
            repeat=draw(st.integers(1, 10)),
        )
    )


@given(suites(), SEEDS)
def test_each_pass_has_every_variant_once(suite: BenchmarkSuite, seed: int) -> None:
    turns = turns_of(suite.spec, seed)
    names = sorted(variant.name for variant in suite.spec.variants)
    assert Counter(turn.variant for turn in turns) == Counter(names * suite.spec.repeat)
    for repeat in range(suite.spec.repeat):
        one = turns[repeat * len(names) : (repeat + 1) * len(names)]
        assert sorted(turn.variant for turn in one) == names
        assert {turn.repeat for turn in one} == {repeat}


@given(suites(), SEEDS)
def test_names_of_runs_are_unique_labels(suite: BenchmarkSuite, seed: int) -> None:
    names = [*turns_by_name(suite, minute=99_999_999, seed=seed)]
    assert len(set(names)) == len(names)
    assert all(re.match(OBJECT_NAME_PATTERN, name) and len(name) <= 63 for name in names)


def test_names_of_two_suites_in_a_cluster_differ_whatever_their_variants_are() -> None:
    pairs = [("s", "a-b"), ("s-a", "b"), ("s-a", "a-b"), ("s", "b")]
    names = set()
    for number, (name, variant) in enumerate(pairs):
        suite = decode_suite(suite_document(name, variants=[{"name": variant}], repeat=1))
        (turn,) = turns_of(suite.spec, 1)
        names.add(child_name(suite, turn, MINUTE, f"uid-{number}"))
    assert len(names) == len(pairs)


@given(suites(), SEEDS, st.uuids())
def test_name_of_a_run_in_a_cluster_is_a_label_and_says_its_turn(suite: BenchmarkSuite, seed: int, uid: UUID) -> None:
    own, turns = suite.metadata.name, turns_of(suite.spec, seed)
    names = [child_name(suite, turn, 99_999_999, str(uid)) for turn in turns]
    assert len(set(names)) == len(names)
    assert all(re.match(OBJECT_NAME_PATTERN, name) and len(name) <= 63 for name in names)
    for turn, name in zip(turns, names, strict=True):
        assert turn_in_name(own, str(uid), name) == (turn.variant, 99_999_999)
        assert turn_in_name(own, "another", name) is None
        assert turn_in_name(f"x{own}", str(uid), name) is None


@pytest.mark.parametrize(
    "name",
    [
        "sizes-small-b8fa9-29926800",
        "sizes-small-b8fa9-x-0",
        "sizes-b8fa9-29926800-0",
        "sizes--b8fa9-29926800-0",
        "sizes-small-b8fa9-²-0",
        "sizes-small-b8fa9-029926800-0",
        "sizes-small-29926800-0",
        "sizes-small",
        "",
    ],
)
def test_name_of_another_form_is_no_turn(name: str) -> None:
    assert turn_in_name("sizes", "suite-uid", "sizes-small-b8fa9-29926800-0") is not None
    assert turn_in_name("sizes", "suite-uid", name) is None


@given(suites(), SEEDS)
def test_turns_depend_on_suite_minute_and_seed_only(suite: BenchmarkSuite, seed: int) -> None:
    turns = turns_by_name(suite, minute=MINUTE, seed=seed)
    assert turns == turns_by_name(decode_suite(suite.model_dump(mode="json")), minute=MINUTE, seed=seed)
    later = turns_by_name(suite, minute=MINUTE + 1, seed=seed)
    assert [*later.values()] == [*turns.values()]
    assert not later.keys() & turns.keys()


def test_order_differs_between_passes_and_seeds() -> None:
    names = [{"name": f"v{number}"} for number in range(16)]
    spec = decode_suite(suite_document(variants=names, repeat=10)).spec
    orders = [
        tuple(turn.variant for turn in turns_of(spec, seed) if turn.repeat == repeat)
        for seed in (1, 2)
        for repeat in range(10)
    ]
    assert len(set(orders)) == len(orders)
    seeds = [turn.seed for seed in (1, 2) for turn in turns_of(spec, seed)]
    assert len(set(seeds)) == len(seeds)


def test_turns_measure_the_merged_runs() -> None:
    document = suite_document()
    document["metadata"]["namespace"] = "bench"
    suite = decode_suite(document)
    turns = turns_by_name(suite, minute=MINUTE, seed=1)
    assert [(turn.variant, turn.repeat) for turn in turns.values()] == [
        ("small", 0),
        ("large", 0),
        ("large", 1),
        ("small", 1),
        ("large", 2),
        ("small", 2),
    ]
    assert [*turns][:2] == ["sizes-small-29900000-0", "sizes-large-29900000-0"]
    for variant, run in variant_runs(suite).items():
        reads, writes = run.spec.workloads
        assert reads.parameters["blockSize"] == (["64Ki"] if variant == "large" else ["4Ki"])
        assert (reads.parameters["ioDepth"], reads.runtime_seconds) == ([1, 16], 20)
        assert writes.parameters == {"pattern": "randwrite"}
        assert (run.spec.repetitions, run.metadata.namespace) == (3, "bench")
        assert (run.spec.cleanup, run.spec.results, run.spec.suspend) == ("Always", "Delete", False)


def test_every_variant_has_a_plan() -> None:
    plans = variant_plans(decode_suite(suite_document()), seed=7)
    assert list(plans) == ["small", "large"]
    assert {name: plan.points[0].parameters["blockSize"] for name, plan in plans.items()} == {
        "small": "4Ki",
        "large": "64Ki",
    }
    assert {plan.seed for plan in plans.values()} == {7}


# Errors


def problems(run: dict[str, Any] | None = None, changes: dict[str, Any] | None = None) -> list[str]:
    """Return the problems of a suite with these changes of `spec.run` and of a second variant."""
    variants = [{"name": "plain"}, {"name": "changed", "set": changes or {}}]
    suite = decode_suite(suite_document(run=RUN | (run or {}), variants=variants))
    with pytest.raises(SpecError) as caught:
        variant_plans(suite, seed=1)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ({"repetition": 3}, "spec.run.repetition: is not a known field; did you mean repetitions?"),
        ({"repetitions": 99}, "spec.run.repetitions: 99 must be at most 10"),
        ({"clients": {"counts": 2}}, "spec.run.clients.counts: is not a known field; did you mean count?"),
        ({"workloads": None}, "spec.run.workloads: is empty; give it a value, or remove it"),
        (
            {"clients": {"count": 2, "nodeSelector": {"example.com/disk": True}}},
            "spec.run.clients.nodeSelector.example.com/disk: true must be text; put it in quotes",
        ),
        (
            {"workloads": [{"name": "w", "fio": {"blockSiz": ["4Ki"]}}]},
            "spec.run.workloads[0].fio.blockSiz: is not a known field; did you mean blockSize?",
        ),
        (
            {"workloads": [{"name": "w", "fi": {}}]},
            "spec.run.workloads[0].fi: is not a known field or tool; did you mean fio?",
        ),
        (
            {"storage": {"storageClass": {"name": "fast"}}, "workloads": [{"name": "w", "fio": {}}]},
            "spec.run.storage.volume: must be set, because fio, ",
        ),
        ({"timeouts": {"totalSeconds": 1}}, "spec.run.timeouts.totalSeconds: 1 is less than the "),
    ],
)
def test_error_in_what_all_share_is_reported_once(run: dict[str, Any], expected: str) -> None:
    (problem,) = problems(run)
    assert problem.startswith(expected)
    assert "variant" not in problem


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"repetition": 3}, "repetition: is not a known field; did you mean repetitions?"),
        ({"repetitions": 99}, "repetitions: 99 must be at most 10"),
        ({"clients": {"counts": 2}}, "clients.counts: is not a known field; did you mean count?"),
        ({"workloads": 3}, "workloads: 3 must be a list"),
        ({"workloads": [{"name": "new"}]}, "workloads[0]: has no tool; add one such as fio with a mapping of its"),
        (
            {"workloads": [{"name": "new", "fio": {"ioDept": [1]}}]},
            "workloads[0].fio.ioDept: is not a known field; did you mean ioDepth?",
        ),
        (
            {"workloads": [{"name": "writes", "fio": {"blockSize": ["4Ki", "0"]}}]},
            'workloads[0].fio.blockSize[1]: "0" must be at least 512',
        ),
        (
            {"workloads": [{"name": "writes", "runtimeSecond": 5}]},
            "workloads[0]: must have one tool besides name, clients, runtimeSeconds, rampSeconds, caches, line",
        ),
        (
            {
                "storage": {
                    "rook": {"cluster": {"namespace": "r", "name": "r"}, "pool": {"erasureCoded": {"dataChunks": 2}}}
                }
            },
            "storage.rook.pool.erasureCoded.codingChunks: is required; add it",
        ),
        (
            {"podTemplate": {"tolerations": [{"key": "a"}]}, "clients": {"nodeSelector": {"a.b/c.d": 1}}},
            "clients.nodeSelector.a.b/c.d: 1 must be text; put it in quotes",
        ),
        ({"storage": {"volume": 3}}, "storage.volume: 3 must be a mapping of fields"),
    ],
)
def test_error_in_a_change_is_reported_there_with_the_variant(changes: dict[str, Any], expected: str) -> None:
    first, *_ = problems(changes=changes)
    assert first.startswith(f"spec.variants[1].set.{expected}")
    assert first.endswith(" (variant changed)")


ROOK = {"cluster": {"namespace": "r", "name": "r"}}
FILES = "spec.variants[1].set.storage.rook.fileSystem"


def test_missing_field_belongs_to_the_document_with_its_parents() -> None:
    assert problems(changes={"storage": {"rook": ROOK | {"fileSystem": {"dataPools": [{}]}}}}) == [
        f"{FILES}.metadataPool: is required; add it (variant changed)",
        f"{FILES}.dataPools[0]: must have exactly one of replicated and erasureCoded (variant changed)",
    ]


def test_replaced_list_is_that_of_the_change() -> None:
    good: Any = {"replicated": {"size": 3}}
    bad: Any = {"erasureCoded": {"dataChunks": 2}}
    rook = ROOK | {"fileSystem": {"metadataPool": good, "dataPools": [good, good]}}
    changes = {"storage": {"rook": {"fileSystem": {"dataPools": [good, bad]}}}}
    assert problems({"storage": {"rook": rook, "volume": {"size": "1Gi"}}}, changes) == [
        f"{FILES}.dataPools[1].erasureCoded.codingChunks: is required; add it (variant changed)"
    ]


def test_shared_field_that_only_one_variant_makes_wrong_names_the_variant() -> None:
    run = {"clients": {"count": 4}, "workloads": [{"name": "w", "fio": {}, "clients": [1, 4]}]}
    (problem,) = problems(run, {"clients": {"count": 2}})
    assert problem.startswith("spec.run.workloads[0].clients[1]: 4 is more than spec.clients.count, which is 2;")
    assert problem.endswith(" (variant changed)")


def test_problems_of_several_variants_are_reported_together() -> None:
    variants = [VARIANTS[0], {"name": "a", "set": {"repetitions": 0}}, {"name": "b", "set": {"repetitions": 0}}]
    with pytest.raises(SpecError) as caught:
        variant_runs(decode_suite(suite_document(variants=variants)))
    assert [str(problem) for problem in caught.value.problems] == [
        "spec.variants[1].set.repetitions: 0 must be at least 1 (variant a)",
        "spec.variants[2].set.repetitions: 0 must be at least 1 (variant b)",
    ]


def test_field_of_run_that_some_variants_override_names_the_others() -> None:
    variants = [{"name": "a"}, {"name": "b"}, {"name": "c", "set": {"repetitions": 3}}]
    with pytest.raises(SpecError) as caught:
        variant_runs(decode_suite(suite_document(run=RUN | {"repetitions": 0}, variants=variants)))
    assert str(caught.value) == "spec.run.repetitions: 0 must be at least 1 (variants a, b)"


@given(ANY_SPEC, ANY_SPEC, st.booleans())
def test_every_error_points_into_the_suite(run: dict[str, Any], changes: dict[str, Any], complete: bool) -> None:  # noqa: FBT001 - a case
    """Whatever users write has a plan, or problems at fields that are in the suite or missing there."""
    variants = [{"name": "plain"}, {"name": "changed", "set": changes}]
    document = suite_document(run=RUN | run if complete else run, variants=variants)
    for problem in planning_problems(document):
        assert re.match(r"spec\.(run|variants\[[01]\]\.set)\b", problem.field)
        assert is_within(problem.field, document)


def planning_problems(document: Any) -> tuple[Problem, ...]:
    """Return why a suite has no plans; empty if it has them."""
    try:
        variant_plans(decode_suite(document), seed=1)
    except SpecError as error:
        return error.problems
    return ()


def is_within(field: str, document: Any) -> bool:
    """Whether all parts of a path but the last are in the document."""
    parts = re.findall(r"[^.\[\]]+", field)
    value = document
    for part in parts[:-1]:
        if isinstance(value, list):
            value = value[int(part)]
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            return False
    return True


@pytest.mark.parametrize(
    ("status", "reason", "invalid", "expected"),
    [
        ("True", "Valid", 0, True),
        ("True", "Suspect", 0, True),
        ("False", "InvalidResults", 1, True),
        ("False", "InvalidResults", 3, False),
        ("False", "ClientsNotReady", 0, False),
        ("Unknown", "Measuring", 0, False),
    ],
)
def test_a_run_of_a_round_has_numbers_unless_all_its_points_are_invalid(
    status: str, reason: str, invalid: int, *, expected: bool
) -> None:
    ended = {"type": "Succeeded", "status": status, "reason": reason}
    other = {"type": "CleanedUp", "status": "True", "reason": "Removed"}
    run = {"status": {"points": {"total": 3, "invalid": invalid}, "conditions": [other, ended]}}
    assert has_numbers(run) is expected
    assert not has_numbers({})
