"""Measures how often verdicts are right: `trust.py [TRIALS [STORAGE ...]]`; the table of docs/explanation/trust.md.

It simulates that many trials on each of the bad and good storages, or points of several trials, from the tools' output
to the verdict. Of 400, a share of 2 % has a standard error of 0.7 %.
"""

import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any

from figures import heading_rows, percent
from plimsoll.api.names import Verdict
from plimsoll.api.operation import SteadinessState
from plimsoll.api.result import Trial
from plimsoll.ceph.watch import ClusterStatus, PoolCounters
from plimsoll.measure.attempts import counted
from plimsoll.measure.sample import HostUse
from random_trials import Course, Scene, judged
from support.goldens import network_golden

_TRIALS = 400
_GOAL = 0.02
_AT_ONCE = 10
_REASONS = 3
_SECOND = 10**9

Storage = Callable[[Random], Scene]


# -- kinds of storage; a tuple is a choice


def _scene(chance: Random, usual: dict[str, Any], course: Course | None = None) -> Scene:
    drawn = {name: chance.choice(it) if isinstance(it, tuple) else it for name, it in usual.items()}
    parameters, rate = drawn.pop("load")
    fields: dict[str, Any] = {"parameters": parameters, "rate": rate * drawn["clients"]} | drawn
    return Scene(**fields) if course is None else Scene(**fields, course=lambda _: course)


_FLASH: dict[str, Any] = {
    "load": tuple(
        ({"pattern": pattern, "ioDepth": depth}, rate)
        for pattern in ("randread", "randwrite")
        for depth, rate in ((1, 8_000), (16, 40_000), (64, 60_000))
    ),
    "clients": (1, 2, 3),
    "sigma": 0.4,
    "runtime": (30, 60),
}
_DISKS: dict[str, Any] = {
    "load": tuple(({"pattern": "randrw", "readPercent": 95, "ioDepth": depth}, 300) for depth in (1, 4, 16)),
    "clients": (1, 2, 3),
    "sigma": 0.7,
    "dispersion": 0.6,
    "wander": 0.02,
    "runtime": (30, 60),
}
_ONE_CLIENT = _FLASH | {"clients": 1, "rate": 8_000, "scatter": 0.02, "runtime": 30}
_SHORT = {"runtime": (15, 30, 45)}
_EXACT: dict[str, Any] = {"dispersion": 0.02, "wander": 0.0, "scatter": 0.0}
_KEPT_UP: dict[str, Any] = _EXACT | {"latency": 0.004, "full": 0.0}
"""Of storage that completes a limited rate."""


def _flash(course: Course | None = None, **changes: object) -> Storage:
    return partial(_scene, usual=_FLASH | changes, course=course)


def _disks(course: Course | None = None, **changes: object) -> Storage:
    return partial(_scene, usual=_DISKS | changes, course=course)


def _points(trials: int, course: Callable[[int, int], Course], **changes: object) -> Storage:
    """Return a point of so many trials; `course` is given the numbers of the pass and of the attempt at it."""
    usual = _ONE_CLIENT | changes | {"trials": trials, "course": lambda key: course(key.pass_number, key.attempt)}
    return partial(_scene, usual=usual)


def _changing(pace: Callable[[float], float], **changes: object) -> Storage:
    """Return flash whose pace depends on the part of the window that has passed."""

    def scene(chance: Random) -> Scene:
        usual = _scene(chance, _FLASH | changes)
        return replace(usual, course=lambda _: Course(pace=lambda second: pace(second / usual.runtime)))

    return scene


def _limited(arrived: float, arrivals: str) -> Storage:
    """Return a limit of 1000 operations per second for each client, of which a part arrives."""

    def scene(chance: Random) -> Scene:
        clients, behind = chance.choice((1, 2, 3)), {"latency": 64 / (1_000 * arrived), "full": 0.99}
        kept_up = _KEPT_UP | ({"dispersion": 1.0} if arrivals == "Poisson" else {})
        return Scene(
            parameters={"pattern": "randread", "ioDepth": 64, "rateIops": 1_000, "arrivals": arrivals},
            clients=clients,
            rate=1_000 * clients * arrived,
            runtime=chance.choice((30, 60)),
            **(kept_up if arrived == 1 else behind),
        )

    return scene


def _frozen_limited(parameters: dict[str, Any], length: float, every: float) -> Storage:
    """Return a limited rate all of which arrives, because what is due in a freeze is done after it."""

    def scene(chance: Random) -> Scene:
        clients, first = chance.choice((1, 2, 3)), 2 + 0.05 * chance.random()
        freezes = [(first + index * every, first + index * every + length) for index in range(int(58 / every))]
        after = {int(end) + 1 for _, end in freezes}
        rate, is_random = parameters["rateIops"], parameters.get("arrivals") == "Poisson"
        course = Course(frozen=freezes, pace=lambda second: 1 + length if int(second) in after and not is_random else 1)
        return Scene(
            parameters={"pattern": "randread", **parameters},
            clients=clients,
            rate=rate * clients,
            runtime=60,
            course=lambda _: course,
            **(_KEPT_UP | {"latency": 0.0005} | ({"dispersion": 1.0} if is_random else {})),
        )

    return scene


def _freezing(length: float, every: float) -> Storage:
    def scene(chance: Random) -> Scene:
        usual = _scene(chance, _FLASH)
        first, number = chance.random(), int(usual.runtime / every)
        freezes = [(first + index * every, first + index * every + length) for index in range(number)]
        return replace(usual, course=lambda _: Course(frozen=freezes))

    return scene


def _by_tokens(missing: int = 0) -> Storage:
    """Return a volume with tokens about every 0.1 s, which it uses up fast; so many of thirty do not come."""

    def scene(chance: Random) -> Scene:
        limit, busy = chance.choice((1_000, 3_000, 10_000)), chance.choice((0.01, 0.03))
        usual = _scene(chance, _FLASH | {"parameters": {"ioDepth": 16}, "clients": 1, "rate": 0.1 / busy * limit})
        ticks = (tick for tick in range(1, 10 * usual.runtime) if tick % 30 >= missing)
        due = [tick / 10 + chance.uniform(-0.015, 0.015) for tick in ticks]
        pauses = [(begin + busy, end) for begin, end in pairwise(due)]
        return replace(usual, course=lambda _: Course(frozen=pauses))

    return scene


# -- what disturbs


def _throttled(periods: Callable[[float], float]) -> Callable[[HostUse], HostUse]:
    """Return what a host shows whose CPU quota stops the client in so many of all periods, wholly."""

    def host(usual: HostUse) -> HostUse:
        number = round(periods(10 * usual.seconds))
        use = {"throttled_periods": number, "throttled_seconds": number / 10}
        return usual.model_copy(update={"cpu": usual.cpu.model_copy(update=use)})

    return host


def _busy(usual: HostUse) -> HostUse:
    return usual.model_copy(update={"cpu": usual.cpu.model_copy(update={"node_busy": 0.75})})


def _neighbour(
    reads: int, writes: int, size: int = 4_096, since: int = -1_000
) -> Callable[[float], PoolCounters | None]:
    """Return the counters of a pool with so many operations per second of that size, which exists since then."""

    def counted(second: float) -> PoolCounters | None:
        read, written = round((second - since) * reads), round((second - since) * writes)
        counters = PoolCounters(reads=read, writes=written, read_bytes=size * read, written_bytes=size * written)
        return counters if second >= since else None

    return counted


def _scrubs(late: float) -> Course:
    """Return scrubs from the 15th to the 45th second, during which a part of the operations takes long."""
    states = {"active+clean": 250, "active+clean+scrubbing+deep": 6}

    def status(second: float, usual: ClusterStatus) -> ClusterStatus:
        return replace(usual, pg_states=states) if 15 <= second < 45 else usual

    return Course(status=status, late=lambda second: late if 15 <= second < 45 else 0.0)


def _felt(second: float) -> float:
    return 0.7 if 15 <= second < 45 else 1.0


def _large(out: int = 0, scrubbed: int = 0, osds: int = 500) -> Course:
    """Return a cluster of many OSDs and 20,000 groups, of which so many are out and scrubbed all the time."""
    states = {"active+clean": 20_000 - scrubbed} | ({"active+clean+scrubbing+deep": scrubbed} if scrubbed else {})
    return Course(status=lambda _, usual: replace(usual, osds=osds, osds_up=osds, osds_in=osds - out, pg_states=states))


def _moving_all_the_time(_: float, usual: ClusterStatus) -> ClusterStatus:
    return replace(usual, osds=500, osds_up=500, osds_in=500, pg_states={"active+remapped+backfilling": 1})


def _slow_poll(second: float, usual: ClusterStatus) -> ClusterStatus:
    slow = replace(usual, health="HEALTH_WARN", checks={"SLOW_OPS": "HEALTH_WARN"})
    return slow if 15 <= second < 20 else usual


# -- other tools


def _iperf3(chance: Random, launched_at: int, client: int) -> str:
    """Return the output of a link that is a hundred times as fast from the first client."""
    text, factor = network_golden("iperf3-3.12-tcp-send").output.stdout, chance.gauss(1, 0.01) / (100 if client else 1)
    text = re.sub(r'("bytes":\s*)(\d+)', lambda match: f"{match[1]}{round(factor * int(match[2]))}", text)
    return re.sub(r'("timesecs":\s*)\d+', rf"\g<1>{launched_at // _SECOND}", text)


def _osd_bench(chance: Random, _: int, __: int) -> str:
    size, block, times = 64 * 2**20, 4 * 2**20, [chance.gauss(0.22, 0.01) for _ in range(12)]
    osds = [{"bytes_written": size, "blocksize": block, "elapsed_sec": it, "bytes_per_sec": size / it} for it in times]
    return "".join(f"osd.{number}: {json.dumps(osd)}\n" for number, osd in enumerate(osds))


_BAD: dict[str, Storage] = {
    "one of five trials stands still, and is repeated": _points(
        5, lambda number, attempt: Course(frozen=[(10.0, 22.0)] if (number, attempt) == (2, 0) else [])
    ),
    "burst credits: trials of 15,000, 1,500 and 1,500 IOPS": _points(
        3, lambda number, _: Course(pace=lambda _: 0.1 if number else 1.0), rate=15_000
    ),
    "five trials that fall evenly from 15,000 to 6,000 IOPS": _points(
        5, lambda number, _: Course(pace=lambda _: 1 - 0.15 * number), rate=15_000
    ),
    "a user suspends each of three trials once": _points(3, lambda _, attempt: Course(interrupted=not attempt)),
    "a client that moves to another node between trials": _points(3, lambda number, _: Course(moves=number == 1)),
    "Poisson load, of which half arrives": _limited(0.5, "Poisson"),
    "limited rate, of which half arrives": _limited(0.5, "Even"),
    "limited rate at a depth of 32, frozen for 0.9 s every 20 s": _frozen_limited(
        {"ioDepth": 32, "rateIops": 1_000}, 0.9, 20
    ),
    "limited rate at a depth of 1, frozen for 0.4 s every 10 s": _frozen_limited(
        {"ioDepth": 1, "rateIops": 500}, 0.4, 10
    ),
    "Poisson load at a depth of 64, frozen for 0.3 s every 10 s": _frozen_limited(
        {"ioDepth": 64, "rateIops": 1_000, "arrivals": "Poisson"}, 0.3, 10
    ),
    "limited rate at a depth of 1 on a disk that is busy for 90 %": _disks(
        parameters={"pattern": "randread", "rateIops": 100}, clients=1, rate=100, **_KEPT_UP | {"latency": 0.009}
    ),
    "limited rate, one of four clients takes 5 times as long": _flash(
        parameters={"ioDepth": 32, "rateIops": 500}, clients=4, rate=2_000, last_slower=5.0, **_KEPT_UP
    ),
    "five trials, in every other one 2 % of the operations take 20 times as long": _points(
        5,
        lambda number, _: Course(late=lambda _: 0.02 if number % 2 else 0.0),
        parameters={"pattern": "randread", "ioDepth": 64},
        rate=3_000,
    ),
    "a neighbour that writes 2 GB/s in few large writes": _flash(
        Course(foreign=_neighbour(0, 500, 4 * 2**20)), parameters={"ioDepth": 16}, rate=15_000, clients=3
    ),
    "a foreign pool that appears, with twice our writes": _disks(
        Course(foreign=_neighbour(0, 2_000, since=-4)), parameters={"pattern": "randwrite", "ioDepth": 16}, rate=1_000
    ),
    "reads of 1 MiB from 12 disks, beside 65 small writes per second on three disks each": _disks(
        Course(foreign=_neighbour(0, 65)),
        parameters={"pattern": "read", "blockSize": "1Mi", "ioDepth": 16},
        rate=1_600,
        data_set=2**42,
        runtime=60,
    ),
    "scrubs in half of the window, a p99 three times as long": _disks(
        _scrubs(0.011), parameters={"ioDepth": 64, "rateIops": 500}, clients=1, rate=500, runtime=60, **_KEPT_UP
    ),
    "disks with 5 % writes, scrubs in half of the window that take 30 % of the rate": _disks(
        replace(_scrubs(0.0), pace=_felt), runtime=60
    ),
    "a pool on 10 of 500 OSDs, from or to which data moves all the time": _flash(
        Course(status=_moving_all_the_time, pace=lambda _: 0.7), osds=10
    ),
    "two nodes, one direction 100 times as fast as the other": _flash(
        tool="iperf3", parameters={}, rate=1, clients=2, ramp=1, runtime=3, watched=False, prints=_iperf3
    ),
    "reads of 64 MiB per client, which the OSDs' memory holds": _flash(
        parameters={"pattern": "randread", "ioDepth": 16}, data_set=64 * 2**20
    ),
    "short window, its first third at 10 times the rate": _changing(lambda part: 1 if part < 1 / 3 else 0.1, **_SHORT),
    "short window, a rate that falls evenly by 40 %": _changing(lambda part: 1 - 0.4 * part, **_SHORT),
    "short window, its first fifth at 1.6 times the rate": _changing(lambda part: 1.6 if part < 1 / 5 else 1, **_SHORT),
    "a cache of flash that is full after 40 % of the window": _changing(
        lambda part: 1 if part < 0.4 else 0.35, runtime=(60, 120)
    ),
    "freezes of 0.2 s every 2 s": _freezing(0.2, 2.0),
    "limited by tokens every 0.1 s, frozen for 0.4 s every 3 s": _by_tokens(missing=3),
    "a slow disk, 5 IOPS at a depth of 4, that stands still for 15 s": _disks(
        Course(frozen=[(20.0, 35.0)]), parameters={"ioDepth": 4}, rate=5, clients=1, runtime=60
    ),
    "shared processors: a quota stops clients for 15 % of the time": _flash(
        Course(host=_throttled(lambda periods: 0.15 * periods))
    ),
    "osd bench of 64 MiB, which write caches hold": _flash(
        tool="osdBench",
        parameters={"totalSize": "64Mi", "keyringSecret": {"name": "osd-bench"}},
        clients=1,
        ramp=0,
        prints=_osd_bench,
    ),
    "trims of what was never written": _flash(parameters={"pattern": "randtrim", "ioDepth": 16}, prefilled=False),
}
_GOOD: dict[str, Storage] = {
    "disks, 300 IOPS with 5 % writes": _disks(rate=300, runtime=(30, 60, 120)),
    "a slow disk, 5 IOPS with 5 % writes": _disks(
        parameters={"pattern": "randrw", "readPercent": 95}, rate=5, clients=1, runtime=(60, 120)
    ),
    "a local disk, 100 IOPS with 22 % writes, five trials": _disks(
        parameters={"pattern": "randrw", "readPercent": 78}, rate=100, clients=1, runtime=60, trials=5, watched=False
    ),
    "disks whose trials scatter by 3 %, five trials": _disks(clients=1, rate=1_200, runtime=30, trials=5, scatter=0.03),
    "disks, 40 sequential writes of 4 MiB per second": _disks(
        parameters={"pattern": "write", "blockSize": "4Mi", "ioDepth": 4}, rate=40, sigma=0.4
    ),
    "erasure-coded, writes of 64 KiB": _disks(
        parameters={"pattern": "randwrite", "blockSize": "64Ki", "ioDepth": 16}, rate=900, sigma=0.8
    ),
    "flash, at many rates and depths": _flash(runtime=(15, 30, 60, 120)),
    "flash whose rate wanders by 6 % in waves of about ten seconds": _flash(wander=0.06, runtime=60),
    "limited by tokens that come every 0.1 s, give or take 15 ms": _by_tokens(),
    "flash that freezes for 0.12 s once": _flash(Course(frozen=[(12.3, 12.42)])),
    "2.5 s without I/O in an hour": _flash(
        Course(frozen=[(1_800.2, 1_802.7)]),
        rate=2_000,
        clients=1,
        runtime=3_600,
        watched=False,
    ),
    "burst credits that were used up before, three trials": _points(3, lambda _, __: Course(), **_EXACT),
    "limited rate, all of which arrives": _limited(1, "Even"),
    "Poisson load, all of which arrives": _limited(1, "Poisson"),
    "limited rate at a depth of 1 on a disk that is busy for 30 %": _disks(
        parameters={"pattern": "randread", "rateIops": 50}, clients=1, rate=50, **_KEPT_UP | {"latency": 0.006}
    ),
    "limited rate, one of four clients takes 1.4 times as long": _flash(
        parameters={"ioDepth": 32, "rateIops": 500}, clients=4, rate=2_000, last_slower=1.4, **_KEPT_UP
    ),
    "limited rate at a depth of 4, a heavy tail": _disks(
        parameters={"pattern": "randread", "ioDepth": 4, "rateIops": 100}, rate=100, clients=1, sigma=1.0, **_KEPT_UP
    ),
    "limited rate on flash that freezes for 0.12 s once": _flash(
        Course(frozen=[(12.3, 12.42)]),
        parameters={"ioDepth": 1, "rateIops": 1_000},
        clients=1,
        rate=1_000,
        **_KEPT_UP | {"latency": 0.0005},
    ),
    "hyper-converged, nodes whose processors are busy for 75 %": _flash(
        Course(host=_busy), rate=(3_000, 8_000), sigma=0.6, wander=0.03, scatter=0.03
    ),
    "a quota that stops the client for one period": _flash(Course(host=_throttled(lambda _: 1)), runtime=(300,)),
    "depth 1 at 300 IOPS beside 70 foreign operations per second": _disks(
        Course(foreign=_neighbour(70, 0)), parameters={}, clients=1, rate=300
    ),
    "limited to 150 IOPS beside 50 foreign operations per second": _disks(
        Course(foreign=_neighbour(50, 0)),
        parameters={"rateIops": 150},
        clients=1,
        rate=150,
        **_KEPT_UP,
    ),
    "reads of 4 KiB from flash, beside 65 small writes per second on three OSDs each": _flash(
        Course(foreign=_neighbour(0, 65)), parameters={"pattern": "randread", "ioDepth": 16}, rate=40_000
    ),
    "one of 500 OSDs is out": _flash(_large(out=1), osds=499),
    "reads of 1,000 OSDs, where one of 20,000 groups is scrubbed all the time": _flash(
        _large(scrubbed=1, osds=1_000), parameters={"pattern": "randread", "ioDepth": 16}, osds=1_000
    ),
    "scrubs in half of the window that change nothing": _flash(_scrubs(0.0), runtime=60),
    "disks with 5 % writes, scrubs in half of the window that change nothing": _disks(_scrubs(0.0), runtime=60),
    "slow operations in one poll": _flash(Course(status=_slow_poll)),
}

_STORAGES = _BAD | _GOOD


# -- the table

Outcome = tuple[str, bool, Sequence[str]]
"""The verdict, whether it is unknown if the rate was steady, and the reasons."""


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else _TRIALS
    names = sys.argv[2:] or [*_STORAGES]
    if unknown := [name for name in names if name not in _STORAGES]:
        sys.exit(f"no storage {'; '.join(unknown)}; there are {'; '.join(_STORAGES)}")
    began, missed = time.monotonic(), list[str]()
    parts = [range(begin, min(begin + _AT_ONCE, trials)) for begin in range(0, trials, _AT_ONCE)]
    with ProcessPoolExecutor() as processes:
        tasks = {name: [processes.submit(_outcomes, name, part) for part in parts] for name in names}
        for kind, storages in (("bad", _BAD), ("good", _GOOD)):
            print(f"\n{kind} storage, {trials} each\n")
            for row in heading_rows("storage", *Verdict, "steadiness unknown", "reasons"):
                print(f"| {' | '.join(row)} |")
            for name in (name for name in names if name in storages):
                outcomes = [outcome for task in tasks[name] for outcome in task.result()]
                print(f"| {name} | {' | '.join(_figures(outcomes))} |", flush=True)
                wrong = sum((verdict == Verdict.VALID) is (kind == "bad") for verdict, _, _ in outcomes)
                missed += [name] if wrong > _GOAL * trials else []
    print(f"\n{len(missed)} of {len(names)} miss the goal of {percent(_GOAL, 0)}: {'; '.join(missed) or 'none'}")
    print(f"in {time.monotonic() - began:.0f} s on {os.cpu_count()} processors")


def _outcomes(name: str, numbers: range) -> list[Outcome]:
    return [_outcome(name, number) for number in numbers]


def _outcome(name: str, number: int) -> Outcome:
    """Return what is said about a point, or about its trial if it has only one."""
    chance = Random(f"{name} {number}")  # noqa: S311 - numbers, not secrets
    scene = _STORAGES[name](chance)
    status = judged(scene, chance)
    last = status.trials[-1]
    verdict, findings = (status.verdict, status.findings) if scene.trials > 1 else (last.verdict, last.findings)
    return str(verdict), any(map(_is_unknown, counted(status.trials))), [*{finding.reason for finding in findings}]


def _is_unknown(trial: Trial) -> bool:
    """Whether it is unknown if the rate of a trial was steady."""
    return trial.steadiness is None or trial.steadiness.state is SteadinessState.UNKNOWN


def _figures(outcomes: Sequence[Outcome]) -> Iterator[str]:
    for verdict in Verdict:
        yield percent(sum(found == verdict for found, _, _ in outcomes) / len(outcomes))
    yield percent(sum(unknown for _, unknown, _ in outcomes) / len(outcomes))
    reasons = Counter(reason for _, _, found in outcomes for reason in sorted(found))
    shown = (f"`{reason}` {percent(count / len(outcomes), 0)}" for reason, count in reasons.most_common(_REASONS))
    yield ", ".join(shown) or "-"


if __name__ == "__main__":
    main()
