"""The stand-in for Rook (e2e/rook) writes what real Rooks were recorded to write."""

import json
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from hack.rook_stand_in import NamesOfCeph, Objects, Play, loaded_stand_in, release_of, times_of
from plimsoll.api.storage import Pool, Replicated
from plimsoll.lifecycle.ceph.rook_facts import cluster_fact
from plimsoll.lifecycle.ceph.rook_render import pool_spec
from support.fake_kube import merged
from support.goldens import CEPH_VERSIONS, NEW_ROOK, OLD_ROOK, ceph, rook, rook_object

USAGE = {"stats": {"total_bytes": 3, "total_used_raw_bytes": 1, "total_avail_bytes": 2}}
BOTH = (OLD_ROOK, NEW_ROOK)
RECORDED = {version: json.loads(rook("objects", version)) for version in BOTH}
"""What each object was asked to be, the states that Rook gave it, and the events about it."""

STORIES = [(version, story) for version in BOTH for story in RECORDED[version]]
WITH_SECRET = [(version, story) for version, story in STORIES if "secret" in story]


def name_of(argument: Any) -> str:
    """Return the name of an argument in a test's identifier."""
    return str(argument["name"] if isinstance(argument, dict) else argument)


@pytest.fixture
def stand_in() -> Iterator[Mapping[str, ModuleType]]:
    with loaded_stand_in() as modules:
        yield modules


def severities(report: Mapping[str, Any]) -> dict[str, str]:
    return {name: check["severity"] for name, check in report.get("details", {}).items()}


def written(value: Any) -> dict[str, Any]:
    """Return which fields of an event are written, with those that the API server adds and nulls left out."""
    fields = {name: value[name] for name in sorted(value) if value[name] not in (None, "", {})}
    return {name: type(field) for name, field in fields.items() if name != "metadata"}


@pytest.mark.parametrize(
    ("status", "cluster"),
    [
        ("status-health-ok-muted", "cephcluster-ready-health-ok"),
        ("status-noout-muted", "cephcluster-health-warn-noout-with-muted"),
        ("status-health-warn-insecure-keys", "cephcluster-health-warn-insecure-keys"),
    ],
)
def test_details_list_all_checks_muted_ones_as_well(
    stand_in: Mapping[str, ModuleType], status: str, cluster: str
) -> None:
    recorded = rook_object(cluster)["status"]["ceph"]
    answered, versions = json.loads(rook(status, NEW_ROOK)), json.loads(rook("versions", NEW_ROOK))
    report = stand_in["cluster"].sampled({}, answered, USAGE, versions)
    assert (report["health"], severities(report)) == (recorded["health"], severities(recorded))
    assert report["versions"]["overall"] == recorded["versions"]["overall"]
    assert report.keys() <= recorded.keys() | {"fsid", "capacity"}


@pytest.mark.parametrize("version", CEPH_VERSIONS)
def test_a_cluster_without_checks_has_no_details(stand_in: Mapping[str, ModuleType], version: str) -> None:
    answered, versions = (json.loads(ceph(name, version)) for name in ("status-healthy", "versions"))
    report = stand_in["cluster"].sampled({"health": "HEALTH_WARN"}, answered, USAGE, versions)
    assert (report["health"], report["previousHealth"]) == ("HEALTH_OK", "HEALTH_WARN")
    assert "details" not in report


OSD_DOWN = {"OSD_DOWN": {"message": "2 osds down", "severity": "HEALTH_WARN"}}
FLAGS = {"POOL_SCRUB_FLAGS": {"message": "Some pool(s) have the noscrub flag(s) set", "severity": "HEALTH_OK"}}


@pytest.mark.parametrize("checks", [{}, FLAGS, OSD_DOWN | FLAGS])
def test_checks_that_are_over_are_reported_no_more(stand_in: Mapping[str, ModuleType], checks: dict[str, Any]) -> None:
    old = {"health": "HEALTH_WARN", "details": OSD_DOWN | FLAGS, "versions": {"osd": {"ceph version 18.2.7": 3}}}
    new = {"health": "HEALTH_OK", "versions": {"osd": {"ceph version 20.2.4": 3}}} | (
        {"details": checks} if checks else {}
    )
    assert merged(old, stand_in["cluster"].replacing(old, new)) == new


@pytest.mark.parametrize(("version", "is_served"), [(OLD_ROOK, False), (NEW_ROOK, True)])
def test_only_the_newer_release_serves_a_cluster_whose_only_errors_are_about_keys(
    stand_in: Mapping[str, ModuleType], version: str, *, is_served: bool
) -> None:
    release, found = release_of(stand_in, version), rook_object("cephcluster-health-err")
    is_usable = stand_in["cluster"].is_usable
    assert is_usable(found, release) == is_served
    assert is_usable(rook_object("cephcluster-ready-health-ok"), release)
    found["status"]["ceph"]["details"]["OSD_FULL"] = {"severity": "HEALTH_ERR", "message": "1 full osd(s)"}
    assert not is_usable(found, release)
    assert not is_usable({"status": {}}, release)


@pytest.mark.parametrize("version", BOTH)
def test_events_have_the_recorded_form(stand_in: Mapping[str, ModuleType], version: str) -> None:
    api = Objects(stand_in, version)
    recorded = rook_object("pool-with-both-layouts.events", version)["items"]
    component = recorded[0]["reportingComponent"]
    events = stand_in["worker"].Recorder(api, component, release_of(stand_in, version))
    for event in recorded:
        about = event["involvedObject"]
        pool = {"apiVersion": about["apiVersion"], "kind": about["kind"], "metadata": about}
        for _ in range(times_of(event)):
            if event["type"] == "Normal":
                events.inform(pool, event["reason"], event["message"])
            else:
                events.warn(pool, event["message"])
    played = [*api.events.values()]
    assert [written(event) for event in played] == [written(event) for event in recorded]
    for found, wanted in zip(played, recorded, strict=True):
        for field in ("type", "reason", "message", "involvedObject"):
            assert found[field] == wanted[field]


def play(
    stand_in: Mapping[str, ModuleType], monkeypatch: pytest.MonkeyPatch, version: str, story: Mapping[str, Any]
) -> Play:
    """Return the stand-in after it saw to a recorded object, with three attempts if these fail."""
    status = story["states"][-1]["status"]
    played = Play(stand_in, monkeypatch, version, story["kind"], pool_id=status.get("poolID", 1))
    if "secret" in story:
        field = story["asked"].get("name", story["name"])
        played.ceph.next_keys[f"client.{field}"] = [b64decode(story["secret"]["data"]["userKey"]).decode()]
    played.create(story["name"], story["asked"])
    played.work()
    return played


@pytest.mark.parametrize(("version", "story"), STORIES, ids=name_of)
def test_an_object_becomes_what_rook_made_of_it(
    stand_in: Mapping[str, ModuleType], monkeypatch: pytest.MonkeyPatch, version: str, story: Mapping[str, Any]
) -> None:
    played = play(stand_in, monkeypatch, version, story)
    made = played.object(story["name"])
    assert made["spec"] == story["spec"]
    recorded, states = story["states"], played.api.history[story["name"]]
    if not story["watched"]:
        # Bad capabilities were recorded before Rook reported the failure.
        assert recorded[0] in states
        return
    if recorded[-1]["generation"] > made["metadata"]["generation"]:
        played.ceph.content = any(
            condition["status"] == "True" for state in recorded for condition in state["status"].get("conditions", ())
        )
        played.api.delete(story["kind"], story["name"])
        played.work(8.0)
        played.ceph.content = False
        played.work(12.0)
        assert played.api.get(story["kind"], story["name"]) is None
    # The states are among the recorded ones, in their order. The watch of the newer Rook's file system began with its
    # first status.
    remaining = iter(recorded)
    assert all(state in remaining for state in states if state["status"])
    assert states[-1] == recorded[-1]


@pytest.mark.parametrize(("version", "story"), STORIES, ids=name_of)
def test_events_about_an_object_are_those_that_rook_wrote(
    stand_in: Mapping[str, ModuleType], monkeypatch: pytest.MonkeyPatch, version: str, story: Mapping[str, Any]
) -> None:
    """How often it tried again until the recording ended does not matter."""
    played, recorded = play(stand_in, monkeypatch, version, story).events(), [tuple(event) for event in story["events"]]
    if story["kind"] == "CephFilesystem":
        # The newer Rook reads a file system again after its first status, so that a new series begins.
        assert {event[:3] for event in played} == {event[:3] for event in recorded}
        return
    assert [event[:3] for event in played[: len(recorded)]] == [event[:3] for event in recorded]
    assert {event[2] for event in played} == {event[2] for event in recorded}
    for found, wanted in zip(played, recorded, strict=False):
        assert found[0] == "Warning" or found[3] == wanted[3]


@pytest.mark.parametrize(("version", "story"), WITH_SECRET, ids=name_of)
def test_the_secret_of_a_user_is_as_rook_wrote_it(
    stand_in: Mapping[str, ModuleType], monkeypatch: pytest.MonkeyPatch, version: str, story: Mapping[str, Any]
) -> None:
    played, recorded = play(stand_in, monkeypatch, version, story), story["secret"]
    secret = played.api.get("Secret", recorded["name"])
    assert secret is not None
    assert (secret["type"], secret["data"]) == (recorded["type"], recorded["data"])
    assert secret["metadata"]["annotations"] == recorded["annotations"]
    (owner,) = secret["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("CephClient", story["name"], True)


def test_a_request_that_fails_is_repeated(stand_in: Mapping[str, ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
    (story,) = (story for story in RECORDED[NEW_ROOK] if story["name"] == "bench-rep2")
    played, failures = Play(stand_in, monkeypatch, NEW_ROOK, story["kind"]), ["replace", "patch"]

    def fail(verb: str, kind: str) -> None:
        if kind == story["kind"] and verb in failures:
            failures.remove(verb)
            raise stand_in["kube"].ApiError(0, "connection reset")

    played.api.fails = fail
    played.create(story["name"], story["asked"])
    played.work()
    assert failures == []
    assert played.object(story["name"])["status"]["phase"] == "Ready"


def without_times(status: Mapping[str, Any]) -> dict[str, Any]:
    conditions = [
        {name: value for name, value in condition.items() if not name.endswith("Time")}
        for condition in status["conditions"]
    ]
    return {"conditions": conditions, **{name: status[name] for name in ("message", "phase", "state")}}


def test_an_external_cluster_is_connected_and_any_other_is_as_recorded(stand_in: Mapping[str, ModuleType]) -> None:
    recorded = rook_object("cephcluster-ready-health-ok")
    created = stand_in["cluster"].success(recorded)
    assert without_times(created) == without_times(recorded["status"])
    assert created["conditions"][0]["lastTransitionTime"] == recorded["status"]["conditions"][0]["lastTransitionTime"]
    recorded["spec"]["external"] = {"enable": True}
    connected = stand_in["cluster"].success(recorded)
    (condition,) = connected["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Connected", "True", "ClusterConnected")
    assert (connected["phase"], connected["state"], connected["message"]) == (
        "Connected",
        "Connected",
        "Cluster connected successfully",
    )
    assert condition["lastTransitionTime"] > created["conditions"][0]["lastTransitionTime"]
    fact = cluster_fact(recorded | {"status": recorded["status"] | connected})
    assert (fact.ready, fact.external) == (True, True)


@pytest.mark.parametrize(
    ("within", "fields", "steps"),
    [
        (None, {}, ["take default", "choose firstn 0 type zone", "chooseleaf firstn 2 type host", "emit"]),
        (
            "rack",
            {"crush_root": "fast", "device_class": "ssd"},
            ["take fast class ssd", "choose firstn 0 type zone", "chooseleaf firstn 2 type rack", "emit"],
        ),
    ],
)
def test_a_pool_with_two_copies_in_each_failure_domain_gets_a_rule_of_two_steps(
    stand_in: Mapping[str, ModuleType],
    monkeypatch: pytest.MonkeyPatch,
    within: str | None,
    fields: dict[str, Any],
    steps: list[str],
) -> None:
    copies = Replicated(size=4, replicas_per_failure_domain=2, sub_failure_domain=within)
    played = Play(stand_in, monkeypatch, NEW_ROOK, "CephBlockPool")
    played.create("stretched", pool_spec(Pool(replicated=copies, failure_domain="zone", **fields)))
    played.work()
    assert played.object("stretched")["status"]["phase"] == "Ready"
    (script,) = (command for command in played.ceph.commands if command.startswith("sh "))
    assert script.endswith("add-rule stretched " + "\n".join(f"step {step}" for step in steps))
    assert not any("create-replicated" in command for command in played.ceph.commands)
    created = "osd pool create stretched 0 replicated stretched --size 4 --yes-i-really-mean-it"
    assert created in played.ceph.commands


@pytest.mark.parametrize(
    ("copies", "words"),
    [
        ({"size": 2}, "error pool size is 2 and replicasPerFailureDomain is 2, size must be greater"),
        ({"size": 4, "subFailureDomain": "host"}, "failure and subfailure domain cannot be identical"),
    ],
)
def test_copies_that_rook_cannot_place_together_are_refused(
    stand_in: Mapping[str, ModuleType], monkeypatch: pytest.MonkeyPatch, copies: dict[str, Any], words: str
) -> None:
    played = Play(stand_in, monkeypatch, NEW_ROOK, "CephBlockPool")
    played.create("stretched", {"replicated": {"replicasPerFailureDomain": 2} | copies, "failureDomain": "host"})
    played.work()
    assert played.object("stretched")["status"]["phase"] == "Progressing"
    assert any(words in event[2] for event in played.events())
    assert played.ceph.commands == []


CREATED = json.loads(rook("erasure-code-profile-fast-ec", NEW_ROOK))


@pytest.mark.parametrize(
    ("chunks", "recorded"),
    [
        ({}, json.loads(rook("erasure-code-profile", NEW_ROOK))),
        ({"stripeUnit": "16Ki"}, CREATED),
        (
            {"stripeUnit": "16Ki", "crushNumFailureDomains": 3, "crushOSDsPerFailureDomain": 2},
            CREATED | {"crush-num-failure-domains": "3", "crush-osds-per-failure-domain": "2"},
        ),
    ],
)
def test_an_erasure_code_profile_is_the_recorded_one(
    stand_in: Mapping[str, ModuleType], chunks: dict[str, Any], recorded: dict[str, str]
) -> None:
    spec = {"failureDomain": "osd", "erasureCoded": {"dataChunks": 2, "codingChunks": 1} | chunks}
    found = stand_in["pools"].profile_of(spec, {"plugin": "isa", "technique": "reed_sol_van"})
    # Ceph adds what is not said.
    assert {
        "crush-device-class": "",
        "crush-num-failure-domains": "0",
        "crush-osds-per-failure-domain": "0",
    } | found == recorded
    with_class = stand_in["pools"].profile_of(spec | {"deviceClass": "ssd"}, {"plugin": "isa", "technique": "x"})
    assert with_class["crush-device-class"] == "ssd"


@pytest.mark.parametrize(("version", "is_removed"), [(OLD_ROOK, False), (NEW_ROOK, True)])
def test_only_the_newer_release_removes_the_profile_of_a_deleted_pool(
    stand_in: Mapping[str, ModuleType], monkeypatch: pytest.MonkeyPatch, version: str, *, is_removed: bool
) -> None:
    played = Play(stand_in, monkeypatch, version, "CephBlockPool")
    played.create("coded", {"erasureCoded": {"dataChunks": 2, "codingChunks": 1}})
    played.work()
    played.api.delete("CephBlockPool", "coded")
    played.work()
    assert ("osd erasure-code-profile rm coded_ecprofile" in played.ceph.commands) == is_removed


@pytest.mark.parametrize(
    ("version", "servers", "assigned"),
    [
        (OLD_ROOK, {"activeCount": 1}, []),
        (NEW_ROOK, {"activeCount": 1, "activeStandby": False}, ["mds.files-a"]),
        (NEW_ROOK, {"activeCount": 2, "activeStandby": True}, [f"mds.files-{letter}" for letter in "abcd"]),
    ],
)
def test_the_newer_release_leaves_an_option_of_each_metadata_server(
    stand_in: Mapping[str, ModuleType],
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    servers: dict[str, Any],
    assigned: list[str],
) -> None:
    played, pool = Play(stand_in, monkeypatch, version, "CephFilesystem"), {"replicated": {"size": 3}}
    played.create("files", {"metadataPool": pool, "dataPools": [pool], "metadataServer": servers})
    played.work()
    played.api.delete("CephFilesystem", "files")
    played.work()
    options = [command for command in played.ceph.commands if command.startswith("config ")]
    assert options == [f"config set {server} mds_join_fs files" for server in assigned]


MUTES = {
    "AUTH_INSECURE_KEYS_ALLOWED": {"policy": "mute"},
    "AUTH_INSECURE_KEYS_CREATABLE": {"policy": "unmute"},
}


@pytest.mark.parametrize(
    ("version", "commands"),
    [
        (OLD_ROOK, []),
        (
            NEW_ROOK,
            ["health mute AUTH_INSECURE_KEYS_ALLOWED --sticky", "health unmute AUTH_INSECURE_KEYS_CREATABLE"],
        ),
    ],
)
def test_checks_are_muted_once_for_each_generation_of_a_cluster(
    stand_in: Mapping[str, ModuleType], monkeypatch: pytest.MonkeyPatch, version: str, commands: list[str]
) -> None:
    names, api = NamesOfCeph(stand_in, version), Objects(stand_in, version)
    monkeypatch.setattr(stand_in["ceph"], "run", names.run)
    clusters = stand_in["cluster"].Clusters(api, release_of(stand_in, version), "image")
    cluster = api.list("CephCluster")[0] | {"spec": {"healthCheck": {"muteHealthWarning": MUTES}}}
    for generation in (3, 3, 4):
        clusters.mute(cluster | {"metadata": cluster["metadata"] | {"generation": generation}})
    assert names.commands == commands * 2
    recorded = json.loads(rook("status-health-ok-muted", NEW_ROOK))["health"]["mutes"]
    assert all(mute["sticky"] for mute in recorded)


class LibraryOfCeph:
    """`ceph_argparse` and `rados`, as the stand-in uses them; each command has one answer."""

    class CephPrefix:
        pass

    class Error(Exception):
        errno = 110

    def __init__(self, answer: tuple[int, bytes, str] | Exception) -> None:
        self._answer = answer
        self.sent: list[dict[str, Any]] = []

    def json_command(self, _: Any, *, argdict: dict[str, Any] | None = None, **__: Any) -> tuple[int, bytes, str]:
        if argdict is None:
            return 0, b"[]", ""
        self.sent.append(argdict)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    @staticmethod
    def parse_json_funcsigs(*_: Any) -> dict[str, Any]:
        return {}

    @staticmethod
    def validate_command(_: Any, words: list[str]) -> dict[str, Any]:
        return {"prefix": " ".join(words)} if words != ["osd", "nonsense"] else {}


@pytest.fixture
def command_of(stand_in: Mapping[str, ModuleType], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run a command of Ceph, for which the library has that answer."""

    def run(library: LibraryOfCeph, *words: str) -> Any:
        ceph = stand_in["ceph"]
        connection = SimpleNamespace(connect=lambda: None)
        rados = SimpleNamespace(Error=LibraryOfCeph.Error, Rados=lambda **_: connection)
        monkeypatch.setattr(ceph, "ceph_argparse", library)
        monkeypatch.setattr(ceph, "rados", rados)
        monkeypatch.setattr(ceph, "_CLUSTER", ceph._Cluster())
        return ceph.run("ceph", *words)

    return run


def test_a_command_of_ceph_is_sent_with_its_format(command_of: Callable[..., Any]) -> None:
    library = LibraryOfCeph((0, b'{"key": "x"}', "a remark"))
    assert command_of(library, "auth", "get-key", "client.x", "--format", "json") == '{"key": "x"}'
    assert command_of(library, "auth", "get-key", "client.x") == '{"key": "x"}'
    assert library.sent == [
        {"prefix": "auth get-key client.x", "format": "json"},
        {"prefix": "auth get-key client.x"},
    ]


@pytest.mark.parametrize(
    ("words", "answer", "complaint", "ending"),
    [
        (
            "auth get-key client.x",
            (-2, b"", "don't have client.x"),
            "Error ENOENT: don't have client.x",
            "exit status 2",
        ),
        ("osd pool rm x", (-1, b"", "it has\nan image"), "an image", "exit status 1"),
        ("osd nonsense", (0, b"", ""), "Error EINVAL: invalid command", "exit status 22"),
        ("osd pool ls", RuntimeError("exception timed out"), "", "signal: interrupt"),
        ("osd pool ls", LibraryOfCeph.Error("no monitor"), "no monitor", "exit status 110"),
    ],
)
def test_a_command_of_ceph_fails_in_the_words_of_its_program(
    stand_in: Mapping[str, ModuleType],
    command_of: Callable[..., Any],
    words: str,
    answer: tuple[int, bytes, str] | Exception,
    complaint: str,
    ending: str,
) -> None:
    with pytest.raises(stand_in["ceph"].CommandError) as caught:
        command_of(LibraryOfCeph(answer), *words.split())
    assert (caught.value.complaint, caught.value.ending) == (complaint, ending)
