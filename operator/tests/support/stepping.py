"""A tool that passes each step to its program, and an agent's worker that uses it."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from plimsoll.agent import worker
from plimsoll.agent.host.readings import Host
from plimsoll.agent.volume import FileVolume
from plimsoll.agent.worker import Worker
from plimsoll.api.status import TrialKey
from plimsoll.measure.sample import Measurement
from plimsoll.protocol.messages import ArmOrder, StageOrder
from plimsoll.tools.base import Command, Output, OutputError, StepContext, StepKind, ToolParameters
from plimsoll.tools.fio.tool import FIO
from plimsoll.tools.target import OsdsTarget, PoolTarget, TargetKind

POOL = PoolTarget(pool="pool", namespace="space", run_name="space", user="bench")
OSDS = OsdsTarget(keyring="/keyring")
TRIAL = TrialKey(point="w-000", pass_number=0, attempt=0)
STEPS = (StepKind.PREPARE, StepKind.MEASURE, StepKind.CLEAN_UP)


class Parameters(ToolParameters):
    """Whether it reads, and whether it trims."""

    axes: ClassVar[frozenset[str]] = frozenset()
    reads: bool = True
    trims: bool = False

    @property
    def reads_data(self) -> bool:
        return self.reads

    @property
    def removes_data(self) -> bool:
        return self.trims


class Steps:
    """A tool that passes the step to its program."""

    key: ClassVar[str] = "stepping"
    program: ClassVar[str] = "rados"
    version_argument: ClassVar[str] = "--version"
    parameters: ClassVar[type[ToolParameters]] = Parameters
    target: TargetKind = TargetKind.POOL
    windowed: ClassVar[bool] = True
    own_files: ClassVar[bool] = False

    def __init__(
        self, *, steps: Sequence[StepKind] = STEPS, target: TargetKind = TargetKind.POOL, version: str = "1"
    ) -> None:
        self._steps = steps
        self._version = version
        self.target = target

    def version(self, output: Output) -> str | None:
        return FIO.version(output)

    def steps(self, _: ToolParameters) -> Sequence[StepKind]:
        return self._steps

    def command(self, _: ToolParameters, context: StepContext) -> Command:
        if context.seed == 0:
            raise ValueError("it does not fit")
        return Command(argv=(self.program, context.step, context.target.name), environment={"STEP": context.step})

    def parse(self, _: ToolParameters, context: StepContext, output: Output) -> Measurement:
        assert context.step is StepKind.MEASURE
        assert 0 < output.launched_at <= output.finished_at
        if output.exit_code:
            raise OutputError("there is nothing to read")
        return Measurement(
            tool="stepping", tool_version=self._version, started_at=1, runtime=1, operations=(), warnings=("own",)
        )


def make(
    monkeypatch: pytest.MonkeyPatch,
    directory: Path,
    program: str = "exit 0",
    *,
    tool: Steps | None = None,
    targets: Sequence[PoolTarget | OsdsTarget] = (POOL,),
) -> Worker:
    monkeypatch.setattr(worker, "TOOLS", {"stepping": tool or Steps()})
    path = directory / "rados"
    path.write_text(f'#!/bin/sh\necho "$*" >> {directory}/asked\n{program}\n')
    path.chmod(0o755)
    return Worker(
        client=0,
        node="here",
        volume=FileVolume(path=directory / "plimsoll.data", capacity=2**20),
        directory=directory / "work",
        binaries={"rados": str(path)},
        host=Host(),
        tools=("stepping",),
        targets=targets,
    )


def stage(seed: int = 1) -> StageOrder:
    return StageOrder(trial=TRIAL, tool="stepping", parameters={}, ramp_seconds=0, runtime_seconds=1, seed=seed)


def arm(*, reads: bool = True, attempt: int = 0) -> ArmOrder:
    return ArmOrder(
        trial=TRIAL.model_copy(update={"attempt": attempt}),
        tool="stepping",
        parameters={"reads": reads},
        ramp_seconds=0,
        runtime_seconds=1,
        seed=1,
        t0_nanoseconds=0,
    )
