"""The models and the API server reject the same documents; exceptions have a reason."""

import pytest
import yaml

from plimsoll.api.errors import SpecError
from plimsoll.api.run import load_run
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import make_plan
from support.corpus import ACCEPTED, REFUSED
from support.manifests import FULL, Manifest


def planned(manifest: Manifest) -> Plan:
    return make_plan(load_run(yaml.safe_dump(manifest.document)), seed=1)


@pytest.mark.parametrize("manifest", [one for one in REFUSED if not one.model_accepts], ids=lambda one: one.name)
def test_models_refuse_it_too(manifest: Manifest) -> None:
    with pytest.raises(SpecError):
        planned(manifest)


@pytest.mark.parametrize("manifest", [one for one in REFUSED if one.model_accepts], ids=lambda one: one.name)
def test_models_accept_it(manifest: Manifest) -> None:
    assert planned(manifest).points


@pytest.mark.parametrize("manifest", [one for one in ACCEPTED if not one.server_accepts], ids=lambda one: one.name)
def test_models_accept_it_too(manifest: Manifest) -> None:
    assert planned(manifest).points


@pytest.mark.parametrize("manifest", [one for one in ACCEPTED if one.server_accepts], ids=lambda one: one.name)
def test_models_refuse_it(manifest: Manifest) -> None:
    with pytest.raises(SpecError):
        planned(manifest)


def test_full_run_has_a_plan() -> None:
    assert len(make_plan(load_run(yaml.safe_dump(dict(FULL))), seed=1).points) == 4 * 6 + 1


@pytest.mark.parametrize("manifests", [REFUSED, ACCEPTED], ids=["refused", "accepted"])
def test_names_differ(manifests: list[Manifest]) -> None:
    names = [manifest.name for manifest in manifests]
    assert sorted(names) == sorted(set(names))
