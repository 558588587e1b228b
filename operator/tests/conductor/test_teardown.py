"""The teardown in a Ceph cluster: what it removes, and what it must not touch."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from plimsoll.cli import main
from plimsoll.conductor.ceph.commands import Commands
from plimsoll.conductor.ceph.teardown import TeardownTarget, tear_down
from plimsoll.plan.document import flags_object, image_name, rados_namespace
from support.ceph_programs import State
from support.pretended_ceph import PretendedCeph, pretend_ceph, run_ceph

TARGET = TeardownTarget(uid="u", clients=2, pool="golden", other_pools=("golden-data",))
NOTE = flags_object("u")
OF_OTHERS = {"image": "plimsoll-u2-0", "namespace": "golden/plimsoll-u2-0"}


@pytest.fixture
def ceph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PretendedCeph:
    """Return a cluster with everything that a run can leave, beside other users' objects."""
    pretended = pretend_ceph(tmp_path, monkeypatch)
    with pretended.changing() as state:
        _leave_behind(state)
    return pretended


def _leave_behind(state: State) -> None:
    mine = image_name("u", 0)
    state["images"] = {name: {"size": 1, "data_pool": "", "watched": 0} for name in (mine, OF_OTHERS["image"])}
    state["trash"] = {"1099252ef9bb": image_name("u", 1), "15a37e488efe": OF_OTHERS["image"]}
    state["objects"] = {
        "golden/": {NOTE: json.dumps({"golden": ["nodeep-scrub"], "golden-data": ["noscrub"]}), "other": ""},
        f"golden/{rados_namespace('u', 1)}": {f"benchmark_data_{number}": "" for number in range(450)},
        OF_OTHERS["namespace"]: {"benchmark_data_0": ""},
    }
    for pool in state["pools"]:
        if pool["pool_name"] != ".mgr":
            pool["flags_names"] += ",noscrub,nodeep-scrub"


async def torn_down(*, limit_seconds: float = 20.0) -> tuple[str, ...]:
    async with Commands("conductor", limit_seconds=20) as commands:
        return (await tear_down(commands, TARGET, limit_seconds=limit_seconds, pause_seconds=0.05)).problems


async def test_everything_that_the_run_created_is_removed_and_nothing_else(ceph: PretendedCeph) -> None:
    assert await torn_down() == ()
    state = ceph.state
    assert list(state["images"]) == [OF_OTHERS["image"]]
    assert list(state["trash"].values()) == [OF_OTHERS["image"]]
    assert {place: [*names] for place, names in state["objects"].items() if names} == {
        "golden/": ["other"],
        OF_OTHERS["namespace"]: ["benchmark_data_0"],
    }


async def test_objects_are_removed_from_a_pool_at_its_quota(ceph: PretendedCeph) -> None:
    """Where `rados rm` waits for space unless it is forced."""
    ceph.fill("golden")
    ceph.fill("golden-data")
    assert await torn_down() == ()
    assert ceph.state["objects"]["golden/"] == {"other": ""}


async def test_exactly_the_flags_that_the_run_set_are_unset(ceph: PretendedCeph) -> None:
    await torn_down()
    assert (ceph.flags("golden"), ceph.flags("golden-data")) == ({"noscrub"}, {"nodeep-scrub"})


async def test_doing_it_again_does_nothing(ceph: PretendedCeph) -> None:
    await torn_down()
    before = ceph.state
    assert await torn_down() == ()
    after = ceph.state
    log = after.pop("log")[len(before.pop("log")) :]
    assert after == before
    assert not [command for command in log if " rm" in command or " set" in command]


async def test_flags_that_a_user_sets_after_the_note_was_removed_stay(ceph: PretendedCeph) -> None:
    await torn_down()
    await run_ceph("osd", "pool", "set", "golden", "nodeep-scrub", "1")
    await torn_down()
    assert ceph.flags("golden") == {"noscrub", "nodeep-scrub"}


async def test_an_image_whose_client_was_killed_is_removed_when_its_watch_has_expired(ceph: PretendedCeph) -> None:
    with ceph.changing() as state:
        state["images"][image_name("u", 0)]["watched"] = 3
    assert await torn_down() == ()
    assert image_name("u", 0) not in ceph.state["images"]


async def test_an_image_that_stays_in_use_is_reported_and_all_else_is_removed(ceph: PretendedCeph) -> None:
    with ceph.changing() as state:
        state["images"][image_name("u", 0)]["watched"] = 10**6
    (problem,) = await torn_down(limit_seconds=0)
    assert "image still has watchers" in problem
    assert image_name("u", 0) in problem
    assert NOTE not in ceph.state["objects"]["golden/"]
    assert ceph.flags("golden") == {"noscrub"}


async def test_a_pool_that_is_gone_is_clean(ceph: PretendedCeph) -> None:
    with ceph.changing() as state:
        state["pools"] = [pool for pool in state["pools"] if pool["pool_name"] != "golden"]
    assert await torn_down() == ()
    assert not ceph.commands("rbd")
    assert not ceph.commands("rados")


async def test_a_missing_data_pool_does_not_prevent_other_removals(ceph: PretendedCeph) -> None:
    with ceph.changing() as state:
        state["pools"] = [pool for pool in state["pools"] if pool["pool_name"] != "golden-data"]
    assert await torn_down() == ()
    assert ceph.flags("golden") == {"noscrub"}


async def test_a_missing_capability_is_reported_at_once(ceph: PretendedCeph) -> None:
    with ceph.changing() as state:
        state["refused"] = ["ceph osd pool set"]
    (problem,) = await torn_down(limit_seconds=3600)
    assert "access denied; the user's capabilities do not allow it" in problem
    assert NOTE in ceph.state["objects"]["golden/"], "a retry needs the noted flags"


@pytest.mark.fault(
    "Ceph",
    "Placement groups are inactive",
    "while the teardown removes images",
    ends="the teardown names the command that hangs, and is repeated",
    within="one command's time limit",
)
async def test_a_cluster_that_does_not_answer_is_reported_after_one_command(ceph: PretendedCeph) -> None:
    """Every command on inactive placement groups hangs until its limit: with many clients that would take hours."""
    with ceph.changing() as state:
        state["hanging"] = ["rados", "rbd"]
    target = TeardownTarget(uid="u", clients=200, pool="golden", other_pools=("golden-data",))
    commands = Commands("conductor", limit_seconds=5)
    (problem,) = (await tear_down(commands, target, limit_seconds=0, pause_seconds=0)).problems
    assert "did not answer in 5 s" in problem
    assert "inactive placement groups" in problem
    assert len(ceph.commands("r")) == 1


async def test_a_malformed_note_is_kept_and_reported(ceph: PretendedCeph) -> None:
    with ceph.changing() as state:
        state["objects"]["golden/"][NOTE] = "no note" * 10
    (problem,) = await torn_down(limit_seconds=0)
    assert f"printed '{'no note' * 5}no no', which is no note of flags" in problem


def test_the_program_ends_with_0_when_all_is_clean(ceph: PretendedCeph, tmp_path: Path) -> None:
    last_words = tmp_path / "termination-log"
    arguments = [
        "--uid",
        "u",
        "--clients",
        "2",
        "--pool",
        "golden",
        "--other-pool",
        "golden-data",
        "--user",
        "conductor",
    ]
    result = CliRunner().invoke(main, ["teardown", *arguments, "--termination-log", str(last_words)])
    assert result.exit_code == 0, result.output
    assert not last_words.exists()
    assert NOTE not in ceph.state["objects"]["golden/"]


def test_the_program_leaves_the_reason_when_something_stays(ceph: PretendedCeph, tmp_path: Path) -> None:
    with ceph.changing() as state:
        state["refused"] = ["rbd ls"]
    last_words = tmp_path / "termination-log"
    arguments = ["--uid", "u", "--clients", "0", "--pool", "golden", "--user", "conductor"]
    result = CliRunner().invoke(main, ["teardown", *arguments, "--termination-log", str(last_words)])
    assert result.exit_code == 1
    assert last_words.read_text().startswith("`rbd ls --pool golden --format json` failed: Error EACCES")


NASTY = ["-f", "--pool", "-h", "--help", "--", "-", "--all", "a b", "-\n", "nul\0nul", "\udcff\udc80", "ä"]


async def test_a_locator_with_a_nul_does_not_prevent_other_removals(
    ceph: PretendedCeph, caplog: pytest.LogCaptureFixture
) -> None:
    """It cannot be an argument; its part before the NUL belongs to another object."""
    place = f"golden/{rados_namespace('u', 0)}"
    located = {"hidden": "nul\0nul", "lines": "one\ntwo", "-h": "--help", "last": "z"}
    with ceph.changing() as state:
        state["objects"][place] = dict.fromkeys([*located, "plain"], "")
        state["locators"] = located
    assert await torn_down(limit_seconds=0) == ()
    assert ceph.state["objects"][place] == {"hidden": ""}
    assert NOTE not in ceph.state["objects"]["golden/"]
    (warning,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warning.startswith(f"object 'hidden' in namespace {rados_namespace('u', 0)} of pool golden is left")
    assert r"'nul\x00nul'" in warning


async def test_an_object_that_cannot_be_removed_does_not_prevent_other_removals(ceph: PretendedCeph) -> None:
    place = f"golden/{rados_namespace('u', 0)}"
    with ceph.changing() as state:
        state["objects"][place] = dict.fromkeys(["held", "--help", "elsewhere"], "")
        state["locators"] = {"held": "a", "elsewhere": "b"}
        state["refused"] = [f"rados --pool golden --namespace {rados_namespace('u', 0)} --object-locator=a "]
    (problem,) = await torn_down(limit_seconds=0)
    assert "--object-locator=a" in problem
    assert ceph.state["objects"][place] == {"held": ""}


async def test_a_batch_of_objects_that_cannot_be_removed_does_not_keep_the_next(
    ceph: PretendedCeph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plimsoll.conductor.ceph.teardown._OBJECTS_AT_ONCE", 2)
    place = f"golden/{rados_namespace('u', 0)}"
    with ceph.changing() as state:
        state["objects"] = {place: dict.fromkeys(["a", "b", "c"], "")}
        state["refused"] = [f"rados --pool golden --namespace {rados_namespace('u', 0)} --force-full rm -- a b"]
    (problem,) = await torn_down(limit_seconds=0)
    assert "rm -- a b" in problem
    assert ceph.state["objects"][place] == {"a": "", "b": ""}


async def test_objects_are_removed_whatever_they_are_called(ceph: PretendedCeph) -> None:
    place = f"golden/{rados_namespace('u', 0)}"
    with ceph.changing() as state:
        state["objects"][place] = dict.fromkeys([*NASTY, "elsewhere", "plain"], "")
        state["locators"] = {"elsewhere": "-h", "--all": "x y"}
    assert await torn_down(limit_seconds=0) == ()
    assert ceph.state["objects"][place] == {}
