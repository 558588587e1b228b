"""Suites for tests: their manifests, their rounds, and storage that becomes slower for all of their runs."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from runs import run, workload
from support import OPERATOR, Cluster

SUITE = "benchmarksuites"
RATE = 50
"""Limit of the rate of each client, in operations per second.

So few that a fifth of a second without a processor does not look like freezing storage, which would make a run Invalid.
"""

THROTTLED = 15
"""Operations per second of throttled storage."""


def reads(depth: int, **fio: Any) -> dict[str, Any]:
    """Return the workload of a suite's runs, which are many and therefore short."""
    return workload(fio={"ioDepth": [depth], "rateIops": RATE, **fio}, runtimeSeconds=6, rampSeconds=1)


def suite(name: str, namespace: str, **changes: Any) -> dict[str, Any]:
    """Return a suite of one variant, which is measured once per round.

    It has a client on every worker: rounds on other nodes are not compared.
    """
    one = run(name, namespace, workloads=[reads(4, pattern="randread")], repetitions=1)["spec"]
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "BenchmarkSuite",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"repeat": 1, "run": one, "variants": [{"name": "only"}]} | changes,
    }


class Suite:
    """A suite in the cluster."""

    def __init__(self, cluster: Cluster, name: str, namespace: str) -> None:
        self._cluster = cluster
        self.name = name
        self.namespace = namespace

    @property
    def object(self) -> dict[str, Any]:
        return self._cluster.object(SUITE, self.name, self.namespace)

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.object.get("status", {})
        return found

    @property
    def rounds(self) -> list[dict[str, Any]]:
        """The former rounds, newest first."""
        found: list[dict[str, Any]] = self.status.get("rounds", [])
        return found

    def condition(self, kind: str) -> dict[str, str]:
        """Return a condition; an empty one if it does not exist."""
        return next((one for one in self.status.get("conditions", []) if one["type"] == kind), {})

    def annotate(self, name: str, text: str) -> None:
        self._cluster.kubectl(
            "annotate", SUITE, self.name, "-n", self.namespace, "--overwrite", f"plimsoll.dev/{name}={text}"
        )

    def change(self, **spec: Any) -> None:
        patch = json.dumps({"spec": spec})
        self._cluster.kubectl("patch", SUITE, self.name, "-n", self.namespace, "--type=merge", "-p", patch)

    def until_rounds(self, number: int, *, seconds: float = 400) -> dict[str, Any]:
        """Return the newest round once so many have ended, and none is active."""

        def ended() -> dict[str, Any] | None:
            status = self.status
            rounds = status.get("rounds", [])
            return rounds[0] if len(rounds) >= number and "round" not in status else None

        try:
            return self._cluster.until(ended, seconds=seconds, what=f"{number} rounds of {self.name} have ended")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.diagnosis()}") from None

    def until_seen(self, *, seconds: float = 60) -> dict[str, Any]:
        """Return the status once the operator has decided about the suite as it is now."""

        def seen() -> dict[str, Any] | None:
            found = self.object
            status: dict[str, Any] = found.get("status", {})
            return status if status.get("observedGeneration") == found["metadata"]["generation"] else None

        return self._cluster.until(seen, seconds=seconds, what=f"the operator has seen {self.name}")

    def request(self, text: str) -> dict[str, Any]:
        """Request a round, and return it once it has ended."""
        before = len(self.rounds)
        self.annotate("request-round", text)
        return self.until_rounds(before + 1)

    def command(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a command with this suite."""
        return subprocess.run(
            [sys.executable, "-m", "plimsoll", *arguments, f"bsuite/{self.name}", "--namespace", self.namespace],
            capture_output=True,
            text=True,
            check=False,
            env=self._cluster.environment,
        )

    def children(self) -> list[dict[str, Any]]:
        return self._cluster.api.objects("benchmarkruns", self.namespace, f"plimsoll.dev/suite={self.name}")

    def diagnosis(self) -> str:
        runs = [f"{child['metadata']['name']}: {json.dumps(child.get('status'))}" for child in self.children()]
        log = self._cluster.kubectl("logs", "-n", "plimsoll-system", "-l", OPERATOR, "--tail=50", check=False)
        return "\n---\n".join([json.dumps(self.status), *runs, log])

    @contextmanager
    def throttled(self) -> Iterator[None]:
        """Slow down the storage of all clients that start in the meantime."""
        over = threading.Event()
        with ThreadPoolExecutor() as pool:
            watching = pool.submit(self._throttle_clients, over, pool)
            try:
                yield
            finally:
                over.set()
            for throttle in watching.result(timeout=60):
                throttle.result(timeout=60)

    def _throttle_clients(self, over: threading.Event, pool: ThreadPoolExecutor) -> "list[Future[None]]":
        """Throttle each client once it runs, until it is `over`; return the throttles, which may have failed."""
        throttles: dict[str, Future[None]] = {}
        selector = "app.kubernetes.io/component=client"
        while not over.is_set():
            for pod in self._cluster.api.objects("pods", self.namespace, selector):
                if pod["metadata"]["uid"] not in throttles and pod["status"]["phase"] == "Running":
                    throttles[pod["metadata"]["uid"]] = pool.submit(self._cluster.throttle, pod, THROTTLED)
            over.wait(0.5)
        assert throttles, "no client was throttled"
        return list(throttles.values())
