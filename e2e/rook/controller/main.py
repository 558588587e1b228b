"""A stand-in for the Rook operator, which simulates its observed behaviour on a real Ceph. See ../README.md."""

import os
import sys
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Never

from clients import Clients
from cluster import Clusters
from file_systems import FileSystems
from pools import Pools
from release import release_for
from worker import Worker, say

from kube import Api

import ceph


def main() -> None:
    """Run the four controllers in one thread each; if one fails, the pod exits and restarts."""
    api = Api(os.environ["NAMESPACE"])
    pause_seconds = float(os.environ["PAUSE_SECONDS"])
    release = release_for(ceph.read("ceph", "versions")["mon"])
    failures: SimpleQueue[BaseException] = SimpleQueue()
    parts: list[Callable[[], Never]] = [
        Clusters(api, release, os.environ["IMAGE"]).run,
        Worker(api, Pools(api, release, pause_seconds)).run,
        Worker(api, FileSystems(api, release, pause_seconds)).run,
        Worker(api, Clients(api, release)).run,
    ]
    for part in parts:
        Thread(target=_guarded, args=(part, failures), daemon=True).start()
    say(f"the stand-in for Rook is ready and plays {release.value}")
    sys.exit(f"{failures.get()!r}")


def _guarded(part: Callable[[], Never], failures: SimpleQueue[BaseException]) -> None:
    try:
        part()
    except Exception as error:  # noqa: BLE001 - any error ends the program
        failures.put(error)


if __name__ == "__main__":
    main()
