"""What the API server answers to a suite's requests: outcomes, and errors that a retry may fix."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.api.names import API_VERSION, RUN_KIND
from plimsoll.kube.port import (
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    TerminatingError,
    TransientError,
    UnauthorizedError,
)
from plimsoll.operator.suites import perform
from plimsoll.suite.children import measured_digest, turns_of
from plimsoll.suite.rounds.observed import (
    Absent,
    Checked,
    CreateRun,
    Deleted,
    DeleteRun,
    DryRun,
    GetRun,
    Outcome,
    OwnedRun,
    RunRefusal,
    State,
    Suite,
    read_specification,
)
from plimsoll.suite.rounds.turns import run_object
from support.fake_kube import Document, FakeKube, failing
from support.specs import suite_document

NOW = datetime(2026, 11, 25, tzinfo=UTC)
SPECIFICATION = read_specification(suite_document("s"))
OURS = Suite(
    name="s",
    namespace="default",
    uid="u",
    generation=1,
    resource_version="1",
    is_deleted=False,
    annotations={},
    specification=SPECIFICATION,
    status=State(),
)
DEFINITE = [
    ForbiddenError("asked", "exceeded quota: runs"),
    TerminatingError("asked", "the namespace is being terminated"),
    InvalidError("asked", "spec.clients.count: Invalid value: 9"),
    NotFoundError("asked", "namespace not found"),
]
PASSING = [
    TransientError("asked", "status 503"),
    UnauthorizedError("asked", "expired"),
    ConflictError("asked", "later"),
]


def run_of_suite(minute: int = 1) -> dict[str, Any]:
    asked = SPECIFICATION.suite
    assert asked is not None
    return dict(run_object(OURS, asked, turns_of(asked.spec, 1)[0], minute))


def raising(error: ApiError, request: str, times: int = 10**6) -> FakeKube:
    def answer(_: str) -> ApiError:
        return error

    return FakeKube(interfere=failing(answer, times=times, request=request))


async def asked(kube: FakeKube, request: CreateRun | DeleteRun | GetRun | DryRun) -> Outcome:
    return await perform(request, OURS, kube, now=lambda: NOW)


async def created(kube: FakeKube, run: Document) -> Outcome:
    return await asked(kube, CreateRun(run=run))


async def test_run_is_created_once_and_found_again() -> None:
    kube, run = FakeKube(), run_of_suite()
    first, second = await created(kube, run), await created(kube, run)
    assert isinstance(first, OwnedRun)
    assert first == second
    assert first.minute == 1
    assert len(kube.objects(RUN_KIND)) == 1


async def test_name_of_another_owner_is_taken() -> None:
    kube, run = FakeKube(), run_of_suite()
    kube.put({**run, "metadata": {**run["metadata"], "ownerReferences": []}})
    outcome = await created(kube, run)
    assert isinstance(outcome, RunRefusal)
    assert outcome.is_taken
    assert await got(kube, run) == outcome


async def got(kube: FakeKube, run: Document, **expected: str) -> Outcome:
    return await asked(kube, GetRun(name=run["metadata"]["name"], **expected))


async def test_run_is_absent_only_if_there_is_none_of_its_name() -> None:
    kube, run = FakeKube(), run_of_suite()
    assert await got(kube, run) == Absent(name=run["metadata"]["name"])
    uid = kube.put({**run, "metadata": {**run["metadata"], "ownerReferences": []}})["metadata"]["uid"]
    found = await got(kube, run, uid=uid)
    assert isinstance(found, OwnedRun)
    assert (found.uid, found.is_finished) == (uid, False)
    refused = await got(kube, run, uid="another")
    assert isinstance(refused, RunRefusal)
    assert (refused.is_taken, refused.message) == (True, "exists and does not belong to this suite")


@pytest.mark.parametrize(
    "changes",
    [{"gates": {"cephHealth": "Ignored"}}, {"repetitions": 1}, {"workloads": []}],
    ids=lambda one: next(iter(one)),
)
async def test_run_that_measures_something_else_has_only_taken_the_name(changes: dict[str, Any]) -> None:
    kube, run = FakeKube(), run_of_suite()
    kube.put({**run, "spec": {**run["spec"], **changes}})
    expected = measured_digest(run["spec"])
    for outcome in (await created(kube, run), await got(kube, run, measures=expected, uid="another")):
        assert isinstance(outcome, RunRefusal)
        assert outcome.is_taken
        assert outcome.message.startswith("exists, but its specification differs from the suite's")
    assert isinstance(await got(kube, run), OwnedRun), "what it has to measure is unknown"


async def test_what_users_may_change_and_defaults_make_no_other_run() -> None:
    kube, run = FakeKube(), run_of_suite()
    changed = {"suspend": True, "cleanup": "Never", "results": "Retain", "ttlSecondsAfterFinished": 9}
    kube.put({**run, "spec": {**run["spec"], **changed, "gates": {"cephHealth": "Required", "pauseScrub": True}}})
    assert isinstance(await created(kube, run), OwnedRun)


@pytest.mark.parametrize("error", DEFINITE, ids=lambda error: type(error).__name__)
async def test_definite_refusal_is_an_outcome_with_its_time(error: ApiError) -> None:
    run = run_of_suite()
    refused = await created(raising(error, "create"), run)
    assert refused == RunRefusal(name=run["metadata"]["name"], time=NOW, message=error.reason)
    kube = raising(error, "dry run of")
    checked = await asked(kube, DryRun(digest="d", runs={"small": run}))
    assert checked == Checked(digest="d", time=NOW, variant="small", message=error.reason)


@pytest.mark.parametrize("error", PASSING, ids=lambda error: type(error).__name__)
async def test_whatever_a_retry_may_fix_raises(error: ApiError) -> None:
    with pytest.raises(type(error)):
        await created(raising(error, "create"), run_of_suite())
    requests: dict[str, DryRun | GetRun | DeleteRun] = {
        "dry run of": DryRun(digest="d", runs={"small": run_of_suite()}),
        "get": GetRun(name="s"),
        "delete": DeleteRun(name="s", uid="u"),
    }
    for verb, request in requests.items():
        with pytest.raises(type(error)):
            await asked(raising(error, verb), request)


async def test_dry_run_ends_at_the_first_refusal_and_creates_nothing() -> None:
    kube = raising(InvalidError("asked", "no"), "dry run of", times=1)
    runs = {"small": run_of_suite(1), "large": run_of_suite(2)}
    refused = await asked(kube, DryRun(digest="d", runs=runs))
    assert isinstance(refused, Checked)
    assert refused.variant == "small"
    assert len(kube.requests) == 1
    assert await asked(kube, DryRun(digest="d", runs=runs)) == Checked(digest="d", time=NOW)
    assert kube.objects(RUN_KIND) == []


async def test_run_that_goes_right_after_its_creation_is_not_known_to_exist() -> None:
    class Fleeting(FakeKube):
        async def create(self, obj: Any, *, dry_run: bool = False) -> bool:
            return True

    with pytest.raises(ConflictError, match="deleted meanwhile"):
        await created(Fleeting(), run_of_suite())


async def test_only_the_run_that_is_meant_is_deleted() -> None:
    kube, run = FakeKube(), run_of_suite()
    uid = kube.put(run)["metadata"]["uid"]
    name = run["metadata"]["name"]
    assert await asked(kube, DeleteRun(name=name, uid="another")) == Deleted(uid="another")
    assert len(kube.objects(RUN_KIND)) == 1
    assert await asked(kube, DeleteRun(name=name, uid=uid)) == Deleted(uid=uid)
    assert kube.objects(RUN_KIND) == []
    assert run["apiVersion"] == API_VERSION
