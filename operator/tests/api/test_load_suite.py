"""Errors in a suite name the field, the value and the remedy."""

import json
from typing import Any

import pytest

from plimsoll.api.errors import SpecError
from plimsoll.api.suite import BenchmarkSuite, decode_suite, load_suite
from plimsoll.measure.compare.values import RegressionRule
from support.specs import RUN, suite_document
from support.specs import problems as load_run_problems

COMPARISON = {"name": "costs", "baseline": {"variant": "small"}, "candidate": {"variant": "large"}}
LEFT = {"workload": "reads", "where": {"ioDepth": 16}, "quantity": "iops"}
OF = {"workload": "reads", "where": {"ioDepth": 1}, "quantity": "iops"}
HYPOTHESIS = {"name": "deep", "left": LEFT, "of": OF, "atLeastPercent": 200}


def problems(document: Any) -> list[str]:
    with pytest.raises(SpecError) as caught:
        decode_suite(document)
    return [str(problem) for problem in caught.value.problems]


def test_example_of_the_design_loads() -> None:
    suite = load_suite("""
apiVersion: plimsoll.dev/v1alpha1
kind: BenchmarkSuite
metadata: {name: layouts, namespace: bench, labels: {team: storage}}
spec:
  repeat: 5
  run:
    storage: {rook: {cluster: {namespace: rook-ceph, name: rook-ceph}}}
    workloads: [{name: rados, radosBench: {}}]
  variants:
    - {name: size-3, set: {storage: {rook: {pool: {replicated: {size: 3}}}}}}
    - {name: ec-4-2, set: {storage: {rook: {pool: {erasureCoded: {dataChunks: 4, codingChunks: 2}}}}}}
  comparisons:
    - {name: ec-costs, baseline: {variant: size-3}, candidate: {variant: ec-4-2}, allow: {ratePercent: 7}}
  hypotheses:
    - name: rbd-close-to-rados
      left: {workload: rbd, where: {blockSize: 4Mi, clients: 8}, quantity: bytesPerSecond}
      atLeastPercent: 90
      of: {workload: rados, where: {objectSize: 4Mi, clients: 8}, quantity: bytesPerSecond}
    - name: scales-with-clients
      left: {workload: rados, quantity: bytesPerSecond}
      over: clients
      range: {first: 1, last: 5}
      exponentAtLeast: "0.8"
status: {rounds: []}
""")
    assert (suite.metadata.name, suite.metadata.namespace, suite.spec.repeat) == ("layouts", "bench", 5)
    assert [variant.name for variant in suite.spec.variants] == ["size-3", "ec-4-2"]
    assert suite.spec.variants[0].changes == {"storage": {"rook": {"pool": {"replicated": {"size": 3}}}}}
    (comparison,) = suite.spec.comparisons
    assert comparison.variants == ("size-3", "ec-4-2")
    assert (comparison.allow.rate_percent, comparison.allow.latency_percent) == (7, 10)
    ratio, scaling = suite.spec.hypotheses
    assert (ratio.name, ratio.at_least_percent) == ("rbd-close-to-rados", 90)
    assert (scaling.over, scaling.exponent_at_least) == ("clients", "0.8")


def test_omitted_fields_have_the_documented_defaults() -> None:
    spec = decode_suite(suite_document(variants=[{"name": "only"}])).spec
    assert (spec.repeat, spec.variants[0].changes, spec.comparisons, spec.hypotheses) == (3, {}, (), ())
    assert (spec.schedule, spec.triggers.ceph_version, spec.keep, spec.gate, spec.suspend) == (
        None,
        False,
        10,
        False,
        False,
    )


def test_earlier_rounds_are_a_baseline_of_every_variant() -> None:
    upgrade = {"name": "upgrade", "baseline": {"rounds": "Accepted"}, "allow": {"ratePercent": 5}}
    accepted, costs = decode_suite(suite_document(comparisons=[upgrade, COMPARISON])).spec.comparisons
    assert (accepted.baseline.rounds, accepted.variants) == ("Accepted", None)
    assert (costs.baseline.rounds, costs.variants) == (None, ("small", "large"))


def test_defaults_of_comparisons_are_those_of_the_command() -> None:
    allow = decode_suite(suite_document(comparisons=[COMPARISON])).spec.comparisons[0].allow
    rule = RegressionRule()
    assert (allow.rate_percent / 100, allow.latency_percent / 100) == (rule.rate, rule.latency)


def test_a_suite_is_written_as_it_is_read() -> None:
    suite = decode_suite(suite_document(comparisons=[COMPARISON], hypotheses=[HYPOTHESIS]))
    document = suite.model_dump(mode="json")
    assert document["spec"]["variants"] == [one | {"unset": []} for one in suite_document()["spec"]["variants"]]
    assert decode_suite(document) == suite
    assert BenchmarkSuite.model_validate_json(json.dumps(document)) == suite


# Errors


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"repeats": 3}, "spec.repeats: is not a known field; did you mean repeat?"),
        ({"repeat": 0}, "spec.repeat: 0 must be at least 1"),
        ({"repeat": 11}, "spec.repeat: 11 must be at most 10"),
        ({"repeat": "3"}, 'spec.repeat: "3" must be a whole number'),
        ({"keep": 0}, "spec.keep: 0 must be at least 1"),
        ({"keep": 51}, "spec.keep: 51 must be at most 50"),
        ({"gate": "yes"}, 'spec.gate: "yes" must be true or false'),
        ({"triggers": {"cephVersion": 1}}, "spec.triggers.cephVersion: 1 must be true or false"),
        (
            {"triggers": {"cephVersions": True}},
            "spec.triggers.cephVersions: is not a known field; did you mean cephVersion?",
        ),
        ({"schedule": {}}, "spec.schedule.cron: is required; add it"),
        ({"run": None}, "spec.run: is empty; give it a value, or remove it"),
        ({"run": []}, "spec.run: must be a mapping of fields, not a list"),
        ({"variants": []}, "spec.variants: must have at least 1 entry"),
        ({"variants": [{"name": f"v{n}"} for n in range(17)]}, "spec.variants: must have at most 16 entries"),
        ({"variants": [{"nam": "a", "name": "b"}]}, "spec.variants[0].nam: is not a known field; did you mean name?"),
        ({"variants": [{"set": {}}]}, "spec.variants[0].name: is required; add it"),
        ({"variants": [{"name": "A"}]}, 'spec.variants[0].name: "A" must consist of lower-case letters, digits and'),
        ({"variants": [{"name": "a" * 21}]}, f'spec.variants[0].name: "{"a" * 21}" must have at most 20 characters'),
        ({"variants": [{"name": "a", "set": 3}]}, "spec.variants[0].set: 3 must be a mapping of fields"),
        (
            {"variants": [{"name": "a", "changes": {}}]},
            "spec.variants[0].changes: is not a known field; remove it or correct its spelling",
        ),
        (
            {"variants": [{"name": "a"}, {"name": "b"}, {"name": "a"}]},
            'spec.variants[2].name: "a" is already the name of variants[0]; choose unique names',
        ),
        (
            {"comparisons": [COMPARISON, COMPARISON]},
            'spec.comparisons[1].name: "costs" is already the name of comparisons[0]; choose unique names',
        ),
        (
            {"comparisons": [COMPARISON | {"candidate": {"variant": "larg"}}]},
            'spec.comparisons[0].candidate.variant: "larg" is not a variant of the suite; did you mean large?',
        ),
        (
            {"comparisons": [COMPARISON | {"baseline": {"variant": "other"}}]},
            'spec.comparisons[0].baseline.variant: "other" is not a variant of the suite; the variants are',
        ),
        (
            {"comparisons": [COMPARISON | {"candidate": {"variant": "small"}}]},
            "spec.comparisons[0].candidate.variant: small must be another variant than the baseline",
        ),
        (
            {"comparisons": [COMPARISON | {"baseline": {"rounds": "Accepted", "variant": "small"}}]},
            "spec.comparisons[0].baseline: must have exactly one of variant and rounds",
        ),
        (
            {"comparisons": [COMPARISON | {"baseline": {}}]},
            "spec.comparisons[0].baseline: must have exactly one of variant and rounds",
        ),
        (
            {"comparisons": [COMPARISON | {"baseline": {"rounds": "Previous"}}]},
            'spec.comparisons[0].baseline.rounds: "Previous" must be Accepted',
        ),
        (
            {"comparisons": [COMPARISON | {"baseline": {"rounds": "Accepted"}}]},
            "spec.comparisons[0].candidate: must have the variant to judge with baseline.variant, and cannot be set",
        ),
        (
            {"comparisons": [{"name": "costs", "baseline": {"variant": "small"}}]},
            "spec.comparisons[0].candidate: must have the variant to judge with baseline.variant",
        ),
        (
            {"comparisons": [COMPARISON | {"allow": {"ratePercent": 0}}]},
            "spec.comparisons[0].allow.ratePercent: 0 must be at least 1",
        ),
        (
            {"comparisons": [COMPARISON | {"allow": {"ratePercent": 91}}]},
            "spec.comparisons[0].allow.ratePercent: 91 must be at most 90",
        ),
        (
            {"comparisons": [COMPARISON | {"allow": {"latencyPercent": 1}}]},
            "spec.comparisons[0].allow.latencyPercent: 1 must be at least 2",
        ),
        (
            {"comparisons": [COMPARISON | {"allow": {"latencyPercent": 2.5}}]},
            "spec.comparisons[0].allow.latencyPercent: 2.5 must be a whole number",
        ),
        (
            {"hypotheses": [HYPOTHESIS, HYPOTHESIS]},
            'spec.hypotheses[1].name: "deep" is already the name of hypotheses[0]; choose unique names',
        ),
        (
            {"hypotheses": [HYPOTHESIS | {"left": LEFT | {"variant": "big"}, "of": OF | {"variant": "small"}}]},
            'spec.hypotheses[0].left.variant: "big" is not a variant of the suite; the variants are small, large',
        ),
        (
            {"hypotheses": [HYPOTHESIS | {"atLeast": 3}]},
            "spec.hypotheses[0].atLeast: is not a known field; did you mean atLeastPercent?",
        ),
        ({"run": RUN | {"cleanup": "Never"}}, 'spec.run.cleanup: "Never" cannot be set in a suite, which decides when'),
        ({"run": RUN | {"results": "Retain"}}, 'spec.run.results: "Retain" cannot be set in a suite'),
        (
            {"variants": [{"name": "a", "set": {"suspend": True}}]},
            "spec.variants[0].set.suspend: true cannot be set in a suite",
        ),
        (
            {"variants": [{"name": "a", "set": {"ttlSecondsAfterFinished": 60}}]},
            "spec.variants[0].set.ttlSecondsAfterFinished: 60 cannot be set in a suite",
        ),
        (
            {"run": RUN | {"workloads": [{"fio": {}}]}},
            "spec.run.workloads[0].name: is required as text, because workloads are merged by name; add it",
        ),
        (
            {"variants": [{"name": "a", "set": {"clients": {"spread": None}}}]},
            "spec.variants[0].set.clients.spread: null cannot be null, which kubectl apply drops; to remove a field",
        ),
        (
            {"variants": [{"name": "a", "unset": ["clients.count", "clients.count"]}]},
            'spec.variants[0].unset[1]: "clients.count" is not set in spec.run; correct or remove it',
        ),
        (
            {"variants": [{"name": "a", "unset": ["clients.cuont"]}]},
            'spec.variants[0].unset[0]: "clients.cuont" is not set in spec.run; correct or remove it',
        ),
        (
            {"variants": [{"name": "a", "set": {"workloads": [{"name": "w"}, {"name": "w"}]}}]},
            'spec.variants[0].set.workloads[1].name: "w" is already the name of workloads[0]; choose unique names',
        ),
    ],
)
def test_bad_field_is_refused_with_the_remedy(spec: dict[str, Any], expected: str) -> None:
    (problem,) = problems(suite_document(**spec))
    assert problem.startswith(expected)


def test_missing_parts_are_named() -> None:
    document = suite_document()
    del document["spec"]["run"], document["spec"]["variants"]
    assert problems(document) == [
        "spec.run: is required; add it",
        "spec.variants: is required; add it",
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("s" * 31, "must have at most 30 characters"), ("-s", "must consist of lower-case letters")],
)
def test_bad_name_is_refused(name: str, expected: str) -> None:
    (problem,) = problems(suite_document(name))
    assert problem.startswith(f'metadata.name: "{name}" {expected}')


def test_generated_name_is_refused() -> None:
    document = suite_document() | {"metadata": {"generateName": "sizes-"}}
    assert problems(document) == ["metadata.generateName: is not supported; write metadata.name instead"]


def test_another_kind_is_refused() -> None:
    assert problems(suite_document() | {"kind": "BenchmarkRun"}) == ['kind: "BenchmarkRun" must be BenchmarkSuite']
    assert load_run_problems(suite_document()) == ['kind: "BenchmarkSuite" must be BenchmarkRun']
    assert 'kind: "BenchmarkSuit" must be BenchmarkSuite' in problems({"kind": "BenchmarkSuit"})
    assert problems(None) == ["document: is empty; write one BenchmarkSuite of plimsoll.dev/v1alpha1"]
    assert problems([]) == ["document: is not a mapping; write one BenchmarkSuite of plimsoll.dev/v1alpha1"]
