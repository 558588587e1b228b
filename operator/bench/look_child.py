"""An operator's looks at one run: `look_child.py PORT LOOKS`; prints what they took as JSON."""

import asyncio
import json
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from place import memory_bytes
from plimsoll.kube.client import AioKube
from plimsoll.lifecycle.decision import Decision
from plimsoll.lifecycle.run import Settings, run_of
from plimsoll.lifecycle.step import step
from plimsoll.operator.gather import RunDigests, gather

SETTINGS = Settings(runner_image="runner:1")
_TICK_SECONDS = 0.001


def main() -> None:
    port, looks = int(sys.argv[1]), int(sys.argv[2])
    with urlopen(f"http://127.0.0.1:{port}/run", timeout=60) as answer:
        body = json.load(answer)
    print(json.dumps(asyncio.run(_look_again_and_again(port, body, looks))))


async def _look_again_and_again(port: int, body: dict[str, Any], looks: int) -> dict[str, Any]:
    before = memory_bytes()
    run = run_of(body, SETTINGS)
    digests = RunDigests(run.identity)
    async with AioKube(kubeconfig=_kubeconfig(port)) as kube:

        async def look() -> Decision:
            run = run_of(body, SETTINGS)
            seen = await gather(kube, run.identity, digests=digests)
            return step(run, seen, SETTINGS, datetime.now(UTC))

        taken = [await _measured(look) for _ in range(looks)]
        changed = []
        for _ in range(looks):
            await asyncio.to_thread(_change_everything, port)
            changed.append(await _measured(look))
    return {"looks": taken, "changed": changed, "before": before, "peak": memory_bytes()}


def _change_everything(port: int) -> None:
    with urlopen(f"http://127.0.0.1:{port}/change", timeout=60):
        pass


async def _measured(look: Callable[[], Awaitable[Decision]]) -> dict[str, float]:
    """Return how long a look took, how much of that it computed, and how long the loop stood still at worst."""
    begin, computed = time.perf_counter(), _computed()
    task = asyncio.ensure_future(look())
    worst, loop = 0.0, asyncio.get_running_loop()
    while not task.done():
        wanted = loop.time() + _TICK_SECONDS
        await asyncio.sleep(_TICK_SECONDS)
        worst = max(worst, loop.time() - wanted)
    decision = await task
    assert not decision.actions, decision.actions[:1]
    return {"seconds": time.perf_counter() - begin, "computed": _computed() - computed, "blocked": worst}


def _computed() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _kubeconfig(port: int) -> str:
    config = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = Path(tempfile.mkdtemp()) / "kubeconfig"
    path.write_text(json.dumps(config))
    return str(path)


if __name__ == "__main__":
    main()
