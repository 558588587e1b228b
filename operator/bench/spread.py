"""How far apart the clients of a trial start, with a real fio on this machine."""

from figures import heading, median_and_range, milliseconds, plain, table
from place import end
from runs import Shape, attempts, check_ended, start_locally, usable, why_not

_SIZES = ((4, 5), (16, 5), (64, 3))
"""Number of clients and of trials."""
_LIMIT_SECONDS = 300


def measure() -> None:
    heading(
        "spread, real fio in local mode",
        "Time from the first to the last client's start of measuring, which is the end of a ramp of 2 s. Every client\n"
        "   reads 20 blocks a second; all agents and tools start and run on this machine's processors.",
    )
    rows, problems = [], []
    for clients, trials in _SIZES:
        row, complaints = _measure_local(clients, trials)
        rows.append(row)
        problems += complaints
    table(("clients", "trials", "attempts", "median", "range", "overlap, worst"), rows)
    for words in problems:
        print(f"   {words}")


def _measure_local(clients: int, trials: int) -> tuple[tuple[str, ...], list[str]]:
    shape = Shape(
        name=f"spread-{clients}",
        clients=clients,
        size="8Mi",
        fio={"pattern": "randread", "blockSize": ["4Ki"], "ioDepth": [1], "rateIops": 20},
        ramp_seconds=2,
        runtime_seconds=4,
        repetitions=trials,
    )
    process, results = start_locally(shape)
    try:
        process.wait(_LIMIT_SECONDS)
    finally:
        end(process)
    check_ended(process, results)
    tried = attempts(results)
    windows = [trial.window for trial in usable(tried) if trial.window]
    spread = median_and_range([window.spread_seconds for window in windows], milliseconds)
    overlap = plain(4)(min(window.overlap for window in windows)) if windows else "-"
    row = (str(clients), f"{len(windows)}/{shape.repetitions}", str(len(tried)), *spread, overlap)
    return row, [f"{clients} clients, {words}" for words in why_not(tried)]
