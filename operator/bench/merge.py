"""Making one trial's result of the documents of 500 clients."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from figures import heading, mebibytes, median_and_range, plain, table, whole_seconds
from place import BENCH, fresh
from plimsoll.api.status import TrialKey
from plimsoll.protocol.messages import ResultPost
from synthetic import BINS, document

_CLIENTS = 500
_RAMP_SECONDS = 10
_RUNTIME_SECONDS = 300
_TIMES = 5
_LIMIT_SECONDS = 120
_T0 = 10**18


def measure() -> None:
    heading(
        f"merge: the documents of {_CLIENTS} clients into one trial",
        f"Reads and writes, {BINS} bins of latency, the same in 20 slices of time, and {_RUNTIME_SECONDS} seconds of\n"
        "   series for each; parsed as they come in, then merged and judged, by a process that does nothing else.",
    )
    posts = fresh("merge") / "posts"
    _write_posts(posts)
    plain_runs = [_run(posts, "plain") for _ in range(_TIMES)]
    traced = _run(posts, "trace")
    _show(plain_runs, traced)


def _write_posts(posts: Path) -> None:
    with posts.open("w") as file:
        for client in range(_CLIENTS):
            post = ResultPost(
                epoch="e",
                client=client,
                instance="i",
                trial=TrialKey(point="w-000", pass_number=0, attempt=0),
                document=document(client, _T0, ramp=_RAMP_SECONDS, runtime=_RUNTIME_SECONDS),
            )
            file.write(post.model_dump_json() + "\n")


def _run(posts: Path, how: str) -> dict[str, Any]:
    argv = [sys.executable, str(BENCH / "merge_child.py"), str(posts), how]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=_LIMIT_SECONDS)
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["clients"] == _CLIENTS, found
    return found


def _show(runs: list[dict[str, Any]], traced: dict[str, Any]) -> None:
    both = [run["parseSeconds"] + run["mergeSeconds"] for run in runs]
    rows = [
        ("parse the posts", *median_and_range([run["parseSeconds"] for run in runs], whole_seconds), ""),
        ("merge and judge", *median_and_range([run["mergeSeconds"] for run in runs], whole_seconds), ""),
        ("both", *median_and_range(both, whole_seconds), "2 s"),
        ("memory, resident", *median_and_range([run["residentBytes"] for run in runs], mebibytes), "256 MiB"),
        ("before the first post", *median_and_range([run["residentBeforeBytes"] for run in runs], mebibytes), ""),
        ("memory, Python's objects", mebibytes(traced["tracedBytes"]), "1 run", ""),
        ("one post, KB", *median_and_range([run["postBytes"] / 1000 for run in runs], plain(1)), ""),
        ("the trial's result, KB", *median_and_range([run["trialBytes"] / 1000 for run in runs], plain(1)), ""),
    ]
    table(("quantity", "median", f"range over {len(runs)} runs", "target"), rows)
    print(f"   verdict: {runs[0]['verdict']}")
