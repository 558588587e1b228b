"""Suites on a real API server: their rounds, whatever happens to the operator, the runs and the API."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.api.suite_status import minute_of_round, round_name
from plimsoll.kube.client import AioKube
from plimsoll.kube.port import ConflictError, Kind
from plimsoll.suite.children import measured_digest, turn_in_name
from support.apiserver import ApiServer
from support.played_suites import RUN, SUITE, Mortal, PlayedSuite, end_run
from support.pretend_suites import START, KilledError
from support.specs import suite_document

pytestmark = [pytest.mark.crd, pytest.mark.timeout(180)]

SAMPLES = sorted((Path(__file__).parents[4] / "manifests" / "samples").glob("*.yaml"))
MINUTE = int(START.timestamp()) // 60
ACCEPTED = {"name": "upgrade", "baseline": {"rounds": "Accepted"}}
BETWEEN = {"name": "costs", "baseline": {"variant": "small"}, "candidate": {"variant": "large"}}


@pytest.fixture
def played(real: AioKube, namespace: str) -> PlayedSuite:
    return PlayedSuite(kube=real, operator=Mortal(real), namespace=namespace)


async def test_round_measures_all_variants_one_run_at_a_time(played: PlayedSuite) -> None:
    await played.create(suite_document(comparisons=[BETWEEN], repeat=3))
    await played.settle()
    for number in range(1, 7):
        assert len(played.created) == number
        assert (await played.condition("Reconciling"))["message"] == f"round {round_name(MINUTE)}: run {number} of 6"
        assert await played.finish({"small": 1000 + number, "large": 800 + number})
        await played.settle()
    status = await played.status()
    assert len(played.created) == len(set(played.created)) == 6
    assert "round" not in status
    (ended,) = status["rounds"]
    assert (ended["minute"], ended["cause"], ended["verdict"]) == (MINUTE, "Change", "NoRegression")
    assert ended["environment"] == {"kernel": "6.1.0", "kubernetes": "v1.34.1"}
    (outcome,) = status["comparisons"]
    assert (outcome["name"], outcome["variant"], outcome["verdict"]) == ("costs", "large", "Regression")
    assert outcome["estimate"] == pytest.approx(-0.2, abs=0.01)
    assert outcome["low"] < outcome["estimate"] < outcome["high"] < 0
    assert [event.partition(":")[0] for event in played.events] == ["RoundStarted", "RoundNoRegression"]
    assert (await played.condition("Ready"))["reason"] == "Idle"
    # What a variant costs is no regression.
    assert (await played.condition("Regressed"))["status"] == "False"


async def test_runs_are_owned_and_have_nothing_of_the_suites_metadata(played: PlayedSuite) -> None:
    document = suite_document()
    document["metadata"] |= {"labels": {"argocd.argoproj.io/instance": "x"}}
    await played.create(document)
    await played.annotate("request-round", "first")
    await played.settle()
    (run,) = await played.runs()
    uid = played.document["metadata"]["uid"]
    assert run["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "BenchmarkSuite",
            "name": "sizes",
            "uid": uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert set(run["metadata"]["labels"]) == {
        f"plimsoll.dev/{name}" for name in ("suite", "variant", "round", "repeat")
    }
    assert "annotations" not in run["metadata"]
    turn = turn_in_name("sizes", uid, run["metadata"]["name"])
    assert turn is not None
    assert turn[1] == MINUTE


@pytest.mark.parametrize("is_performed", [False, True])
async def test_killed_operator_creates_no_run_twice(real: AioKube, namespace: str, *, is_performed: bool) -> None:
    for number in range(1, 13):
        played = PlayedSuite(kube=real, operator=Mortal(real), namespace=namespace, name=f"s{number}")
        await played.create(suite_document(repeat=1))
        played.operator.kill_in, played.operator.kill_after = number, is_performed
        for _ in range(2):
            try:
                ended = await played.measure_round(small=1000, large=1000)
            except KilledError:
                played.restart()
        own = [run for run in await played.runs() if run["metadata"]["labels"]["plimsoll.dev/suite"] == played.name]
        assert len(own) == 2
        assert ended["verdict"] == "NoRegression"
        assert len((await played.status())["rounds"]) == 1


async def test_status_is_not_written_over_one_that_has_changed(played: PlayedSuite) -> None:
    await played.create(suite_document())

    class Late(Mortal):
        async def versions(self, kind: Kind, *arguments: Any, **options: Any) -> Any:
            await played.annotate("request-round", "meanwhile")
            return await self.kube.versions(kind, *arguments, **options)

    healthy, played.operator = played.operator, Late(played.kube)
    played.restart()
    with pytest.raises(ConflictError):
        await played.look()
    assert (await played.status()) == {"observedGeneration": -1}
    played.operator = healthy
    played.restart()
    await played.settle()
    assert (await played.status())["round"]["minute"] == MINUTE


async def test_run_without_its_labels_is_neither_gone_nor_created_again(played: PlayedSuite) -> None:
    await played.create(suite_document(repeat=1))
    await played.settle()
    await played.kube.patch(RUN, played.created[0], played.namespace, {"metadata": {"labels": None}})
    played.restart()
    assert await played.settle() > 0
    assert len(played.created) == 1
    assert (await played.status())["round"]["children"] == {"done": 0, "total": 2}


async def test_run_that_a_user_deletes_is_over(played: PlayedSuite) -> None:
    await played.create(suite_document(repeat=1))
    await played.settle()
    first = played.created[0]
    await played.kube.delete(RUN, first, played.namespace)
    ended = await played.measure_round(small=1000, large=1000)
    assert ended["verdict"] == "Failed"
    assert len(played.created) == 2
    assert first not in {run["metadata"]["name"] for run in await played.runs()}


async def test_foreign_run_with_the_name_of_the_next_one_is_not_touched(played: PlayedSuite) -> None:
    await played.create(suite_document(repeat=1))
    await played.settle()
    first = played.created[0]
    other = first.replace("-small-", "-large-") if "-small-" in first else first.replace("-large-", "-small-")
    spec = (await played.runs())[0]["spec"]
    foreign = {"apiVersion": RUN.api_version, "kind": RUN.kind, "spec": spec}
    await played.kube.create({**foreign, "metadata": {"name": other, "namespace": played.namespace}})
    await _finish(played, first)
    assert await played.settle() == pytest.approx(60)
    stalled = await played.condition("Stalled")
    assert stalled["reason"] == "NameTaken"
    assert other in stalled["message"]
    await played.kube.delete(RUN, other, played.namespace)
    played.pass_time(seconds=60)
    await played.settle()
    assert not await played.condition("Stalled")
    assert other in {run["metadata"]["name"] for run in await played.runs()}


async def test_run_that_somebody_created_with_fewer_checks_is_not_that_of_the_suite(played: PlayedSuite) -> None:
    await played.create(suite_document(repeat=1))
    await played.settle()
    first = played.created[0]
    other = first.replace("-small-", "-large-") if "-small-" in first else first.replace("-large-", "-small-")
    (run,) = await played.runs()
    forged = {"apiVersion": RUN.api_version, "kind": RUN.kind, "spec": run["spec"] | {"repetitions": 1}}
    metadata = {"name": other, **{name: run["metadata"][name] for name in ("namespace", "labels", "ownerReferences")}}
    await _finish(played, first)
    await played.kube.create({**forged, "metadata": metadata})
    assert await played.settle() == pytest.approx(60)
    stalled = await played.condition("Stalled")
    assert (stalled["reason"], other in stalled["message"]) == ("NameTaken", True)


async def test_defaults_of_the_api_server_change_nothing_that_a_run_measures(real: AioKube, namespace: str) -> None:
    samples = [yaml.safe_load(path.read_text()) for path in SAMPLES]
    samples = [sample for sample in samples if sample["kind"] == RUN.kind]
    assert samples
    for number, sample in enumerate(samples):
        metadata = {"name": f"run-{number}", "namespace": namespace}
        assert await real.create({**sample, "metadata": metadata})
        stored = await real.get(RUN, f"run-{number}", namespace)
        assert stored is not None
        assert measured_digest(stored["spec"]) == measured_digest(sample["spec"]) != ""


async def test_variant_that_a_policy_refuses_stalls_the_suite_before_its_first_run(
    played: PlayedSuite, apiserver: ApiServer
) -> None:
    policy = f"few-{played.namespace}"
    await asyncio.to_thread(_make_policy, apiserver, policy, played.namespace)
    large = {"name": "large", "set": {"clients": {"count": 9}}}
    await played.create(suite_document(variants=[{"name": "small"}, large]))
    await _until_policy_refuses(played)
    assert await played.settle() == pytest.approx(300)
    stalled = await played.condition("Stalled")
    assert stalled["reason"] == "VariantRefused"
    for words in ("variant large", policy, "at most 4 clients", "spec.clients.count", "admission policy or quota"):
        assert words in stalled["message"]
    assert await played.runs() == []
    assert [event.partition(":")[0] for event in played.events] == ["VariantRefused"]
    played.restart()
    await played.settle()
    assert len(played.events) == 1, "a restarted operator does not repeat it"
    await played.change(variants=[{"name": "small"}, {**large, "set": {"clients": {"count": 4}}}])
    await played.settle()
    assert not await played.condition("Stalled")
    assert len(await played.runs()) == 1


async def test_change_during_a_round_deletes_its_run_and_starts_another_one(played: PlayedSuite) -> None:
    await played.create(suite_document(repeat=1))
    await played.settle()
    first = played.created[0]
    await played.kube.patch(RUN, first, played.namespace, {"metadata": {"finalizers": ["plimsoll.dev/test"]}})
    await played.change(repeat=2)
    await played.settle()
    assert [one["verdict"] for one in (await played.status())["rounds"]] == ["Superseded"]
    assert (await played.condition("Reconciling"))["reason"] == "WaitingForRun"
    assert len(played.created) == 1
    await played.kube.patch(RUN, first, played.namespace, {"metadata": {"finalizers": None}})
    ended = await played.measure_round(small=1000, large=1000)
    assert (ended["verdict"], ended["minute"]) == ("NoRegression", MINUTE + 1)


async def test_regression_closes_the_gate_until_its_round_is_accepted(played: PlayedSuite) -> None:
    await played.create(suite_document(comparisons=[ACCEPTED], gate=True, keep=2))
    for number in range(3):
        ended = await _requested_round(played, number, small=1000, large=2000)
        assert (ended["verdict"], ended["accepted"], ended["pinned"]) == ("Inconclusive", True, True)
    assert (await _requested_round(played, 3, small=1000, large=2000))["verdict"] == "NoRegression"
    played.restart()
    regressed = await _requested_round(played, 4, small=1000, large=1500)
    assert (regressed["verdict"], regressed["accepted"]) == ("Regressed", False)
    stalled = await played.condition("Stalled")
    assert stalled["reason"] == "Regressed"
    first = (await played.status())["comparisons"][0]
    assert (first["variant"], first["verdict"]) == ("large", "Regression")
    assert first["estimate"] == pytest.approx(-0.25, abs=0.02)
    await played.annotate("accept-round", round_name(regressed["minute"]))
    await played.settle()
    assert not await played.condition("Stalled")
    accepted = [one["minute"] for one in (await played.status())["rounds"] if one["accepted"]]
    assert accepted == [regressed["minute"]]


async def test_runs_of_rounds_that_are_no_longer_kept_are_deleted(played: PlayedSuite) -> None:
    await played.create(suite_document(variants=[{"name": "small"}], repeat=1, keep=1))
    minutes = [(await _requested_round(played, number, small=1000))["minute"] for number in range(7)]
    kept = [one["minute"] for one in (await played.status())["rounds"]]
    assert kept == [minutes[6], *reversed(minutes[:5])], "the newest and the pinned ones"
    left = {minute_of_round(run["metadata"]["labels"]["plimsoll.dev/round"]) for run in await played.runs()}
    assert left == set(kept)


async def test_schedule_catches_up_once(played: PlayedSuite) -> None:
    schedule = {"cron": "0 * * * *", "startingDeadlineSeconds": 7200}
    await played.create(suite_document(repeat=1, schedule=schedule))
    await played.measure_round(small=1000, large=1000)
    assert await played.settle() == 300, "the version of Ceph is looked at meanwhile"
    played.pass_time(hours=5, minutes=10)
    played.restart()
    ended = await played.measure_round(small=1000, large=1000)
    assert (ended["cause"], len((await played.status())["rounds"])) == ("Scheduled", 2)
    status = await played.status()
    assert (status["lastScheduleTime"], status["nextScheduleTime"]) == ("2026-11-25T17:00:00Z", "2026-11-25T18:00:00Z")


async def test_suite_that_is_being_deleted_or_gone_is_left_alone(played: PlayedSuite) -> None:
    await played.create(suite_document(repeat=1))
    await played.kube.patch(SUITE, "sizes", played.namespace, {"metadata": {"finalizers": ["plimsoll.dev/test"]}})
    await played.kube.delete(SUITE, "sizes", played.namespace)
    await played.settle()
    await played.kube.patch(SUITE, "sizes", played.namespace, {"metadata": {"finalizers": None}})
    await played.settle()
    assert await played.runs() == []


async def _requested_round(played: PlayedSuite, number: int, **rates: float) -> Any:
    await played.annotate("request-round", f"number {number}")
    played.pass_time(minutes=5)
    return await played.measure_round(**rates)


async def _finish(played: PlayedSuite, name: str) -> None:
    run = await played.kube.get(RUN, name, played.namespace)
    assert run is not None
    await end_run(played.kube, run, succeeded=True)


def _make_policy(apiserver: ApiServer, name: str, namespace: str) -> None:
    """Have the API server refuse runs with more than 4 clients in a namespace."""
    group = "/apis/admissionregistration.k8s.io/v1"
    rule = {
        "apiGroups": ["plimsoll.dev"],
        "apiVersions": ["*"],
        "operations": ["CREATE"],
        "resources": ["benchmarkruns"],
    }
    validation = {"expression": "object.spec.clients.count <= 4", "message": "spec.clients.count: at most 4 clients"}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [validation], "failurePolicy": "Fail"}
    policy = {"metadata": {"name": name}, "spec": spec}
    apiserver.request("POST", f"{group}/validatingadmissionpolicies", policy).expect(201)
    place = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    binding = {"policyName": name, "validationActions": ["Deny"], "matchResources": place}
    document = {"metadata": {"name": name}, "spec": binding}
    apiserver.request("POST", f"{group}/validatingadmissionpolicybindings", document).expect(201)


async def _until_policy_refuses(played: PlayedSuite) -> None:
    """Wait until the API server knows the policy."""
    spec = suite_document()["spec"]["run"] | {"clients": {"count": 9}}
    run = {"apiVersion": RUN.api_version, "kind": RUN.kind, "spec": spec}
    probe = {**run, "metadata": {"name": "probe", "namespace": played.namespace}}
    async with asyncio.timeout(60):
        while True:
            try:
                await played.kube.create(probe, dry_run=True)
            except Exception as error:  # noqa: BLE001 - whatever the refusal is
                if "at most 4 clients" in str(error):
                    return
            await asyncio.sleep(0.2)
