"""A tool's steps before and after a measurement, and the targets of tools."""

import asyncio
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from plimsoll.agent import process, worker
from plimsoll.agent.preparation import PreparedDataSet
from plimsoll.agent.process import PreparationError
from plimsoll.agent.readings import Host
from plimsoll.agent.volume import FileVolume
from plimsoll.agent.worker import Archive, Worker
from plimsoll.api.json_reader import OutputError
from plimsoll.api.status import TrialKey
from plimsoll.measure.sample import ClientDocument, Clock, Measurement
from plimsoll.protocol.messages import ArmOrder, PrepareOrder, StageOrder
from plimsoll.tools.base import Command, Output, StepContext, StepKind, Tool, ToolParameters
from plimsoll.tools.fio.tool import Fio
from plimsoll.tools.target import OsdsTarget, PoolTarget, TargetKind, VolumeKind, VolumeTarget
from support.agents import RecordedProgress

FIO = Fio()

POOL = PoolTarget(pool="pool", namespace="space", user="bench")
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

    read: Any = Tool.read

    def written_by_prepare(self, _parameters: ToolParameters, _output: Output) -> int | None:
        return None

    def command(self, _: ToolParameters, context: StepContext) -> Command:
        if context.seed == 0:
            raise ValueError("it does not fit")
        return Command(argv=(self.program, context.step, context.target.name), environment={"STEP": context.step})

    def parse(self, _: ToolParameters, context: StepContext, output: Output) -> Measurement:
        assert context.step is StepKind.MEASURE
        assert 0 < output.launched_at <= output.finished_at
        if output.exit_code:
            raise OutputError("there is nothing to read")
        return Measurement(tool_version=self._version, started_at=1, runtime=1, operations=(), warnings=("own",))


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
    )


class StagingProgress(RecordedProgress):
    """Records the progress of a staging, which counts no bytes."""

    def __call__(self, done: int, total: int, message: str = "") -> None:
        assert (done, total) == (0, 0)
        super().__call__(done, total, message)


async def measured(worker: Worker, order: ArmOrder) -> ClientDocument:
    return await worker.measure(await worker.arm(order), Clock(offset=0, error=0))


def asked(directory: Path) -> list[str]:
    return (directory / "asked").read_text().splitlines()


async def test_a_trial_is_staged_measured_and_cleaned_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker, recorded = (
        make(monkeypatch, tmp_path, 'touch output; [ "$STEP" = "$1" ] && [ $(ls | wc -l) = 3 ]'),
        StagingProgress(),
    )
    await worker.stage(stage(), recorded)
    document = await measured(worker, arm())
    assert asked(tmp_path) == ["prepare pool/space", "measure pool/space", "cleanUp pool/space"]
    assert recorded.messages[0] == "stepping prepares the trial, 0 s"
    assert document.measurement is not None
    assert document.measurement.warnings == ("own",)
    assert document.prefilled
    assert document.data_set_bytes == 0


async def test_a_trial_that_was_not_staged_is_not_armed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = make(monkeypatch, tmp_path)
    with pytest.raises(PreparationError, match="this process has not staged w-000 pass 0, which stepping needs"):
        await worker.arm(arm())
    await worker.stage(stage(), StagingProgress())
    with pytest.raises(PreparationError, match="has not staged w-000 pass 0, attempt 1"):
        await worker.arm(arm(attempt=1))
    await measured(worker, arm())
    with pytest.raises(PreparationError, match="has not staged"):
        await worker.arm(arm())


async def test_a_failed_staging_ends_with_the_tool_s_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = make(monkeypatch, tmp_path, "echo error 1: '(1) Operation not permitted' >&2; exit 1")
    expected = r"stepping's preparation of pool/space ended with exit code 1: error 1: \(1\) Operation not permitted"
    with pytest.raises(PreparationError, match=expected):
        await worker.stage(stage(), StagingProgress())
    with pytest.raises(PreparationError, match="has not staged"):
        await worker.arm(arm())


async def test_a_staging_that_does_not_fit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PreparationError, match="it does not fit"):
        await make(monkeypatch, tmp_path).stage(stage(seed=0), StagingProgress())


async def test_a_staging_that_sends_nothing_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "STALL_SECONDS", 0.0)
    monkeypatch.setattr(process, "_STALL_BYTES", 2**62)
    worker = make(monkeypatch, tmp_path, "exec sleep 60")
    with pytest.raises(PreparationError, match=r"stepping's preparation of pool/space has sent nothing .*ceph status"):
        await worker.stage(stage(), StagingProgress())


async def test_a_cancelled_staging_is_gone_and_was_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker, recorded = make(monkeypatch, tmp_path, "exec sleep 60"), StagingProgress()
    staging = asyncio.create_task(worker.stage(stage(), recorded))
    async with asyncio.timeout(60):
        await recorded.first.wait()
        staging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await staging
    with pytest.raises(PreparationError, match="has not staged"):
        await worker.arm(arm())


async def test_a_tool_without_such_a_step_is_staged_by_doing_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = make(monkeypatch, tmp_path, tool=Steps(steps=(StepKind.MEASURE,)))
    await worker.stage(stage(), StagingProgress())
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize("reads", [True, False])
async def test_unwritten_data_is_not_prefilled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, reads: bool) -> None:
    worker = make(monkeypatch, tmp_path, tool=Steps(steps=(StepKind.MEASURE,)))
    document = await measured(worker, arm(reads=reads))
    assert document.prefilled is not reads


async def test_a_failed_clean_up_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = '[ "$1" != cleanUp ] || { echo no such pool >&2; exit 2; }'
    worker = make(monkeypatch, tmp_path, program, tool=Steps(steps=STEPS[1:]))
    document = await measured(worker, arm())
    assert document.exit_code == 0
    assert document.measurement is not None
    warning = "stepping's clean-up of pool/space ended with exit code 2: no such pool"
    assert document.measurement.warnings == ("own", warning)


async def test_a_clean_up_that_does_not_end_is_killed_and_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "CLEAN_UP_SECONDS", -0.5)
    program = '[ "$1" != cleanUp ] || exec sleep 60'
    document = await measured(make(monkeypatch, tmp_path, program, tool=Steps(steps=STEPS[1:])), arm())
    assert document.measurement is not None
    assert "stepping's clean-up of pool/space: did not end within 0.5 s" in document.measurement.warnings[1]


async def test_a_failed_clean_up_after_a_failed_measurement_is_added_to_its_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = 'echo "$1 broke" >&2; exit 3'
    document = await measured(make(monkeypatch, tmp_path, program, tool=Steps(steps=STEPS[1:])), arm())
    assert (document.measurement, document.parse_error) == (None, "there is nothing to read")
    expected = "measure broke\n\nstepping's clean-up of pool/space ended with exit code 3: cleanUp broke"
    assert document.stderr_tail == expected


async def test_standard_output_is_part_of_the_raw_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = Steps(steps=(StepKind.MEASURE,))
    digests = {
        (await measured(make(monkeypatch, tmp_path, text, tool=tool), arm())).raw_sha256
        for text in ("echo a", "echo b")
    }
    assert len(digests) == 2


async def test_a_missing_tool_version_is_that_of_its_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = '[ "$1" != --version ] || exec echo stepping 18.2.7'
    found = []
    for version in ("", "1"):
        tool = Steps(steps=(StepKind.MEASURE,), version=version)
        worker = make(monkeypatch, tmp_path, program, tool=tool)
        await worker.facts()
        document = await measured(worker, arm())
        assert document.measurement is not None
        found.append(document.measurement.tool_version)
    assert found == ["18.2.7", "1"]


async def test_version_is_the_first_line_of_what_the_tool_prints_with_its_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Steps, "version_argument", "-v")
    tool = Steps()
    worker = make(monkeypatch, tmp_path, r"printf 'stepping 2\nCopyright\n'", tool=tool)
    facts = await worker.facts()
    assert facts["tools"] == {"stepping": "stepping 2"}
    assert (tmp_path / "asked").read_text() == "-v\n"


async def test_trimmed_data_is_unwritten_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def prefilled(*_: object, **__: object) -> PreparedDataSet:
        target = VolumeTarget(kind=VolumeKind.DEVICE, path="/dev/plimsoll", size=2**20)
        return PreparedDataSet(target=target, identity=None, prefilled=True)

    monkeypatch.setattr(worker, "prepare", prefilled)
    preparing = PrepareOrder(discard=False, prefill=True, fill_percent=100, seed=1)
    agent = make(monkeypatch, tmp_path, tool=Steps(steps=(StepKind.MEASURE,), target=TargetKind.VOLUME))
    await agent.prepare(preparing, lambda *_: None)
    trimming = arm(reads=False).model_copy(update={"parameters": {"trims": True}})
    found = [(await measured(agent, order)).prefilled for order in (arm(), trimming, arm())]
    await agent.prepare(preparing, lambda *_: None)
    assert [*found, (await agent.arm(arm())).prefilled] == [True, True, False, True]


# Raw output


def sha256sum(directory: Path) -> str:
    """Return the digest of a directory as a user computes it."""
    command = ["sh", "-c", "LC_ALL=C sha256sum * | sha256sum"]
    output = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=True)
    return output.stdout.split()[0]


async def test_raw_output_is_kept_as_it_was_and_its_digest_is_that_of_sha256sum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = Steps(steps=(StepKind.MEASURE,))
    program = r"printf 'some\rwords\377'; echo more >&2; echo log > Log_1.log"
    worker = make(monkeypatch, tmp_path, program, tool=tool)
    worker.archive = Archive(directory=tmp_path / "raw")
    document = await measured(worker, arm())
    attempt = tmp_path / "raw" / TRIAL.point / "pass-0-attempt-0"
    kept = attempt / f"client-{document.client}"
    assert (kept / "stdout").read_bytes() == b"some\rwords\xff"
    assert (kept / "Log_1.log").read_text() == "log\n"
    assert {path.name for path in kept.iterdir()} == {"stdout", "stderr", "Log_1.log"}
    assert ClientDocument.model_validate_json((attempt / f"{kept.name}.json").read_text()) == document
    assert sha256sum(kept) == document.raw_sha256


@pytest.mark.fault(
    "Storage",
    "The raw output cannot be written",
    "after a trial",
    ends="the result is recorded, with a warning",
    within="at once",
)
async def test_raw_output_that_cannot_be_kept_costs_no_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    worker = make(monkeypatch, tmp_path, tool=Steps(steps=(StepKind.MEASURE,)))
    worker.archive = Archive(directory=tmp_path / "file")
    document = await measured(worker, arm())
    assert document.measurement is not None
    assert document.measurement.warnings[-1].startswith("the raw output was not kept: ")


async def test_raw_output_of_another_run_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = make(monkeypatch, tmp_path, "echo a", tool=Steps(steps=(StepKind.MEASURE,)))
    worker.archive = Archive(directory=tmp_path / "raw")
    first, second = await measured(worker, arm()), await measured(worker, arm())
    assert first.measurement is not None
    assert second.measurement is not None
    assert (len(first.measurement.warnings), len(second.measurement.warnings)) == (1, 2)
    assert "exists" in second.measurement.warnings[-1]


# Targets


async def test_a_tool_gets_the_osds_as_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = Steps(steps=(StepKind.MEASURE,), target=TargetKind.OSDS)
    worker = make(monkeypatch, tmp_path, tool=tool, targets=(POOL, OSDS))
    armed = await worker.arm(arm(reads=False))
    assert armed.context.target == OSDS
    assert armed.prefilled


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (TargetKind.POOL, "a RADOS pool.* this agent's assignment has no rados"),
        (TargetKind.OSDS, "a key for OSDs.* this agent's assignment has no osdKeyring"),
        (TargetKind.IMAGE, "the volume is not prepared"),
    ],
)
async def test_a_missing_target_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: TargetKind, expected: str
) -> None:
    worker = make(monkeypatch, tmp_path, tool=Steps(steps=(StepKind.MEASURE,), target=target), targets=())
    with pytest.raises(PreparationError, match=expected):
        await worker.arm(arm())


async def test_a_file_is_no_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = make(monkeypatch, tmp_path, tool=Steps(steps=(StepKind.MEASURE,), target=TargetKind.IMAGE))
    await worker.prepare(PrepareOrder(discard=False, prefill=False, fill_percent=100, seed=1), lambda *_: None)
    with pytest.raises(PreparationError, match=r"needs an RBD image, but the assignment has .*plimsoll\.data"):
        await worker.arm(arm())


async def test_only_the_programs_of_tools_that_are_used_must_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = make(monkeypatch, tmp_path, "echo ceph version 18.2.7")
    facts = await worker.facts()
    assert facts["tools"] == {"stepping": "ceph version 18.2.7"}


async def test_a_program_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = make(monkeypatch, tmp_path, "echo broken >&2; exit 127")
    with pytest.raises(PreparationError, match=r"rados cannot be run: broken; install rados"):
        await worker.facts()
