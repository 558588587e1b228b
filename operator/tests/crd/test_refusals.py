"""The API server rejects violations of every constraint with a message that names the field."""

from collections.abc import Callable

import pytest

from crd.corpus import ACCEPTED, REFUSED
from crd.manifests import FULL, Manifest
from support.apiserver import RUNS, Answer, ApiServer, create

pytestmark = pytest.mark.crd
_FIO_DEFAULTS = {"fsyncEvery": 0, "directIo": True, "randomDistribution": "random"}


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
            FULL["spec"]["workloads"][0] | {"fio": FULL["spec"]["workloads"][0]["fio"] | _FIO_DEFAULTS},
            FULL["spec"]["workloads"][1]
            | {"fio": FULL["spec"]["workloads"][1]["fio"] | {"randomDistribution": "random"}}
            | {"runtimeSeconds": 60, "rampSeconds": 10},
        ],
    }
