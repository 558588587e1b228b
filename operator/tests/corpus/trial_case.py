"""Runs a case's trial like a real one: files of the tool -> agent's document -> numbers -> the point's numbers."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any

from corpus.burner_run import recorded_burner_run
from corpus.case import Case, Damage, Fault, Pace, Setting
from corpus.ceph_run import parsed, recorded_run
from corpus.cluster_case import watch_of
from corpus.disk_run import ON_VOLUMES, RECORDED_BYTES, recorded_on_volume
from corpus.fio_run import GOLDEN, MILLISECONDS, FioRun, Stretch
from corpus.network_run import network_run
from plimsoll.api.json_reader import OutputError
from plimsoll.api.line import LineSearch, Objective, Vary
from plimsoll.api.names import Layer, Operation, Outcome, Verdict
from plimsoll.api.result import Abort, Trial
from plimsoll.measure.intake import Offer, TrialFacts
from plimsoll.measure.sample import ClientDocument, Measurement
from plimsoll.measure.summary import PointNumbers, summarise
from plimsoll.measure.trial import TrialNumbers, measure_round, trial_of_rounds
from plimsoll.plan.refusals import offer_of
from plimsoll.tools.base import Output, StepContext, StepKind, Timing, ToolParameters
from plimsoll.tools.fio.command import gap_milliseconds
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.fio.tool import Fio
from plimsoll.tools.registry import TOOLS
from plimsoll.tools.target import TargetKind, VolumeKind, VolumeTarget

FIO = Fio()

SECOND = 10**9
T0 = 1_800_000_000 * SECOND
DATA_SET_BYTES = 100 * 2**30
_TAIL = 2000
_START = 10
"""Milliseconds from the end of the ramp to the start that fio reports, as on an idle machine."""

_CLOCK = {"offset": 0.0001, "error": 0.0002}
_NOISE = f"{'noise':-<99}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The numbers of a case; `trials` by pass, without those without numbers; `recorded` are all attempts."""

    trials: Mapping[int, TrialNumbers]
    point: PointNumbers
    recorded: Sequence[Trial]


def measure(case: Case) -> Measured:
    """Process a trial case like a real trial after its tools have ended."""
    setting = case.trial
    assert setting is not None
    trials: dict[int, TrialNumbers] = {}
    recorded: list[Trial] = []
    for number in range(setting.repetitions):
        faults = [fault for fault in case.faults if fault.concerns(number)]
        replaced = [
            Abort(reason=fault.replaced, message="as the case says", after_start=fault.replaced_after_start)
            for fault in faults
            if fault.replaced
        ]
        for attempt, abort in enumerate(replaced):
            recorded.append(_trial(number, setting, attempt=attempt, abort=abort))
        aborted = next((fault.aborted for fault in faults if fault.aborted), None)
        if aborted:
            recorded.append(
                _trial(number, setting, attempt=len(replaced), abort=Abort(reason=aborted, message="as the case says"))
            )
        elif not any(fault.not_recorded for fault in faults):
            documents = dict(_documents(setting, faults, number))
            trials[number] = trial_of_rounds([measure_round(_facts(setting, faults), documents)])
            recorded.append(_trial(number, setting, attempt=len(replaced), numbers=trials[number]))
    return Measured(trials=trials, point=summarise(recorded, setting.repetitions), recorded=recorded)


def _facts(setting: Setting, faults: Sequence[Fault]) -> TrialFacts:
    return TrialFacts(
        clients=tuple(range(setting.clients)),
        runtime_seconds=setting.runtime_seconds,
        ramp_seconds=setting.ramp_seconds,
        t0_nanoseconds=T0,
        network_bytes_per_second=setting.network_bytes_per_second,
        windowed=TOOLS[setting.tool].windowed,
        ends_when_done=_ends_when_done(setting),
        cluster=watch_of(setting, faults, T0) if setting.ceph else None,
        osd_classes=setting.osd_classes,
        least_runtime_seconds=TOOLS[setting.tool].least_runtime_seconds,
        quantities=TOOLS[setting.tool].quantities,
        measures_network=TOOLS[setting.tool].layer is Layer.NETWORK,
        nodes=setting.servers,
        warm_caches=setting.warm_caches,
        dropped_node_caches=setting.dropped_caches,
        at_random=_parameters(setting).at_random,
        skew=_parameters(setting).skew,
        dropped_osd_caches=setting.ceph is not None and setting.ceph.dropped_caches,
        offer=_offer(setting),
        disturbance=setting.disturbance,
    )


def _offer(setting: Setting) -> Offer | None:
    if setting.objective_microseconds is None:
        return offer_of(setting.fio, setting.clients) if setting.tool == "fio" else None
    objective = Objective(percentile="99", latency=f"{setting.objective_microseconds}us")
    search = LineSearch(vary=Vary.DEPTH, start=1, limit=10_000, objectives=(objective,))
    return Offer(search=search, load=setting.clients * setting.fio.io_depth)


def _ends_when_done(setting: Setting) -> bool:
    return TOOLS[setting.tool].ends_when_done(_parameters(setting))


def _parameters(setting: Setting) -> ToolParameters:
    tool = TOOLS[setting.tool]
    return setting.fio if isinstance(tool, Fio) else tool.parameters.model_validate(setting.parameters)


def _trial(
    number: int, setting: Setting, *, attempt: int, numbers: TrialNumbers | None = None, abort: Abort | None = None
) -> Trial:
    return Trial(
        pass_number=number,
        attempt=attempt,
        epoch="e",
        clients=tuple(range(setting.clients)),
        outcome=Outcome.ABORTED if numbers is None else Outcome.MEASURED,
        started_at="2027-01-15T08:00:00.000Z",
        finished_at="2027-01-15T08:01:05.000Z",
        abort=abort,
        verdict=Verdict.INVALID if numbers is None else numbers.verdict,
        findings=() if numbers is None else numbers.findings,
        operations=() if numbers is None else numbers.operations,
        tool=None if numbers is None else numbers.tool,
        places=() if numbers is None else numbers.places,
        cluster=None if numbers is None else numbers.cluster,
        load=None if numbers is None else numbers.load,
    )


def _documents(setting: Setting, faults: Sequence[Fault], number: int) -> Iterator[tuple[int, ClientDocument]]:
    for client in range(setting.clients):
        own = [fault for fault in faults if fault.concerns(number, client)]
        if not any(fault.sends_nothing for fault in own):
            document = _document(setting, own, client)
            yield client, document
            yield from ((fault.sent_as, document) for fault in own if fault.sent_as is not None)


# -- one client -------------------------------------------------------------------------------------------------------


def _document(setting: Setting, faults: Sequence[Fault], client: int) -> ClientDocument:
    """Return the agent's document: that of `Worker.measure`, with the case's changes."""
    output, measurement, parse_error = _answer(setting, faults)
    launched = T0 + round(SECOND * sum(fault.launched_late for fault in faults))
    document = ClientDocument(
        client=client,
        node=f"node-{client % setting.nodes}",
        exit_code=output.exit_code,
        launched_at=launched,
        finished_at=output.finished_at,
        argv=(TOOLS[setting.tool].program,),
        measurement=measurement,
        parse_error=parse_error,
        stderr_tail=output.stderr[-_TAIL:],
        raw_sha256=hashlib.sha256(repr(sorted(output.files.items())).encode()).hexdigest(),
        data_set_bytes=RECORDED_BYTES if setting.tool in ON_VOLUMES else DATA_SET_BYTES,
    )
    wire = document.model_dump(mode="json") | _surroundings(setting, measurement, client)
    for fault in faults:
        for path, value in fault.document.items():
            put(wire, path, value)
    return ClientDocument.model_validate_json(json.dumps(wire), by_alias=True, by_name=False)


def _answer(setting: Setting, faults: Sequence[Fault]) -> tuple[Output, Measurement | None, str | None]:
    """Return the tool's output, and the agent's reading of it."""
    if setting.tool != "fio":
        output = _recorded_output(setting, faults)
        return output, *parsed(setting, output)
    run = _run(setting, faults)
    output = replace(_output(setting, run, faults), finished_at=(run.started_at + run.milliseconds) * 10**6)
    files = tuple(output.files.items())
    return output, *_parsed(setting.fio, _timing(setting), output.exit_code, output.stderr, files)


def _recording(setting: Setting) -> Callable[[str, int], Output]:
    if TOOLS[setting.tool].target is TargetKind.PEER:
        return network_run
    if setting.tool == "kubeBurner":
        return lambda _, started_at: recorded_burner_run(started_at)
    return recorded_on_volume if setting.tool in ON_VOLUMES else recorded_run


def _recorded_output(setting: Setting, faults: Sequence[Fault]) -> Output:
    stem = next((fault.recorded for fault in faults if fault.recorded), setting.recorded)
    late = round(SECOND * sum(fault.launched_late for fault in faults))
    output = _recording(setting)(stem, T0 + _START * 10**6 + late)
    texts = {"stdout": output.stdout, "stderr": output.stderr, **output.files}
    for fault in faults:
        for name, damage in fault.files.items():
            texts[name] = damaged(texts.get(name, ""), damage)
        texts["stderr"] += fault.stderr
        texts = {name: text for name, text in texts.items() if name not in fault.files or not fault.files[name].missing}
    exit_code = next((fault.exit_code for fault in faults if fault.exit_code is not None), output.exit_code)
    stdout, stderr = texts.pop("stdout"), texts.pop("stderr")
    return replace(output, exit_code=exit_code, stdout=stdout, stderr=stderr, files=texts)


def _run(setting: Setting, faults: Sequence[Fault]) -> FioRun:
    late = sum(fault.launched_late + fault.measured_late for fault in faults)
    length = next((f.measured_seconds for f in faults if f.measured_seconds is not None), setting.runtime_seconds)
    run = FioRun(
        version=setting.fio_version,
        parameters=setting.fio,
        started_at=T0 // 10**6 + round((setting.ramp_seconds + late) * MILLISECONDS) + _START,
        # fio's own runtime is a millisecond longer than requested.
        stretches=tuple(_stretches(setting, [pace for f in faults for pace in f.paces], length + 0.001)),
        slice_seconds=_timing(setting).slice_seconds,
        gap_milliseconds=gap_milliseconds(setting.fio, _timing(setting)),
    )
    for fault in faults:
        run = replace(run, latency_factor=run.latency_factor * fault.latency_factor)
        if fault.submission_microseconds is not None:
            run = replace(run, submission=fault.submission_microseconds / 10**6)
    return run


def _stretches(setting: Setting, paces: Sequence[Pace], length: float) -> Iterator[Stretch]:
    paced = sorted((start, end, pace.factor) for pace in paces for start, end in pace.stretches())
    edges = sorted({0.0, length, *(edge for start, end, _ in paced for edge in (start, end) if edge < length)})
    index = 0
    for start, end in pairwise(edges):
        while index < len(paced) and paced[index][1] <= start:
            index += 1
        factor = paced[index][2] if index < len(paced) and paced[index][0] <= start else 1.0
        yield Stretch(start=start, end=end, iops=setting.iops * factor)


def _output(setting: Setting, run: FioRun, faults: Sequence[Fault]) -> Output:
    recorded = next((fault.recorded for fault in faults if fault.recorded), "")
    files, exit_code = (_recorded(recorded, run.started_at)) if recorded else (dict(_files(run)), 0)
    for fault in faults:
        for name, damage in fault.files.items():
            files[name] = damaged(files[name], damage)
        files = {name: text for name, text in files.items() if name not in fault.files or not fault.files[name].missing}
        exit_code = fault.exit_code if fault.exit_code is not None else exit_code
    return Output(exit_code=exit_code, stdout="", stderr="".join(fault.stderr for fault in faults), files=files)


@cache
def _files(run: FioRun) -> Mapping[str, str]:
    """Return the output of a run, cached: most clients of most cases do the same."""
    return run.files()


@cache
def _parsed(
    parameters: FioParameters, timing: Timing, exit_code: int, stderr: str, files: tuple[tuple[str, str], ...]
) -> tuple[Measurement | None, str | None]:
    """Return the result of `Worker` for an output: a measurement, or why there is none."""
    context = StepContext(
        step=StepKind.MEASURE,
        target=VolumeTarget(kind=VolumeKind.DEVICE, path="/dev/plimsoll", size=DATA_SET_BYTES),
        timing=timing,
        seed=1,
        work_directory="/work",
    )
    output = Output(exit_code=exit_code, stdout="", stderr=stderr, files=dict(files))
    try:
        return FIO.read(parameters, context, output), None
    except OutputError as error:
        return None, str(error)


def _timing(setting: Setting) -> Timing:
    return Timing(ramp_seconds=setting.ramp_seconds, runtime_seconds=setting.runtime_seconds)


def _surroundings(setting: Setting, measurement: Measurement | None, client: int) -> dict[str, Any]:
    """Return the observation of a mostly idle node with an RBD image, or none, over 10 GbE."""
    seconds = measurement.runtime / SECOND if measurement else 0.0
    if measurement is None or not seconds:
        return {"clock": dict(_CLOCK)}
    moved = {sample.operation: sample.bytes / seconds for sample in measurement.operations}
    device = {
        "number": f"252:{16 * client}",
        "read": moved.get(Operation.READ, 0.0),
        "written": moved.get(Operation.WRITE, 0.0),
        "busy": 0.95,
        "queue": 4.0,
    }
    return {
        "clock": dict(_CLOCK),
        "host": {
            "seconds": seconds,
            "cpu": {
                "limit": 2.0,
                "used": 0.4,
                "throttledPeriods": 0,
                "throttledSeconds": 0.0,
                "nodeBusy": 0.2,
                "nodeProcessors": 16,
            },
            "memory": {
                "limit": 2**30,
                "used": 100 * 2**20,
                "nodeTotal": 64 * 2**30,
                "nodeAvailable": 48 * 2**30,
            },
            "network": {"received": 1000.0, "sent": 1000.0, "link": 1.25e9},
            "device": None if TOOLS[setting.tool].target is TargetKind.PEER else device,
        },
    }


# -- recorded output --------------------------------------------------------------------------------------------------


def _recorded(stem: str, started_at: int) -> tuple[dict[str, str], int]:
    """Return the files and the exit code of a golden case, its times moved so that it measures from `started_at`."""
    text = (GOLDEN / f"{stem}.json").read_text()
    own_name = stem.split("-", 2)[2]
    text = text.replace(f'"jobname" : "{own_name}"', '"jobname" : "measure"')
    distance = started_at - _recorded_start(text)
    text = re.sub(r'("(?:job_start|timestamp_ms)" : )([1-9]\d*)', lambda m: f"{m[1]}{int(m[2]) + distance}", text)
    files = {path.name.replace(stem, "fio"): path.read_text() for path in GOLDEN.glob(f"{stem}_*.log")}
    code = int((GOLDEN / f"{stem}.exit").read_text())
    # For signal n the recording shell has 128 + n, the agent's subprocess -n. fio's own 128 for SIGTERM stays.
    return {**files, "fio.json": text}, code if code <= 128 else 128 - code


def _recorded_start(text: str) -> int:
    starts = [int(found) for found in re.findall(r'"job_start" : ([1-9]\d*)', text)]
    if starts:
        return starts[0]
    printed = [int(found) for found in re.findall(r'"timestamp_ms" : (\d+)', text)]
    runtimes = [int(found) for found in re.findall(r'"runtime" : (\d+)', text)]
    return printed[-1] - max(runtimes) if printed else 0


# -- damage -----------------------------------------------------------------------------------------------------------


def damaged(text: str, damage: Damage) -> str:
    """Return the damaged file."""
    for pattern, replacement in damage.replace.items():
        text, count = re.subn(pattern, replacement, text, count=1)
        assert count == 1, f"nothing in the file matches {pattern}"
    if damage.set or damage.remove:
        text = _edited(text, damage.set, damage.remove)
    if damage.earlier_document:
        text = _edited(text, damage.earlier_document) + text
    left = text[: round(damage.keep * len(text))]
    return _NOISE * damage.noise_lines + left + damage.after


def _edited(text: str, values: Mapping[str, object], removed: Sequence[str] = ()) -> str:
    document = json.loads(text)
    for path, value in values.items():
        put(document, path, value)
    for path in removed:
        node, key = _place(document, path)
        del node[key]
    return json.dumps(document, indent=2) + "\n"


def put(document: Any, path: str, value: object) -> None:
    """Set the value at a dotted path; numbers in it are indices of a list."""
    node, key = _place(document, path)
    node[key] = value


def _place(document: Any, path: str) -> tuple[Any, Any]:
    *parents, last = path.split(".")
    node = document
    for key in parents:
        node = node[int(key) if isinstance(node, list) else key]
    return node, int(last) if isinstance(node, list) else last
