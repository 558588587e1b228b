"""Whose requests a helper fulfils, and how often."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.helpers.authority import DROPPING, Turns, namespace_of, refusal_of
from plimsoll.helpers.server import bearer_token, reviewed_user

NAME = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)


@given(NAME, NAME)
def test_a_service_account_belongs_to_its_namespace(namespace: str, name: str) -> None:
    user = f"system:serviceaccount:{namespace}:{name}"
    assert namespace_of(user) == namespace
    assert not refusal_of(user, DROPPING, {namespace})
    assert not refusal_of(user, DROPPING, ["*"])
    assert f"namespace {namespace} may not drop caches" in refusal_of(user, DROPPING, {f"not-{namespace}"})
    assert "caches.namespaces" in refusal_of(user, DROPPING, ())


@pytest.mark.parametrize(
    "user",
    [
        "admin",
        "system:node:a",
        "system:serviceaccount:bench",
        "system:serviceaccount:bench:a:b",
        "system:serviceaccount::a",
        "x:serviceaccount:bench:a",
    ],
)
def test_no_other_user_may(user: str) -> None:
    assert namespace_of(user) is None
    assert "is not a ServiceAccount" in refusal_of(user, DROPPING, ["*", "bench"])


def test_a_token_is_read_from_its_header() -> None:
    assert bearer_token("Bearer a.b.c") == "a.b.c"
    assert bearer_token("bearer a.b.c ") == "a.b.c"
    assert bearer_token("Basic a") == ""
    assert bearer_token("") == ""


def test_only_a_confirmed_audience_counts() -> None:
    user = {"username": "system:serviceaccount:bench:a"}
    status = {"authenticated": True, "audiences": ["plimsoll-caches"], "user": user}
    assert reviewed_user({"status": status}) == "system:serviceaccount:bench:a"
    assert reviewed_user({"status": status | {"audiences": []}}) is None
    assert reviewed_user({"status": status | {"audiences": ["https://kubernetes.default.svc"]}}) is None
    assert reviewed_user({"status": {"authenticated": True, "user": user}}) is None
    assert reviewed_user({"status": status | {"authenticated": False}}) is None
    assert reviewed_user({"status": {"error": "invalid bearer token"}}) is None
    assert reviewed_user({}) is None


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 3))))
def test_drops_never_overlap_and_always_pause(steps: list[tuple[float, float]]) -> None:
    turns, now, ended = Turns(2.0), 100.0, float("-inf")
    for pause, duration in steps:
        now += pause
        wait = turns.take(now)
        assert (wait == 0) == (now >= ended + 2.0)
        if wait:
            assert ended + 2.0 - now == pytest.approx(wait)
            continue
        assert turns.take(now) > 0, "one at a time"
        now += duration
        ended = now
        turns.end(now)
