"""What a scrape of the operator costs, with as many results as it exposes at most."""

import asyncio
import json
import time
from pathlib import Path

import aiohttp

from figures import heading, mebibytes, median_and_range, milliseconds, table
from plimsoll.metrics.exposition import Instruments, operator_snapshot, serving
from plimsoll.metrics.objects import MAX_RESULTS, Exposed, result_metrics, run_metrics

_GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "metrics"
_POINTS = 6
_TIMES = 5
_TICK_SECONDS = 0.001


def measure() -> None:
    heading(
        f"scrape: {MAX_RESULTS} results of {MAX_RESULTS // _POINTS} runs",
        "From the request to the last byte, through the server of the operator; and how late its event loop wakes up\n"
        "   meanwhile, at worst in each scrape, asked every millisecond. Without scrapes likewise, for as long.",
    )
    asyncio.run(_measure())


async def _measure() -> None:
    shown = (_results(), _runs(), Instruments())
    metrics = serving("http://127.0.0.1:0/metrics", lambda: operator_snapshot(*shown))
    async with metrics as port, aiohttp.ClientSession() as session:

        async def scrape() -> int:
            async with session.get(f"http://127.0.0.1:{port}/metrics") as answer:
                return len(await answer.read())

        size = await scrape()
        taken, late, late_idle = [], [], []
        for _ in range(_TIMES):
            begin = time.perf_counter()
            late.append(await _worst_lateness_during(asyncio.create_task(scrape())))
            taken.append(time.perf_counter() - begin)
            late_idle.append(await _worst_lateness_during(asyncio.create_task(asyncio.sleep(taken[-1]))))
    rows = [
        ("a scrape", *median_and_range(taken, milliseconds)),
        ("latest wake-up during a scrape", *median_and_range(late, milliseconds)),
        ("latest wake-up without", *median_and_range(late_idle, milliseconds)),
    ]
    table(("", "median", f"range over {_TIMES}"), rows)
    print(f"   {mebibytes(size)} of text")


async def _worst_lateness_during(task: "asyncio.Task[object]") -> float:
    """Return how late the loop woke up at worst until the task ended, in seconds."""
    loop, worst = asyncio.get_running_loop(), 0.0
    while not task.done():
        wanted = loop.time() + _TICK_SECONDS
        await asyncio.sleep(_TICK_SECONDS)
        worst = max(worst, loop.time() - wanted)
    await task
    return worst


def _results() -> list[Exposed]:
    """Return real results, as many as are wanted under other names."""
    documents = json.loads((_GOLDEN / "results-demo-ceph.json").read_text())["items"]
    assert len(documents) == _POINTS
    results = []
    for number in range(MAX_RESULTS):
        document = documents[number % _POINTS]
        spec = document["spec"] | {"run": f"run-{number // _POINTS}"}
        metrics = result_metrics(document | {"spec": spec}, now=time.time())
        assert metrics is not None
        results.append(metrics)
    return results


def _runs() -> list[Exposed]:
    document = json.loads((_GOLDEN / "run-demo-ceph.json").read_text())
    names = [f"run-{number}" for number in range(MAX_RESULTS // _POINTS)]
    return [run_metrics(document | {"metadata": document["metadata"] | {"name": name}}) for name in names]
