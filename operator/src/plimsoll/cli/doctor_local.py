"""What `plimsoll doctor` finds out about this machine, its fio, and a directory or devices to measure."""

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import click
from pydantic import JsonValue
from rich.filesize import decimal

from plimsoll.agent.caches import may_drop_caches
from plimsoll.agent.observation import host_facts, identify, volume_facts
from plimsoll.agent.readings import Host
from plimsoll.agent.volume import ALIGNMENT, FileVolume, available_bytes, device_size
from plimsoll.cli.diagnosis import Finding, State, judged
from plimsoll.cli.local_storage import Target, needs_of
from plimsoll.measure.checks.documents import FIO_REPORTS_START
from plimsoll.measure.checks.hosts import node_cpu_saturated
from plimsoll.measure.text import percent_text
from plimsoll.tools.fio.command import target_arguments
from plimsoll.tools.fio.parameters import Engine
from plimsoll.tools.registry import DATA_SET_TOOL, TOOLS
from plimsoll.tools.target import VolumeKind, VolumeTarget

_SECONDS = 20  # for each program
_LOOK_SECONDS = 1.0  # in which the load of the CPUs is observed
_SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies")
_PACKAGES = {"setpriv": "util-linux", "blkid": "util-linux", "dd": "coreutils"}


def check_machine(target: Target, fio: str) -> Iterator[Finding]:
    """Yield the lines. A directory gets a file of one MiB, which is removed; devices are only read."""
    host, program = Host(), shutil.which(fio)
    yield judge_fio(fio, _words([program, "--version"])[1] if program else None)
    for name in ("setpriv", *(["blkid"] if target.devices else [])):
        if shutil.which(name) is None:
            yield judged(f"{name} is missing", "", _install(name), check=name)
    try:
        with target.claimed("doctor"):
            for path in target.paths:
                yield from (_directory if target.directory else _device)(path, program, host)
    except (click.ClickException, OSError) as error:
        problem, _, fix = str(getattr(error, "message", error)).partition("; ")
        yield judged(problem, "", fix, check="Target")
    yield from judge_host(host_facts(host), busy=_busy_part(host), load=os.getloadavg()[0])
    tools = (tool for tool in TOOLS.values() if not needs_of(tool) and tool.key != DATA_SET_TOOL)
    for tool in tools:
        if shutil.which(tool.program) is None:
            text = f"{tool.program} is missing, which workloads with {tool.key} run"
            yield Finding(check="Tool", state=State.UNUSED, text=text, fix=_install(tool.program))
    if not may_drop_caches():
        text = "only root can drop the caches of this machine (prepare.dropCaches)"
        yield Finding(check="Caches", state=State.UNUSED, text=text)


def judge_fio(fio: str, printed: str | None) -> Finding:
    """Judge the output of `fio --version`, None if there is no such program."""
    number = re.search(r"fio-(\d+)\.(\d+)", printed or "")
    if printed is None or number is None:
        problem = f"{fio} cannot be run{f': {printed}' if printed else ''}"
        return judged(problem, "", f"{_install('fio')}   # or name another with --fio", check="fio")
    oldest = ".".join(map(str, FIO_REPORTS_START))
    is_old = (int(number[1]), int(number[2])) < FIO_REPORTS_START
    problem = f"{number[0]} does not report when it begins to measure: results are at most Suspect (ToolTooOld)"
    return judged(
        problem if is_old else "", number[0], f"install fio {oldest} or later, or name it with --fio", check="fio"
    )


def judge_host(facts: Mapping[str, JsonValue], *, busy: float, load: float) -> Iterator[Finding]:
    """Judge a machine whose CPUs were `busy` for that part of the time."""
    governor, clock = facts.get("cpuGovernor"), facts.get("clockSource")
    slow = governor not in {None, "performance"}
    text = f"{facts.get('processors')} x {facts.get('cpuModel') or facts.get('architecture')}"
    text += f", governor {governor}" if governor else ""
    fix = "cpupower frequency-set --governor performance   # for steadier latencies" if slow else ""
    yield Finding(check="CPUs", state=State.OK, text=text, fix=fix)
    text = f"the CPUs are busy for {percent_text(100 * busy)} of the time, load average {load:.1f}"
    problem = f"{text}: results would be Suspect (NodeCpuSaturated)" if node_cpu_saturated.fails(100 * busy) else ""
    yield judged(problem, text, "stop other programs; `top` shows them", check="Load")
    problem = f"{clock} is slow to read, and fio reads it for every operation" if clock in _SLOW_CLOCKS else ""
    yield judged(
        problem, str(clock or "unknown"), "boot without `clocksource=`, or `tsc=reliable`", check="Clock source"
    )


def judge_engine(engine: Engine, problem: str) -> Finding:
    """Judge an engine with which fio read something, or failed to."""
    if problem and engine is not Engine.LIBAIO:
        return Finding(check=f"Engine {engine}", state=State.UNUSED, text=f"not usable here: {problem}")
    fix = "use storage that supports direct I/O, and a fio that was built with libaio"
    return judged(
        f"fio cannot read with it: {problem}" if problem else "", "direct reads work", fix, check=f"Engine {engine}"
    )


def _directory(directory: Path, program: str | None, host: Host) -> Iterator[Finding]:
    facts, free = volume_facts(FileVolume(path=directory / "data"), host), available_bytes(directory, 0)
    kind, source = facts.get("volumeFileSystem", "unknown file system"), facts.get("volumeSource")
    problem = "" if free >= ALIGNMENT else f"{directory} has {free} bytes free; a data set needs at least 1 MiB"
    yield judged(
        problem, f"{directory}: {kind} of {source}, {decimal(free)} free", "free some space", check="Directory"
    )
    with tempfile.TemporaryDirectory(prefix="plimsoll-doctor-", dir=directory) as place:
        target = VolumeTarget(kind=VolumeKind.FILE, path=f"{place}/client-0.data", size=ALIGNMENT)
        Path(target.path).write_bytes(os.urandom(target.size))
        yield from _reads(target, program)
        has_device = identify(target).block_device is not None
    problem = "" if has_device else f"{kind} shows no block device: direct I/O is Suspect here (CacheNotExcluded)"
    yield judged(
        problem, f"{kind} is on a block device", "use a directory on a disk, or --device", check="Block device"
    )


def _device(device: Path, program: str | None, host: Host) -> Iterator[Finding]:
    number = device.stat().st_rdev
    place = (host.sys / "dev/block" / f"{os.major(number)}:{os.minor(number)}").resolve()
    # A partition uses the queue of its disk.
    queue = next(filter(Path.exists, (place / "queue", place.parent / "queue")), place)
    words = {name: _text(queue / name) for name in ("rotational", "scheduler", "write_cache")}
    scheduler = re.search(r"\[(.*)\]", words["scheduler"])
    parts = [
        decimal(device_size(device)),
        {"0": "not rotational", "1": "rotational"}.get(words["rotational"], ""),
        f"scheduler {scheduler[1] if scheduler else words['scheduler']}" if words["scheduler"] else "",
        f"write cache {words['write_cache']}" if words["write_cache"] else "",
    ]
    yield Finding(check="Device", state=State.OK, text=f"{device}: without data, {', '.join(filter(None, parts))}")
    yield from _reads(VolumeTarget(kind=VolumeKind.DEVICE, path=str(device), size=ALIGNMENT), program)


def _reads(target: VolumeTarget, program: str | None) -> Iterator[Finding]:
    """Open the data set with O_DIRECT, and have fio read from it as in a run."""
    problem = ""
    try:
        os.close(os.open(target.path, os.O_RDONLY | os.O_DIRECT))
    except OSError as error:
        problem = f"{target.path} cannot be opened with O_DIRECT: {error.strerror}"
    yield judged(problem, "O_DIRECT works", "use a file system that supports it, or --device", check="Direct I/O")
    for engine in (Engine.LIBAIO, Engine.IO_URING) if program and not problem else ():
        options = ("--name=doctor", "--readonly", "--rw=randread", "--bs=4k", "--size=1M", "--number_ios=16")
        code, words = _words([program or "", *options, *target_arguments(target, engine)])
        yield judge_engine(engine, words.partition("\n")[0] or f"exit code {code}" if code else "")


def _words(command: list[str]) -> tuple[int, str]:
    """Return the exit code and the output of a program."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, f"no answer within {_SECONDS} s" if isinstance(error, subprocess.TimeoutExpired) else str(error)
    return done.returncode, (done.stderr if done.returncode else done.stdout).strip()


def _busy_part(host: Host) -> float:
    before = host.snapshot(cgroup=None, device=None)
    time.sleep(_LOOK_SECONDS)
    after = host.snapshot(cgroup=None, device=None)
    if before is None or after is None:
        return 0.0
    busy, idle = after.busy - before.busy, max(0, after.idle - before.idle)
    return busy / (busy + idle) if busy + idle else 0.0


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_text().strip()
    return ""


def _install(program: str) -> str:
    return f"apt-get install {_PACKAGES.get(program, program)}"
