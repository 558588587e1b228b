"""The cluster of `ceph_programs`, as tests see it while a conductor uses it."""

import asyncio
import json
import os
import stat
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from plimsoll.api.run import Gates, Timeouts
from plimsoll.api.storage import Volume
from plimsoll.conductor.ceph.commands import Commands
from plimsoll.conductor.ceph.watch import CephCluster
from plimsoll.conductor.phases import ClusterView
from plimsoll.lifecycle.ceph.rook_render import rights_of
from plimsoll.plan.document import CephTarget, Plan, flags_object
from support import ceph_programs
from support.ceph_programs import FULL, GOLDEN, STATE, State, locked
from support.client_documents import make_plan


class PretendedCeph:
    """A cluster with the pools `golden` and `golden-data`, and what talks to it, as long as `environment` holds."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "ceph.json"
        self.programs = directory / "bin"
        self.programs.mkdir()
        for name in ("rbd", "rados"):
            path = self.programs / name
            program = f"{sys.executable} -SE {ceph_programs.__file__} {name}"
            path.write_text(f'#!/bin/sh\n{STATE}={self.file} exec {program} "$@"\n')
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        (self.programs / "rados.py").symlink_to(ceph_programs.__file__)
        self.environment: Mapping[str, str] = {
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(self.programs),
            STATE: str(self.file),
        }
        pools = json.loads((GOLDEN / "osd-pool-ls-detail.json").read_text())
        state: State = {"status": "status-healthy", "pools": pools, "log": [], "hanging": [], "refused": []}
        state |= {"version": "18.2.7", "denied": [], "checks": [], "muted": []}
        # Those of users who have others than the administrator's.
        empty = ("images", "trash", "objects", "locators", "config", "config-key", "overridden", "capabilities")
        state |= {name: {} for name in empty}
        self.file.write_text(json.dumps(state))

    @property
    def state(self) -> State:
        with locked(self.file) as state:
            return state

    def changing(self) -> AbstractContextManager[State]:
        return locked(self.file)

    def fill(self, pool: str) -> None:
        """Have a pool reach its quota."""
        with self.changing() as state:
            state["checks"] = ["POOL_FULL"]
            for entry in state["pools"]:
                if entry["pool_name"] == pool:
                    entry["flags_names"] += FULL

    def flags(self, pool: str) -> set[str]:
        (names,) = [entry["flags_names"] for entry in self.state["pools"] if entry["pool_name"] == pool]
        return {flag for flag in names.split(",") if "scrub" in flag}

    def connections(self) -> list[int]:
        """Return the process of each connection to the monitors, in order."""
        return [int(line) for line in self.file.with_suffix(".connections").read_text().split()]

    def commands(self, beginning: str) -> list[str]:
        return [command for command in self.state["log"] if command.startswith(beginning)]


def pretend_ceph(directory: Path, monkeypatch: pytest.MonkeyPatch) -> PretendedCeph:
    """Return a cluster that all commands talk to until the test ends."""
    pretended = PretendedCeph(directory)
    for name, value in pretended.environment.items():
        monkeypatch.setenv(name, value)
    return pretended


async def run_ceph(*arguments: str) -> str:
    async with Commands("administrator") as commands:
        return await commands.ceph(*arguments)


SIZE = 2**26
BOTH = {"noscrub", "nodeep-scrub"}
TARGET = CephTarget(pool="golden", data_pool="golden-data", conductor_user="conductor", agent_user="agent")
NOTE = flags_object("u")


def plan_of(
    target: CephTarget = TARGET, *, gates: Gates | None = None, clients: int = 2, ready_seconds: int = 60
) -> Plan:
    return make_plan(points=1, clients=clients, repetitions=1).model_copy(
        update={
            "ceph": target,
            "volume": Volume(size=SIZE, access="LibRBD"),
            "gates": gates or Gates(),
            "timeouts": Timeouts(ready_seconds=ready_seconds),
        }
    )


def cluster_of(plan: Plan, *, limit_seconds: float = 20.0, version: str = "20.2.4") -> CephCluster:
    """Return the cluster of a plan, whose conductor has the capabilities that it gets in a cluster of a version."""
    assert plan.ceph is not None
    rights = rights_of(plan.run.uid, plan.ceph, version)
    with locked(Path(os.environ[STATE])) as state:
        state["capabilities"][plan.ceph.conductor_user] = rights.conductor()["mon"]
    commands = Commands(plan.ceph.conductor_user, limit_seconds=limit_seconds)
    return CephCluster(
        plan, plan.ceph, commands, pause_seconds=0.05, period_seconds=0.05, release_seconds=limit_seconds
    )


async def attend_until(cluster: CephCluster, enough: Callable[[ClusterView], bool]) -> list[ClusterView]:
    """Attend to a cluster until one of its views is enough; return all views."""
    seen: list[ClusterView] = []
    found = asyncio.Event()

    def see(view: ClusterView) -> None:
        seen.append(view)
        if enough(view):
            found.set()

    task = asyncio.create_task(cluster.attend(see))
    try:
        async with asyncio.timeout(60):
            await found.wait()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    return seen


def is_prepared(view: ClusterView) -> bool:
    return view.prepared


def mentions(words: str) -> Callable[[ClusterView], bool]:
    return lambda view: any(words in problem for problem in view.problems)
