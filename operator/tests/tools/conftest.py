"""Golden files of real fio versions, in the form in which an agent passes them on."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

import pytest

from plimsoll.measure.sample import Measurement, OperationSample
from plimsoll.tools.base import Output, StepContext, StepKind, Timing
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.fio.tool import Fio
from plimsoll.tools.target import DataSet, ImageTarget, PeerTarget, Target, VolumeKind, VolumeTarget
from support.goldens import CEPH_VERSIONS, recorded

FIO = Fio()

_GOLDEN = Path(__file__).parent.parent / "golden"
_PARAMETERS: Mapping[str, FioParameters] = MappingProxyType(
    {
        "randread-4k-qd16": FioParameters(io_depth=16),
        "randwrite-4k-qd1": FioParameters.model_validate({"pattern": "randwrite"}),
        "randrw70-8k": FioParameters.model_validate(
            {"pattern": "randrw", "blockSize": "8Ki", "ioDepth": 8, "readPercent": 70}
        ),
        "write-fsync": FioParameters.model_validate({"pattern": "write", "fsyncEvery": 8}),
        "numjobs2": FioParameters(io_depth=4, jobs=2),
        "randrw-jobs2-ramp": FioParameters.model_validate(
            {"pattern": "randrw", "blockSize": "8Ki", "ioDepth": 4, "jobs": 2, "readPercent": 70}
        ),
        "gaps-randrw-jobs2": FioParameters.model_validate(
            {"pattern": "randrw", "blockSize": "8Ki", "ioDepth": 4, "jobs": 2, "readPercent": 70}
        ),
        "replay": FioParameters.model_validate(
            {"pattern": "randrw", "ioDepth": 4, "readPercent": 70, "rateIops": 1000, "arrivals": "Poisson"}
        ),
        "read-128k-qd256": FioParameters.model_validate({"pattern": "read", "blockSize": "128Ki", "ioDepth": 256}),
        "noise": FioParameters.model_validate({"engine": "psync"}),
        "trim": FioParameters.model_validate({"pattern": "randtrim", "blockSize": "64Ki", "ioDepth": 4}),
        "io-error": FioParameters.model_validate({"pattern": "read", "blockSize": "64Ki", "ioDepth": 4}),
        "no-space": FioParameters.model_validate({"pattern": "write", "blockSize": "64Ki", "ioDepth": 4}),
        "rbd-randwrite": FioParameters.model_validate({"pattern": "randwrite", "ioDepth": 4}),
        "rbd-fsync": FioParameters.model_validate({"pattern": "randwrite", "ioDepth": 4, "fsyncEvery": 8}),
        "rbd-randtrim": FioParameters.model_validate(
            {"pattern": "randtrim", "blockSize": "64Ki", "ioDepth": 4, "rateIops": 100}
        ),
        "rbd-numjobs2": FioParameters(io_depth=4, jobs=2),
    }
)


FILE = VolumeTarget(kind=VolumeKind.FILE, path="/data/volume", size=64 * 2**20)
IMAGE = ImageTarget(pool="bench", image="image-0", user="agent", size=64 * 2**20)


def text_golden(case: str, ceph_version: str = "18.2") -> Output:
    """The recorded output of a Ceph command."""
    return recorded(f"ceph-{ceph_version}/{case}")


def step_context(
    target: Target, ramp: int, runtime: int, *, step: StepKind = StepKind.MEASURE, seed: int = 1, client: int = 0
) -> StepContext:
    return StepContext(
        step=step,
        target=target,
        timing=Timing(ramp_seconds=ramp, runtime_seconds=runtime),
        seed=seed,
        work_directory="/work",
        client=client,
    )


def pair_context(step: StepKind = StepKind.MEASURE, **addresses: str) -> StepContext:
    """Return the context of client 3 with peers, such as c5="10.0.0.5"."""
    target = PeerTarget(addresses={int(name[1:]): address for name, address in addresses.items()})
    return step_context(target, 2, 10, step=step, client=3)


def replaced(pattern: str, by: str) -> Callable[[str], str]:
    """Return a function that replaces the first match in a text, which must have one."""

    def edit(text: str) -> str:
        changed, count = re.subn(pattern, by, text, count=1)
        assert count, f"the text has no {pattern}"
        return changed

    return edit


@dataclass(frozen=True, slots=True, kw_only=True)
class Golden:
    """One case; jobs and files have the names that the command gives them."""

    parameters: FioParameters
    output: Output

    @property
    def document(self) -> str:
        return self.output.files["fio.json"]

    def parse(self) -> Measurement:
        return parse(self.parameters, self.output)

    def operation(self, name: str) -> OperationSample:
        (sample,) = [sample for sample in self.parse().operations if sample.operation == name]
        return sample

    def with_document(self, document: str) -> "Golden":
        return self.with_files({**self.output.files, "fio.json": document})

    def with_files(self, files: Mapping[str, str]) -> "Golden":
        output = Output(
            exit_code=self.output.exit_code, stdout=self.output.stdout, stderr=self.output.stderr, files=files
        )
        return Golden(parameters=self.parameters, output=output)

    def replaced(self, pattern: str, replacement: str) -> "Golden":
        return self.with_document(replaced(pattern, replacement)(self.document))


def parse(parameters: FioParameters, output: Output, target: DataSet = FILE, *, ramp: int = 0) -> Measurement:
    return FIO.read(parameters, step_context(target, ramp, 5), output)


@cache
def load(version: str, case: str, *, job: str = "measure") -> Golden:
    stem = f"fio-{version}-{case}"
    document = (_GOLDEN / f"{stem}.json").read_text()
    files = {path.name.replace(stem, "fio"): path.read_text() for path in _GOLDEN.glob(f"{stem}_*.log")}
    files["fio.json"] = document.replace(f'"jobname" : "{case}"', f'"jobname" : "{job}"')
    status = int((_GOLDEN / f"{stem}.exit").read_text())
    output = Output(exit_code=status, stdout="", stderr="", files=MappingProxyType(files))
    return Golden(parameters=_PARAMETERS.get(case, FioParameters(io_depth=4)), output=output)


@pytest.fixture(params=["3.33", "3.39", "3.41"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=CEPH_VERSIONS)
def ceph_version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def golden(version: str) -> Callable[..., Golden]:
    """A golden case of each version."""

    def of_version(case: str, *, job: str = "measure") -> Golden:
        return load(version, case, job=job)

    return of_version


@pytest.fixture(scope="session")
def one_golden() -> Golden:
    """A healthy case for tests that do not depend on the version."""
    return load("3.39", "randread-4k-qd16")
