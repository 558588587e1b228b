"""The suites of the studies on a real API server, with the real kustomize: stored as written, and with valid runs."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from plimsoll.api.suite import decode_suite
from plimsoll.suite.children import variant_runs, variant_spec
from support.apiserver import RUNS, ApiServer, create
from support.studies import FOLDER, OVERLAYS, STUDIES, suites_in

pytestmark = pytest.mark.crd

CLUSTER_FORMS = tuple(Path("../../e2e/studies") / name for name in ("demo", *STUDIES))
"""The forms that the test cluster measures."""

FOLDERS = [*map(Path, STUDIES), *OVERLAYS, *CLUSTER_FORMS]


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_suites_are_stored_as_written(kubectl: Callable[..., str], folder: Path) -> None:
    arguments = ["--dry-run=server", "--validate=strict", "--output=json", f"--kustomize={FOLDER / folder}"]
    found = json.loads(kubectl("apply", "--server-side", *arguments))
    stored = [decode_suite(one) for one in found.get("items", [found])]
    expected = suites_in(folder)
    assert {one.metadata.name: one.spec for one in stored} == {one.metadata.name: one.spec for one in expected}
    assert {one.metadata.study for one in stored} == {one.metadata.study for one in expected}
    assert None not in {one.metadata.study for one in stored}


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_the_api_server_accepts_the_run_of_every_variant(api: ApiServer, folder: Path) -> None:
    for suite in suites_in(folder):
        for variant, name in zip(suite.spec.variants, variant_runs(suite), strict=True):
            document = {
                "apiVersion": "plimsoll.dev/v1alpha1",
                "kind": "BenchmarkRun",
                "metadata": {"name": f"{suite.metadata.name}-{name}"},
                "spec": variant_spec(suite.spec.run, variant),
            }
            create(api, RUNS, document).expect(201)
