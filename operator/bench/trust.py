"""Measures how often verdicts are right: `trust.py [TRIALS [STORAGE ...]]`; the table of docs/trust.md.

Of 20 bad and 20 good storages, it simulates that many trials each, or points of several trials, from the tools' output
to the verdict. Of 400, a share of 2 % has a standard error of 0.7 %.
"""

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache, partial
from random import Random

from figures import heading_rows, percent
from plimsoll.api.names import Verdict
from plimsoll.api.result import Trial
from plimsoll.ceph.watch import ClusterStatus, PoolCounters
from plimsoll.measure.sample import HostUse
from support.goldens import network_golden
from support.random_trials import Course, Scene, judged

_TRIALS = 400
_GOAL = 0.02
_AT_ONCE = 10
_REASONS = 3
_SECOND = 10**9

Storage = Callable[[Random], Scene]


# -- what disturbs


def _throttled(part: float) -> Callable[[HostUse], HostUse]:
    """Return what a host shows whose CPU quota stops the client in this part of all periods."""

    def observe(host: HostUse) -> HostUse:
        periods = round(part * 10 * host.seconds)
        use = {"throttled_periods": periods, "throttled_seconds": periods / 10}
        return host.model_copy(update={"cpu": host.cpu.model_copy(update=use)})

    return observe


def _busy(host: HostUse) -> HostUse:
    return host.model_copy(update={"cpu": host.cpu.model_copy(update={"node_busy": 0.75})})


def _neighbour(
    reads: float, writes: float, size: int, since: float = -1000.0
) -> Callable[[float], PoolCounters | None]:
    """Return the counters of a pool with so many operations per second of that size, which exists since then."""

    def counted(second: float) -> PoolCounters | None:
        if second < since:
            return None
        read, written = round((second - since) * reads), round((second - since) * writes)
        return PoolCounters(reads=read, writes=written, read_bytes=size * read, written_bytes=size * written)

    return counted


def _scrubbing(runtime: int, second: float, status: ClusterStatus) -> ClusterStatus:
    states = {"active+clean": 250, "active+clean+scrubbing+deep": 6}
    return replace(status, pg_states=states) if runtime / 4 <= second < 3 * runtime / 4 else status


def _large(status: ClusterStatus, out: int = 0, scrubbed: int = 0) -> ClusterStatus:
    states = {"active+clean": 20_000 - scrubbed, "active+clean+scrubbing+deep": scrubbed}
    return replace(
        status,
        osds=500,
        osds_up=500,
        osds_in=500 - out,
        pg_states={key: number for key, number in states.items() if number},
    )


def _slow_poll(middle: float, second: float, status: ClusterStatus) -> ClusterStatus:
    if abs(second - middle) > 2.5:
        return status
    return replace(status, health="HEALTH_WARN", checks={"SLOW_OPS": "HEALTH_WARN"})


# -- kinds of storage


def _nvme(chance: Random, *, runtimes: Sequence[int] = (30, 60), **changes: object) -> Scene:
    depth, clients = chance.choice((1, 16, 64)), chance.choice((1, 2, 3))
    usual = {
        "parameters": {"pattern": chance.choice(("randread", "randwrite")), "ioDepth": depth},
        "clients": clients,
        "rate": clients * min(60_000, 8_000 * depth),
        "sigma": 0.4,
        "runtime": chance.choice(runtimes),
    }
    return Scene(**(usual | changes))


def _hdd(chance: Random, *, runtimes: Sequence[int] = (30, 60), **changes: object) -> Scene:
    usual = {
        "parameters": {"pattern": "randrw", "readPercent": 95, "ioDepth": chance.choice((4, 16))},
        "clients": chance.choice((1, 2, 3)),
        "rate": chance.choice((300, 600, 1_200)),
        "sigma": 0.7,
        "dispersion": 0.6,
        "wander": 0.02,
        "runtime": chance.choice(runtimes),
    }
    return Scene(**(usual | changes))


def _changing(pace: Callable[[float], float], chance: Random, runtimes: Sequence[int]) -> Scene:
    """Return flash whose pace depends on the part of the window that has passed."""
    scene = _nvme(chance, runtimes=runtimes)
    return replace(scene, course=lambda _, __: Course(pace=lambda second: pace(second / scene.runtime)))


def _limited(chance: Random, arrived: float, *, at_random: bool) -> Scene:
    """Return a load that is limited to 1000 operations per second of each client, of which a part arrives."""
    clients, depth = chance.choice((1, 2, 3)), 64 if at_random else 16
    load = {"pattern": "randread", "ioDepth": depth, "rateIops": 1_000} | ({"arrivals": "Poisson"} if at_random else {})
    return Scene(
        parameters=load,
        clients=clients,
        rate=1_000 * arrived * clients,
        latency=0.002 if arrived == 1 else depth / (1_000 * arrived),
        full=0.0 if arrived == 1 else 0.99,
        dispersion=1.0 if at_random and arrived == 1 else 0.05,
        scatter=0.0 if arrived == 1 else 0.01,
        wander=0.0 if arrived == 1 else 0.01,
        runtime=chance.choice((30, 60)),
    )


def _paced(paces: Sequence[float], chance: Random) -> Scene:
    """Return a point whose trials have these rates; storage with credits keeps to its rates exactly."""
    return Scene(
        parameters={"pattern": "randwrite", "ioDepth": chance.choice((16, 32))},
        rate=1,
        dispersion=0.1,
        runtime=30,
        trials=len(paces),
        course=lambda number, _: Course(pace=lambda _: paces[number]),
    )


def _points(trials: int, course: Callable[[int, int], Course], chance: Random) -> Scene:
    return replace(_nvme(chance, runtimes=(30,)), clients=1, rate=8_000, scatter=0.02, trials=trials, course=course)


def _freezing(length: float, every: float, chance: Random) -> Scene:
    scene = _nvme(chance)
    starts = [chance.random() * every + number * every for number in range(int(scene.runtime / every) - 1)]
    freezes = [(start, start + length) for start in starts if int(start) == int(start + length)]
    return replace(scene, course=lambda _, __: Course(frozen=freezes))


def _links(chance: Random) -> Scene:
    """Return two nodes that send a hundred times as fast in one direction as in the other."""
    return Scene(clients=2, tool="iperf3", ramp=1, runtime=3, watched=False, prints=_iperf3)


def _iperf3(chance: Random, launched_at: int, client: int) -> str:
    factor = chance.gauss(1, 0.01) / (100 if client else 1)

    def scaled(node: object) -> object:
        if isinstance(node, list):
            return [scaled(item) for item in node]
        if isinstance(node, dict):
            return {key: round(factor * value) if key == "bytes" else scaled(value) for key, value in node.items()} | (
                {"timesecs": launched_at // _SECOND} if "timesecs" in node else {}
            )
        return node

    return json.dumps(scaled(_recorded()))


@cache
def _recorded() -> object:
    return json.loads(network_golden("iperf3-3.12-tcp-send").output.stdout)


def _osd_bench(chance: Random) -> Scene:
    """Return OSDs of which each writes 64 MiB, which their write cache takes."""
    parameters = {"totalSize": "64Mi", "keyringSecret": {"name": "osd-bench"}}
    return Scene(parameters=parameters, tool="osdBench", ramp=0, prints=_osds)


def _osds(chance: Random, launched_at: int, client: int) -> str:
    size, block = 64 * 2**20, 4 * 2**20
    seconds = [0.22 * chance.gauss(1, 0.05) for _ in range(12)]
    documents = (
        {
            "bytes_written": size,
            "blocksize": block,
            "elapsed_sec": elapsed,
            "bytes_per_sec": size / elapsed,
            "iops": size / block / elapsed,
        }
        for elapsed in seconds
    )
    return "".join(f"osd.{number}: {json.dumps(document)}\n" for number, document in enumerate(documents))


def _moved(number: int, attempt: int) -> Course:
    return Course(moves=number == 1 and not attempt)


def _suspended(number: int, attempt: int) -> Course:
    return Course(interrupted=not attempt)


def _collapsed(number: int, attempt: int) -> Course:
    return Course(frozen=[(10.0, 22.0)] if number == 2 and not attempt else [])


def _beside(course: Course, scene: Scene) -> Scene:
    return replace(scene, course=lambda _, __: course)


def _scrubbed(late: float, chance: Random) -> Scene:
    scene = _nvme(chance, runtimes=(60,))
    runtime = scene.runtime

    def share(second: float) -> float:
        return late if runtime / 4 <= second < 3 * runtime / 4 else 0.0

    return _beside(Course(late=share, status=partial(_scrubbing, runtime)), scene)


_FOUR_KIBIBYTES, _FOUR_MEBIBYTES = 4 * 2**10, 4 * 2**20

_BAD: Mapping[str, Storage] = {
    "one of five trials stands still, and is repeated": partial(_points, 5, _collapsed),
    "burst credits: trials of 15,000, 1,500 and 1,500 IOPS": partial(_paced, (15_000, 1_500, 1_500)),
    "five trials that fall evenly from 15,000 to 6,000 IOPS": partial(_paced, (15_000, 12_750, 10_500, 8_250, 6_000)),
    "Poisson load, of which half arrives": partial(_limited, arrived=0.5, at_random=True),
    "limited rate, of which half arrives": partial(_limited, arrived=0.5, at_random=False),
    "a neighbour writes 2 GB/s in few large writes": lambda chance: _beside(
        Course(foreign=_neighbour(0, 500, _FOUR_MEBIBYTES)), Scene(parameters={"ioDepth": 16}, clients=3, rate=15_000)
    ),
    "a pool that appears in the window, with twice our writes": lambda chance: _beside(
        Course(foreign=_neighbour(0, 4_000, _FOUR_KIBIBYTES, since=-4.0)),
        Scene(parameters={"pattern": "randwrite", "ioDepth": 16}, clients=2, rate=2_000),
    ),
    "scrubs in half of the window, p99 several times as long": partial(_scrubbed, 0.009),
    "links of two nodes, one direction 100 times as fast": _links,
    "reads of 64 MiB per client from the OSDs' memory": lambda chance: _nvme(
        chance, parameters={"pattern": "randread", "ioDepth": 16}, data_set=64 * 2**20
    ),
    "short window, its first third at 10 times the rate": lambda chance: _changing(
        lambda part: 10 if part < 1 / 3 else 1, chance, (15, 30, 45)
    ),
    "short window, the rate falls evenly by 40 %": lambda chance: _changing(
        lambda part: 1 - 0.4 * part, chance, (15, 30, 45)
    ),
    "short window, its first fifth at 1.6 times the rate": lambda chance: _changing(
        lambda part: 1.6 if part < 1 / 5 else 1, chance, (15, 30, 45)
    ),
    "a flash cache that is full after 40 % of the window": lambda chance: _changing(
        lambda part: 1 if part < 0.4 else 0.35, chance, (60, 120)
    ),
    "freezes of 0.2 s every 2 s": partial(_freezing, 0.2, 2.0),
    "shared processors, the quota stops clients for 15 %": lambda chance: _beside(
        Course(host=_throttled(0.15)), _nvme(chance)
    ),
    "a user suspends each trial once": partial(_points, 3, _suspended),
    "a client moves to another node between trials": partial(_points, 3, _moved),
    "osd bench of 64 MiB": _osd_bench,
    "trims of what was never written": lambda chance: _nvme(
        chance, parameters={"pattern": "randtrim", "ioDepth": 16}, prefilled=False
    ),
}
_GOOD: Mapping[str, Storage] = {
    "disks, 300 IOPS with 5 % writes": lambda chance: _hdd(chance, rate=300, runtimes=(30, 60, 120)),
    "a slow disk, 5 IOPS with 5 % writes": lambda chance: _hdd(
        chance,
        parameters={"pattern": "randrw", "readPercent": 95},
        clients=1,
        rate=5,
        runtimes=(60, 120),
    ),
    "a local disk, 100 IOPS with 22 % writes, five trials": lambda chance: _hdd(
        chance,
        parameters={"pattern": "randrw", "readPercent": 78},
        clients=1,
        rate=100,
        runtimes=(60,),
        trials=5,
        watched=False,
    ),
    "disks whose trials differ by 3 %, five trials": lambda chance: _hdd(
        chance, clients=1, rate=1_200, runtimes=(30,), trials=5, scatter=0.03
    ),
    "sequential writes of 4 MiB, 40 per second": lambda chance: _hdd(
        chance, parameters={"pattern": "write", "blockSize": "4Mi", "ioDepth": 4}, rate=40, sigma=0.4
    ),
    "erasure-coded, writes of 64 KiB": lambda chance: _hdd(
        chance, parameters={"pattern": "randwrite", "blockSize": "64Ki", "ioDepth": 16}, rate=900, sigma=0.8
    ),
    "flash at many rates and depths": partial(_nvme, runtimes=(15, 30, 60, 120)),
    "flash that freezes for 0.12 s once": lambda chance: _beside(Course(frozen=[(12.3, 12.42)]), _nvme(chance)),
    "2.5 s without I/O in an hour": lambda chance: _beside(
        Course(frozen=[(1_800.2, 1_802.7)]),
        Scene(parameters={"ioDepth": 16}, rate=2_000, runtime=3_600, watched=False),
    ),
    "burst credits that were used up before, three trials": lambda chance: _paced([1_500] * 3, chance),
    "limited rate, which arrives": partial(_limited, arrived=1, at_random=False),
    "Poisson load, which arrives": partial(_limited, arrived=1, at_random=True),
    "hyper-converged, nodes 75 % busy": lambda chance: _beside(
        Course(host=_busy), _nvme(chance, rate=6_000, sigma=0.6, wander=0.03, scatter=0.03)
    ),
    "one period throttled, 0.03 % of the time": lambda chance: _beside(
        Course(host=lambda host: _throttled(0.0003 if host.seconds > 300 else 1 / (10 * host.seconds))(host)),
        _nvme(chance),
    ),
    "depth 1 at 300 IOPS beside 70 foreign operations/s": lambda chance: _beside(
        Course(foreign=_neighbour(70, 0, _FOUR_KIBIBYTES)), Scene(parameters={"ioDepth": 1}, rate=300)
    ),
    "limited to 150 IOPS beside 50 foreign operations/s": lambda chance: _beside(
        Course(foreign=_neighbour(50, 0, _FOUR_KIBIBYTES)),
        Scene(
            parameters={"ioDepth": 16, "rateIops": 150},
            rate=150,
            latency=0.004,
            dispersion=0.05,
            full=0.0,
            scatter=0.0,
            wander=0.0,
        ),
    ),
    "one of 500 OSDs is out": lambda chance: _beside(
        Course(status=lambda _, status: _large(status, out=1)), _nvme(chance)
    ),
    "one of 20,000 groups is scrubbed all the time": lambda chance: _beside(
        Course(status=lambda _, status: _large(status, scrubbed=1)), _nvme(chance)
    ),
    "scrubs in half of the window that change nothing": partial(_scrubbed, 0.0),
    "slow operations in one poll": lambda chance: _beside(Course(status=partial(_slow_poll, 17.5)), _nvme(chance)),
}

_STORAGES = _BAD | _GOOD

Outcome = tuple[str, bool, tuple[str, ...]]
"""The verdict, whether it is unknown if the rate was steady, and the reasons."""


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else _TRIALS
    names = sys.argv[2:] or [*_STORAGES]
    if unknown := [name for name in names if name not in _STORAGES]:
        sys.exit(f"no storage {', '.join(unknown)}; there are {', '.join(_STORAGES)}")
    began, missed = time.monotonic(), list[str]()
    with ProcessPoolExecutor() as processes:
        parts = [range(begin, min(begin + _AT_ONCE, trials)) for begin in range(0, trials, _AT_ONCE)]
        tasks = {name: [processes.submit(_outcomes, name, part) for part in parts] for name in names}
        for kind, storages in (("bad", _BAD), ("good", _GOOD)):
            print(f"\n{kind} storage, {trials} each\n")
            for row in heading_rows("storage", *Verdict, "steadiness unknown", "reasons"):
                print(f"| {' | '.join(row)} |")
            for name in (name for name in names if name in storages):
                outcomes = [outcome for task in tasks[name] for outcome in task.result()]
                print(f"| {name} | {' | '.join(_figures(outcomes))} |", flush=True)
                valid = sum(verdict == Verdict.VALID for verdict, _, _ in outcomes)
                if (valid if kind == "bad" else trials - valid) > _GOAL * trials:
                    missed.append(name)
    print(f"\n{len(missed)} of {len(names)} miss the goal of {percent(_GOAL, 0)}: {'; '.join(missed) or 'none'}")
    print(f"in {time.monotonic() - began:.0f} s on {os.cpu_count()} processors")


def _outcomes(name: str, numbers: range) -> list[Outcome]:
    return [_outcome(name, number) for number in numbers]


def _outcome(name: str, number: int) -> Outcome:
    chance = Random(f"{name} {number}")  # noqa: S311 - numbers, not secrets
    point = judged(_STORAGES[name](chance), chance)
    reasons = {finding.reason for finding in point.findings}
    return point.verdict, any(map(_is_unknown, point.trials)), tuple(sorted(reasons))


def _is_unknown(trial: Trial) -> bool:
    """Whether it is unknown if any of the rates of a trial was steady."""
    return any(result.steady_state is None for result in trial.operations)


def _figures(outcomes: Sequence[Outcome]) -> Iterator[str]:
    for verdict in Verdict:
        yield percent(sum(found == verdict for found, _, _ in outcomes) / len(outcomes))
    yield percent(sum(unknown for _, unknown, _ in outcomes) / len(outcomes))
    reasons = Counter(reason for _, _, found in outcomes for reason in found)
    shown = (f"`{reason}` {percent(count / len(outcomes), 0)}" for reason, count in reasons.most_common(_REASONS))
    yield ", ".join(shown) or "-"


if __name__ == "__main__":
    main()
