"""The cluster of `ceph_programs`, as tests see it while a conductor uses it."""

import json
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support import ceph_programs
from support.ceph_programs import GOLDEN, STATE, State, locked

_PROGRAMS = ("rbd", "rados")
_MODULES = ("rados", "ceph_argparse")


class PretendedCeph:
    """A cluster with the pools `golden` and `golden-data`, and what talks to it, as long as `environment` holds."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "ceph.json"
        self.programs = directory / "bin"
        self.programs.mkdir()
        for name in _PROGRAMS:
            path = self.programs / name
            path.write_text(
                f'#!/bin/sh\n{STATE}={self.file} exec {sys.executable} -SE {ceph_programs.__file__} {name} "$@"\n'
            )
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        for name in _MODULES:
            (self.programs / f"{name}.py").symlink_to(ceph_programs.__file__)
        self.environment: Mapping[str, str] = {
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(self.programs),
            STATE: str(self.file),
        }
        state: State = {
            "status": "status-healthy",
            "pools": json.loads((GOLDEN / "osd-pool-ls-detail.json").read_text()),
            "images": {},
            "trash": {},
            "objects": {},
            "locators": {},
            "log": [],
            "hanging": [],
            "refused": [],
            "config": {},
            "config-key": {},
            "overridden": {},
        }
        self.file.write_text(json.dumps(state))

    @property
    def state(self) -> State:
        with locked(self.file) as state:
            return state

    @contextmanager
    def changing(self) -> Iterator[State]:
        """Yield the state for changes."""
        with locked(self.file) as state:
            yield state

    def flags(self, pool: str) -> set[str]:
        """Return the flags of a pool that pause scrubs."""
        (found,) = [one for one in self.state["pools"] if one["pool_name"] == pool]
        return {flag for flag in found["flags_names"].split(",") if "scrub" in flag}

    def connections(self) -> list[int]:
        """Return the process of each connection to the monitors, in order."""
        return [int(line) for line in self.file.with_suffix(".connections").read_text().split()]

    def commands(self, beginning: str) -> list[str]:
        """Return the commands that start with `beginning`, in order."""
        return [command for command in self.state["log"] if command.startswith(beginning)]
