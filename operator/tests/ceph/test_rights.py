"""What the users of a run may do in Ceph. `e2e/tests` tries the same on real monitors."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from plimsoll.api.environment import CephOption
from plimsoll.ceph.rights import COMMANDS, FORCE, Rights, request_of
from plimsoll.ceph.versions import gives_map_alone
from support.ceph_programs import permits

GUIDE = Path(__file__).parents[3] / "docs" / "reference" / "ceph.md"
POOLS = Rights(pools=("bench", "bench-data"), quota_pool="bench-data", version="20.2.4")
FILES = Rights(pools=("fs-data0", "fs-metadata"), file_system="fs", record="plimsoll/u/options", version="20.2.4")
OPTIONS = Rights(
    pools=("bench",),
    options=(
        CephOption(who="osd", name="osd_mclock_profile", value="custom"),
        CephOption(who="osd/class:ssd", name="osd_recovery_sleep", value="1"),
    ),
    record="plimsoll/u/options",
    version="20.2.4",
)

DISTURBING = Rights(pools=("bench",), actions=("Down", "Out"), record="plimsoll/u/options", version="20.2.4")
TAKING_AWAY = [
    *("osd reweight 3 0.0", "osd set-group noup osd.3", "osd unset-group noup osd.3", "osd down 3"),
    *("config-key get plimsoll/u/options", "config-key set plimsoll/u/options {}", "config-key rm plimsoll/u/options"),
]

SECRETS = [
    "config dump",
    "config-key dump",
    "config-key get dashboard/jwt_secret",
    "config get mgr",
    "config log",
    "config show mgr.a mgr/dashboard/RGW_API_SECRET_KEY",
    "config show-with-defaults mgr.a",
    "dashboard get-rgw-api-secret-key",
    "auth get client.admin",
    "auth ls",
    "log last",
    "report",
    "mgr module ls",
    "crash ls",
]
CHANGES = [
    *(*TAKING_AWAY, "osd set-group noout osd.3", "osd out 3", "osd set noup", "osd purge 3"),
    "osd pool set other noscrub 1",
    "osd pool set bench size 1",
    "osd pool set-quota bench max_bytes 0",
    "osd pool set-quota other max_bytes 0",
    "osd pool set-quota bench-data max_objects 0",
    "osd pool rm bench",
    "osd blocklist add 192.0.2.1",
    "config set osd osd_mclock_profile custom",
    "config set mgr osd_recovery_sleep 1",
    "config-key set plimsoll/other/options x",
    "config-key rm plimsoll/other/options",
    "fs fail fs",
    "auth get-or-create client.other",
]
_NAMES = {"dashboard get-rgw-api-secret-key": (), "auth get": ("entity",), "config get": ("who", "key")} | {
    prefix: command.arguments for prefix, command in COMMANDS.items()
}


def may(rights: Rights, command: str, *, agent: bool = False) -> bool:
    """Whether monitors let the conductor, or an agent, run a command."""
    words = command.split()
    length = next(end for end in range(len(words), 0, -1) if " ".join(words[:end]) in _NAMES or end == 1)
    prefix = " ".join(words[:length])
    if prefix not in _NAMES:
        prefix, length = command, len(words)
    users = rights.agent() if agent else rights.conductor()
    return permits(users["mon"], prefix, dict(zip(_NAMES.get(prefix, ()), words[length:], strict=False)))


@pytest.mark.parametrize("rights", [POOLS, FILES, OPTIONS])
@pytest.mark.parametrize("command", SECRETS)
def test_no_user_sees_what_is_not_the_runs(rights: Rights, command: str) -> None:
    assert not may(rights, command)
    assert not may(rights, command, agent=True)


@pytest.mark.parametrize("rights", [POOLS, FILES])
@pytest.mark.parametrize("command", CHANGES)
def test_no_user_changes_what_is_not_the_runs(rights: Rights, command: str) -> None:
    assert not may(rights, command)
    assert not may(rights, command, agent=True)


@pytest.mark.parametrize(
    ("rights", "commands"),
    [
        (
            POOLS,
            [
                *("status", "versions", "df detail", "osd metadata", "osd tree", "osd dump", "osd df"),
                *("osd pool ls detail", "osd crush rule dump", "osd erasure-code-profile get any", "pg dump pgs_brief"),
                *("osd pool set bench noscrub 1", "osd pool set bench-data nodeep-scrub 0"),
                *("osd pool set-quota bench-data max_bytes 0", "osd pool set-quota bench-data max_bytes 1048576"),
                *("config show osd.3 osd_memory_target", "config show osd.0 ms_cluster_mode"),
            ],
        ),
        (DISTURBING, TAKING_AWAY),
        (FILES, ["fs get fs", "fs volume info fs", "config-key ls"]),
        (
            OPTIONS,
            [
                *("config-key ls", "config-key get plimsoll/u/options", "config-key rm plimsoll/u/options"),
                *("config-key set plimsoll/u/options {}", "config help osd_recovery_sleep"),
                *("config set osd osd_mclock_profile x", "config rm osd/class:ssd osd_recovery_sleep"),
                *("config-key get config/osd/osd_mclock_profile", "config show osd.1 osd_recovery_sleep"),
                "config-key get config/osd/class:ssd/osd_recovery_sleep",
            ],
        ),
    ],
)
def test_a_conductor_may_do_its_work(rights: Rights, commands: list[str]) -> None:
    assert [command for command in commands if not may(rights, command)] == []


@pytest.mark.parametrize(("action", "commands"), [("Out", TAKING_AWAY[:1]), ("Down", TAKING_AWAY[1:4])])
def test_a_conductor_takes_osds_away_only_as_its_run_does(action: str, commands: list[str]) -> None:
    rights = replace(DISTURBING, actions=(action,))
    assert [command for command in TAKING_AWAY[:4] if may(rights, command)] == commands
    assert [command for command in CHANGES if may(rights, command)] == [*commands, *TAKING_AWAY[4:]]


def test_requests_have_the_types_that_monitors_take() -> None:
    """A whole number is no weight, and a name no list of them. Source: `cmd_getval` of Ceph."""
    assert request_of(["osd", "reweight", "3", "0"]) == {
        "prefix": "osd reweight", "format": "json", "id": 3, "weight": 0.0
    }  # fmt: skip
    assert json.dumps(request_of(["osd", "reweight", "3", "0"])["weight"]) == "0.0"
    assert request_of(["osd", "set-group", "noup", "osd.3"])["who"] == ["osd.3"]
    assert request_of(["osd", "down", "3", "4"])["ids"] == ["3", "4"]
    assert request_of(["osd", "set-group", "noup", "osd.3", "osd.4"])["who"] == ["osd.3", "osd.4"]
    assert request_of(["config", "set", "osd.3", "a", "b"])["who"] == "osd.3"


def test_an_agent_gets_the_map_of_the_osds_and_its_pools() -> None:
    assert POOLS.agent() == {"mon": "allow service osd r", "osd": "profile rbd pool=bench, profile rbd pool=bench-data"}
    assert FILES.agent() == {"mon": "allow service osd r", "osd": "allow rw pool=fs-data0"}
    assert FILES.conductor()["osd"] == "allow rw pool=fs-data0, allow r pool=fs-metadata"


@pytest.mark.parametrize("rights", [POOLS, FILES, OPTIONS])
def test_nobody_has_a_broad_grant_or_talks_to_the_manager(rights: Rights) -> None:
    for capabilities in (rights.conductor(), rights.agent()):
        assert set(capabilities) == {"mon", "osd"}
        grants = re.split(r", (?=allow|profile)", capabilities["mon"])
        assert grants[0] == "allow service osd r"
        assert all(grant.startswith('allow command "') for grant in grants[1:])


@pytest.mark.parametrize(
    ("version", "alone"),
    [("20.2.4-0", True), ("20.3.0", True), ("20.2.3", False), ("19.2.6", False), ("18.2.7", False), ("", False)],
)
def test_monitors_that_give_no_map_alone_get_a_profile(version: str, *, alone: bool) -> None:
    assert gives_map_alone(version) == alone
    rights = Rights(pools=("bench",), version=version)
    grant = "allow service osd r" if alone else "profile simple-rados-client"
    assert rights.agent()["mon"] == grant
    assert rights.conductor()["mon"].startswith(f"{grant}, allow command")


def test_the_guide_lists_what_a_run_that_takes_osds_away_needs_besides() -> None:
    guide = (GUIDE.parents[1] / "how-to" / "disturb.md").read_text()
    found = re.search(r"```\n(allow command \"osd reweight\".*?)```", guide, re.DOTALL)
    assert found is not None
    capabilities = " ".join(found[1].split())
    commands = [request_of(command.split()) for command in (*TAKING_AWAY, "config-key ls")]
    for request in commands:
        arguments = {name: str(value) for name, value in request.items() if name not in {"prefix", "format"}}
        assert permits(capabilities, str(request["prefix"]), arguments), request


def test_the_guide_lists_what_a_run_without_rook_needs() -> None:
    found = re.search(r"get-or-create client.plimsoll osd '([^']*)'\s+mon '([^']*)'", GUIDE.read_text())
    assert found is not None
    osd, mon = (" ".join(text.split()) for text in found.groups())
    assert {"osd": osd, "mon": mon} == Rights(pools=("bench",), version="20.2.4").conductor()


def test_a_request_has_what_the_monitors_take() -> None:
    assert request_of(("osd", "pool", "ls", "detail")) == {
        "prefix": "osd pool ls",
        "detail": "detail",
        "format": "json",
    }
    assert request_of(("pg", "dump", "pgs_brief"))["dumpcontents"] == ["pgs_brief"]
    forced = request_of(("config", "set", "osd", "osd_free_text", "--value", FORCE))
    assert (forced["name"], forced["value"], forced["force"]) == ("osd_free_text", "--value", True)
    assert request_of(("config-key", "set", "a key", ""))["val"] == ""


@pytest.mark.parametrize("command", SECRETS)
def test_no_other_command_can_be_sent(command: str) -> None:
    if not command.startswith(("config-key get", "config show mgr")):
        with pytest.raises(ValueError, match="is not among the commands that Plimsoll may run"):
            request_of(command.split())
