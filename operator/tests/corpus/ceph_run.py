"""Recorded output of other tools than fio, with its times moved to those of a trial."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from corpus.case import Setting
from corpus.disk_run import RECORDED_BYTES
from plimsoll.api.json_reader import OutputError
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import Output, StepContext, StepKind, Timing
from plimsoll.tools.registry import TOOLS
from plimsoll.tools.target import (
    ApiTarget,
    ImageTarget,
    OsdsTarget,
    PoolTarget,
    Target,
    TargetKind,
    VolumeKind,
    VolumeTarget,
)
from support.goldens import PEER, recorded

_TARGETS: dict[TargetKind, Target] = {
    TargetKind.VOLUME: VolumeTarget(kind=VolumeKind.DEVICE, path="/dev/plimsoll", size=RECORDED_BYTES),
    TargetKind.POOL: PoolTarget(pool="bench", namespace="run-0", user="agent"),
    TargetKind.IMAGE: ImageTarget(pool="bench", image="run-0", user="agent", size=64 * 2**20),
    TargetKind.PEER: PEER,
    TargetKind.OSDS: OsdsTarget(keyring="/etc/plimsoll/osd-bench/keyring"),
    TargetKind.API: ApiTarget(),
}
_STAMP = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+[+-]\d{4}", re.MULTILINE)
_TOTALS = re.compile(r"ops: (\d+) +ops/sec: ([\d.]+)")


def recorded_run(stem: str, started_at: int) -> Output:
    """Return a golden case as if it had begun at that time, Unix nanoseconds."""
    output = recorded(f"ceph-18.2/{stem}")
    distance = _moment(started_at) - _recorded_start(output.stdout, output.stderr)

    def moved(match: re.Match[str]) -> str:
        stamp = datetime.fromisoformat(match[0]) + distance
        digits = "milliseconds" if len(match[0]) < len("2026-01-01T00:00:00.000000+0000") else "microseconds"
        return stamp.isoformat(timespec=digits).replace("+00:00", "+0000")

    return replace(
        output,
        stdout=_STAMP.sub(moved, output.stdout),
        stderr=_STAMP.sub(moved, output.stderr),
        launched_at=started_at,
        finished_at=started_at + 10**9,
    )


def parsed(setting: Setting, output: Output) -> tuple[Measurement | None, str | None]:
    """Return the result of `Worker` for an output: a measurement, or why there is none."""
    tool = TOOLS[setting.tool]
    context = StepContext(
        step=StepKind.MEASURE,
        target=_TARGETS[tool.target],
        timing=Timing(ramp_seconds=setting.ramp_seconds, runtime_seconds=setting.runtime_seconds),
        seed=1,
        work_directory="/work",
    )
    try:
        return tool.read(tool.parameters.model_validate(setting.parameters), context, output), None
    except OutputError as error:
        return None, str(error)


def _moment(nanoseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=nanoseconds // 1000)


def _recorded_start(stdout: str, stderr: str) -> datetime:
    """Return when a recorded run began; any time if the output does not contain it."""
    if found := _STAMP.search(stdout):
        return datetime.fromisoformat(found[0])
    ended, totals = _STAMP.search(stderr), _TOTALS.search(stdout)
    if ended is None or totals is None:
        return _moment(0)
    return datetime.fromisoformat(ended[0]) - timedelta(seconds=int(totals[1]) / float(totals[2]))
