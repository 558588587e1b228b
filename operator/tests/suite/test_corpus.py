"""The models reject the suites that the API server rejects, and some more."""

import pytest

from plimsoll.api.errors import SpecError
from plimsoll.api.suite import decode_suite
from plimsoll.api.suite_status import BenchmarkSuiteStatus
from plimsoll.suite.children import variant_plans
from support.manifests import Manifest
from support.suites import FULL_SUITE, FULL_SUITE_STATUS, OPEN_SUITES, REFUSED_SUITES


@pytest.mark.parametrize("manifest", [*REFUSED_SUITES, *OPEN_SUITES], ids=lambda one: one.name)
def test_models_refuse_it(manifest: Manifest) -> None:
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


def test_names_differ() -> None:
    names = [manifest.name for manifest in (*REFUSED_SUITES, *OPEN_SUITES)]
    assert sorted(names) == sorted(set(names))
