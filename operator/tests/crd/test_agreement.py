"""The models and the API server reject the same documents; exceptions have a reason."""

import pytest
import yaml

from crd.corpus import ACCEPTED, REFUSED
from crd.corpus_suites import OPEN_SUITES, REFUSED_SUITES
from crd.manifests import FULL, Manifest
from plimsoll.api.errors import SpecError
from plimsoll.api.run import load_run
from plimsoll.api.suite import decode_suite
from plimsoll.api.suite_status import BenchmarkSuiteStatus
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import make_plan
from plimsoll.suite.children import variant_plans
from support.full_documents import FULL_SUITE, FULL_SUITE_STATUS


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


@pytest.mark.parametrize(
    "manifests", [REFUSED, ACCEPTED, [*REFUSED_SUITES, *OPEN_SUITES]], ids=["refused", "accepted", "suites"]
)
def test_names_differ(manifests: list[Manifest]) -> None:
    names = [manifest.name for manifest in manifests]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("manifest", [*REFUSED_SUITES, *OPEN_SUITES], ids=lambda one: one.name)
def test_models_refuse_the_suite(manifest: Manifest) -> None:
    with pytest.raises(SpecError):
        decode_suite(manifest.document)


def test_full_suite_has_plans() -> None:
    plans = variant_plans(decode_suite(dict(FULL_SUITE)), seed=1)
    assert {name: len(plan.points) for name, plan in plans.items()} == {"a": 6, "b": 6}


def test_a_status_is_read_as_it_is_written() -> None:
    assert (
        BenchmarkSuiteStatus.model_validate(FULL_SUITE_STATUS).model_dump(mode="json", exclude_none=True)
        == FULL_SUITE_STATUS
    )
