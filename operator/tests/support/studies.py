"""The suites of the studies in `manifests/studies`, with their overlays applied."""

from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from plimsoll.api.suite import BenchmarkSuite, decode_suite
from plimsoll.plan.document import Plan
from plimsoll.suite.children import variant_plans

FOLDER = Path(__file__).parents[3] / "manifests" / "studies"
STUDIES = ("kit", "ornl", "utsa", "ctu", "blog")
OVERLAYS = tuple(sorted(path.parent.relative_to(FOLDER) for path in FOLDER.glob("overlays/*/*/kustomization.yaml")))

CLUSTER_FORMS = tuple(Path("../../e2e/studies") / name for name in ("demo", *STUDIES))
"""The forms that the test cluster measures."""


def built(kustomization: Path) -> list[dict[str, Any]]:
    """Return the objects of a folder with a kustomization."""
    document = yaml.safe_load((kustomization / "kustomization.yaml").read_text())
    assert document.keys() <= {"apiVersion", "kind", "resources", "patches"}
    objects = [one for resource in document["resources"] for one in _resource((kustomization / resource).resolve())]
    for patch in document.get("patches", []):
        (target,) = [one for one in objects if one["metadata"]["name"] == patch["target"]["name"]]
        assert target["kind"] == patch["target"]["kind"]
        _patch(target, yaml.safe_load(patch["patch"]))
    return objects


@cache
def small_suites() -> dict[str, BenchmarkSuite]:
    """Return the suites as they are in the repository, by their names."""
    found = [suite for study in STUDIES for suite in suites_in(Path(study))]
    assert len({suite.metadata.name for suite in found}) == len(found)
    return {suite.metadata.name: suite for suite in found}


def suites_in(folder: Path) -> list[BenchmarkSuite]:
    """Return the suites of a kustomization below `manifests/studies`."""
    return [decode_suite(document) for document in built(FOLDER / folder)]


@cache
def small_plans() -> dict[str, dict[str, Plan]]:
    """Return the plans of all variants, by suite and variant."""
    return {name: variant_plans(suite, seed=1) for name, suite in small_suites().items()}


def _resource(path: Path) -> Iterator[dict[str, Any]]:
    if path.is_dir():
        yield from built(path)
    else:
        yield from yaml.safe_load_all(path.read_text())


def _patch(document: dict[str, Any], operations: list[dict[str, Any]]) -> None:
    """Apply a JSON patch (RFC 6902) with the operations that the overlays use."""
    for one in operations:
        *parents, last = one["path"].removeprefix("/").split("/")
        place: Any = document
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place[part]
        key: Any = int(last) if isinstance(place, list) and last != "-" else last
        match one["op"]:
            case "add" if isinstance(place, list):
                place.insert(len(place) if key == "-" else key, deepcopy(one["value"]))
            case "add":
                place[key] = deepcopy(one["value"])
            case "replace":
                assert place[key] != one["value"], f"{one['path']} already has that value"
                place[key] = deepcopy(one["value"])
            case "remove":
                del place[key]
            case "test":
                assert place[key] == one["value"], one
            case other:
                raise AssertionError(f"operation {other} is not supported here")
