"""Names that the API server takes, different for different things."""

import re

import hypothesis.strategies as st
from hypothesis import given

from plimsoll.lifecycle import naming

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
UID = "d9428888-122b-11e1-b85c-61cd3cbb3210"
MAX_OBJECT_NAME = 253
RUN = st.from_regex(r"[a-z]([-a-z0-9]{0,60}[a-z0-9])?", fullmatch=True)


@given(RUN, st.integers(0, 999), st.integers(0, 9))
def test_children_have_names_that_the_api_server_takes(run: str, client: int, attempt: int) -> None:
    names = [
        naming.plan_config_map(run),
        naming.state_config_map(run),
        naming.conductor(run),
        naming.client_job(run, client, attempt),
        naming.client_claim(run, client),
        naming.ceph_config_map(run),
        naming.storage_class(run, "uid"),
        *(naming.keyring_secret(UID, component) for component in (naming.CONDUCTOR, naming.CLIENT)),
        naming.session_secret(UID),
        naming.teardown(UID),
    ]
    assert len(set(names)) == len(names)
    for name in names:
        assert len(name) <= 63
        assert LABEL.fullmatch(name)
    assert LABEL.fullmatch(naming.conductor_account(run))
    assert len(naming.conductor_account(run)) <= MAX_OBJECT_NAME


@given(st.sets(RUN, min_size=2, max_size=2), st.integers(0, 999))
def test_children_of_different_runs_do_not_share_a_name(runs: set[str], client: int) -> None:
    one, other = runs
    assert naming.conductor(one) != naming.conductor(other)
    assert naming.client_claim(one, client) != naming.client_claim(other, client)


@given(RUN)
def test_a_label_value_fits(run: str) -> None:
    assert len(naming.label_value(run * 3)) <= 63
