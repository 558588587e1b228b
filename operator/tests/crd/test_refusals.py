"""The API server rejects violations of every constraint with a message that names the field."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from crd.corpus import ACCEPTED, REFUSED
from crd.manifests import FULL, Manifest
from support.apiserver import RUNS, Answer, ApiServer, create

pytestmark = pytest.mark.crd
SAMPLES = Path(__file__).parents[3] / "manifests" / "samples"


@pytest.mark.parametrize("manifest", REFUSED, ids=lambda manifest: manifest.name)
def test_refused(refusal: Callable[[str, Manifest], Answer], manifest: Manifest) -> None:
    answer = refusal(RUNS, manifest)
    assert answer.code in (400, 422), answer.body
    assert manifest.says
    for words in manifest.says:
        assert words in answer.message.replace('\\"', '"')


@pytest.mark.parametrize("manifest", ACCEPTED, ids=lambda manifest: manifest.name)
def test_accepted(api: ApiServer, manifest: Manifest) -> None:
    create(api, RUNS, manifest.document).expect(201)


def test_nothing_of_a_full_run_is_lost(api: ApiServer) -> None:
    assert create(api, RUNS, dict(FULL)).expect(201)["spec"] == {
        **FULL["spec"],
        "workloads": [
            FULL["spec"]["workloads"][0]
            | {"fio": FULL["spec"]["workloads"][0]["fio"] | {"fsyncEvery": 0, "directIo": True}},
            FULL["spec"]["workloads"][1] | {"runtimeSeconds": 60, "rampSeconds": 10},
        ],
    }


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_samples_are_accepted(api: ApiServer, path: Path) -> None:
    document = yaml.safe_load(path.read_text())
    namespace = document["metadata"].setdefault("namespace", "default")
    create(api, RUNS.replace("/default/", f"/{namespace}/"), document).expect(201)
