"""The frozen plan as a document, whose format must not change unnoticed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plimsoll.api.errors import SpecError
from plimsoll.api.run import MAX_REPETITIONS, BenchmarkRun, load_run
from plimsoll.plan import document
from plimsoll.plan.document import MAX_POINTS, Plan, load_plan
from plimsoll.plan.expand import make_plan

MakeRun = Callable[..., BenchmarkRun]

GOLDEN = Path(__file__).parents[1] / "golden" / "plan-v1-quickstart.json"
QUICKSTART = Path(__file__).parents[1] / "golden" / "plan-v1-quickstart.yaml"


def quickstart() -> Plan:
    return make_plan(load_run(QUICKSTART.read_text()), seed=1)


def test_plan_of_the_quickstart_is_unchanged() -> None:
    """If this fails: a plan of an earlier Plimsoll would be measured differently.

    Where that is intended, raise the schema version and freeze the new form beside this one. A field that is merely
    added, with a default that measures as before, needs no new version.
    """
    assert quickstart().model_dump_json(indent=1) + "\n" == GOLDEN.read_text()


def test_frozen_plan_is_read() -> None:
    assert load_plan(GOLDEN.read_text()) == quickstart()


def test_largest_plan_round_trips_and_fits_into_a_config_map(make_run: MakeRun) -> None:
    axis = list(range(1, 65))
    fio = {"pattern": "randrw", "ioDepth": axis, "rateIops": 2**31 - 1, "readPercent": 50, "fsyncEvery": 2**31 - 1}
    run = make_run({"fio": fio, "clients": list(range(1, 9)), "name": "w" * 32}, repetitions=MAX_REPETITIONS)
    plan = make_plan(run, seed=2**63 - 1, runner_image="registry.example.org/" + "r" * 200)
    assert len(plan.points) == MAX_POINTS
    text = plan.model_dump_json()
    assert load_plan(text) == plan
    assert len(text.encode()) < 2**20
    assert sum(map(text.count, ",:[{")) < document._MAX_PARTS / 2


@pytest.mark.parametrize("parts", ["0," * 2**19, "[]," * 2**18, '"":0,' * 2**17])
def test_a_plan_with_more_parts_than_any_is_not_parsed(parts: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else may have created it: a MiB of invalid entries would take the operator a GiB."""
    monkeypatch.setattr(document, "_Versioned", None)
    with pytest.raises(SpecError, match=r"^document: has \d+ parts, but at most 131072 are allowed$"):
        load_plan(f'{{"schemaVersion":1,"points":[{parts}0]}}')


def test_plan_on_ceph_round_trips(make_run: MakeRun) -> None:
    ceph = {
        "monitors": ["[v2:192.0.2.1:3300,v1:192.0.2.1:6789]"],
        "user": "u",
        "keyringSecret": {"name": "k"},
        "pool": {"name": "meta", "dataPool": "data"},
    }
    rook = {"cluster": {"namespace": "r", "name": "r"}, "pool": {"erasureCoded": {"dataChunks": 2, "codingChunks": 1}}}
    osd_bench = {"osdBench": {"keyringSecret": {"name": "admin"}}}
    for source in ({"ceph": ceph}, {"rook": rook}):
        storage = {**source, "volume": {"size": "1Gi", "access": "LibRBD"}}
        plan = make_plan(make_run({"fio": {}}, {"radosBench": {}}, osd_bench, storage=storage), seed=1)
        assert plan.ceph is not None
        assert load_plan(plan.model_dump_json()) == plan


def test_point_is_found_by_its_name() -> None:
    plan = quickstart()
    assert plan.point("random-write-001") == plan.points[3]
    with pytest.raises(KeyError, match="random-write-002"):
        plan.point("random-write-002")


def problems(text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load_plan(text)
    return [str(problem) for problem in caught.value.problems]


def changed(**fields: Any) -> str:
    document: dict[str, Any] = json.loads(GOLDEN.read_text())
    return json.dumps({key: value for key, value in (document | fields).items() if value is not ...})


@pytest.mark.parametrize("version", [0, 2, 17])
def test_plan_of_another_version_is_refused(version: int) -> None:
    assert problems(changed(schemaVersion=version, points="in another form", more=[])) == [
        (f"schemaVersion: {version} is not supported by this Plimsoll, only 1; use the Plimsoll that created the plan")
    ]


def test_plan_without_a_version_is_refused() -> None:
    assert problems(changed(schemaVersion=...)) == ["schemaVersion: is required; add it"]


@pytest.mark.parametrize("cut", [0, 1, 100, -3])
def test_truncated_plan_is_refused(cut: int) -> None:
    (found,) = problems(GOLDEN.read_text()[:cut])
    assert found.startswith("document: is not JSON: EOF while parsing")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"order": [[0, 1, 2, 3]]},
            "order: must contain each of the 4 points once in each of 3 passes; the plan is damaged",
        ),
        ({"order": [[0, 1, 2, 4]] * 3}, "order: must contain each of the 4 points once in each of 3 passes; the plan"),
        ({"order": [[0, 1, 2, 2]] * 3}, "order: must contain each of the 4 points once in each of 3 passes; the plan"),
        ({"order": [[0, 1, 2]] * 3}, "order: must contain each of the 4 points once in each of 3 passes; the plan"),
        ({"points": []}, "points: must have at least 1 entry"),
        ({"seed": "x"}, 'seed: "x" must be a whole number'),
        ({"seed": ...}, "seed: is required; add it"),
        ({"bogus": 1}, "bogus: is not a known field; remove it or correct its spelling"),
    ],
)
def test_damaged_plan_is_refused(fields: dict[str, Any], expected: str) -> None:
    (found,) = problems(changed(**fields))
    assert found.startswith(expected)


def test_repeated_names_of_points_are_refused() -> None:
    first = json.loads(GOLDEN.read_text())["points"][0]
    assert problems(changed(points=[first] * 4)) == ["points: must have unique names; the plan is damaged"]
