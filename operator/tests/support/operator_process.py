"""The operator as a process of its own, beside a real API server."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plimsoll.cli.launch import free_port


@contextmanager
def operator_process(kubeconfig: str, log: Path, *options: str, **environment: str) -> Iterator[int]:
    """Run one, give the port of its metrics, and expect that it ends well when it is told to end."""
    port = free_port()
    addresses = [
        "--liveness",
        f"http://127.0.0.1:{free_port()}/healthz",
        "--metrics",
        f"http://127.0.0.1:{port}/metrics",
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "plimsoll", "operator", *addresses, *options],
            env={"KUBECONFIG": kubeconfig, "PLIMSOLL_RUNNER_IMAGE": "runner:1", **environment},
            stdout=output,
            stderr=output,
        )
    try:
        yield port
        process.terminate()
        assert process.wait(60) == 0, log.read_text()[-2000:]
    finally:
        process.kill()
        process.wait()
