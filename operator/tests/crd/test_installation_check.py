"""The API server accepts the run of `plimsoll check-installation`."""

import pytest

from plimsoll.programs.hooks import _suspended_run
from support.apiserver import RUNS, ApiServer, create

pytestmark = pytest.mark.crd


def test_the_run_of_the_check_is_accepted_and_suspended(api: ApiServer) -> None:
    made = create(api, RUNS, dict(_suspended_run("check", "default"))).expect(201)
    assert made["spec"]["suspend"] is True
