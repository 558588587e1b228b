"""Operators as processes that tests stop, kill, freeze and cut off; and a log of what they asked for."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from plimsoll.cli.launch import free_port

LEASE = "plimsoll-system/plimsoll"
SECONDS = 6
"""Duration of the Lease, which the operators of tests have instead of 15 s."""

_POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
  - {level: Metadata, users: ["system:serviceaccount:plimsoll-system:plimsoll"]}
  - {level: None}
"""
_LEADER = b"\nplimsoll_operator_leader "


class OperatorProcess:
    """A process of the operator."""

    def __init__(self, kubeconfig: str, log: Path, environment: Mapping[str, str]) -> None:
        self.name = environment["POD_NAME"]
        self._log = log
        self._port = free_port()
        addresses = [
            f"--liveness=http://127.0.0.1:{free_port()}/healthz",
            f"--metrics=http://127.0.0.1:{self._port}/metrics",
        ]
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "plimsoll", "operator", *addresses],
                env={"PYTHONPATH": os.environ.get("PYTHONPATH", ""), "KUBECONFIG": kubeconfig, **environment},
                stdout=output,
                stderr=output,
            )
        self.pid = self._process.pid

    def gauge(self) -> str:
        """Return what it tells Prometheus about its leadership; empty while it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=5) as answer:
                return str(answer.read().partition(_LEADER)[2].split(b"\n")[0].decode())
        except OSError:
            return ""

    @property
    def is_ready(self) -> bool:
        return self.gauge() != ""

    @property
    def leads(self) -> bool:
        """Whether it works, and not only holds the Lease."""
        return self.gauge() == "1.0"

    def stop(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def wait(self, seconds: float = 30) -> int:
        """Return the exit code."""
        return self._process.wait(seconds)

    def log(self) -> str:
        return self._log.read_text()


StartOperator = Callable[..., OperatorProcess]
"""Start an operator that is killed after the test, if given at that port of the API server."""


class AuditLog:
    """What the operators have asked the API server for, since this object was made."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "audit.log"
        self._begin = self._path.stat().st_size if self._path.exists() else 0

    @staticmethod
    def options(directory: Path) -> tuple[str, ...]:
        """Return what an API server has to be started with."""
        policy = directory / "audit.yaml"
        policy.write_text(_POLICY)
        log = directory / "audit.log"
        return f"--audit-policy-file={policy}", f"--audit-log-path={log}", "--audit-log-mode=blocking"

    def entries(self) -> Iterator[dict[str, Any]]:
        with self._path.open("rb") as file:
            file.seek(self._begin)
            for line in file:
                yield json.loads(line)

    def created(self) -> Counter[str]:
        """Return how often each object was created."""
        return Counter(
            f"{reference['resource']} {reference.get('namespace', '')}/{reference['name']}"
            for entry in self.entries()
            if entry["verb"] == "create" and entry["responseStatus"]["code"] == 201
            for reference in [entry["objectRef"]]
            if reference["resource"] != "events" and "dryRun" not in entry["requestURI"]
        )

    def changes(self) -> list[str]:
        """Return the requests that change anything but the Lease."""
        return [
            f"{entry['verb']} {entry['requestURI']}"
            for entry in self.entries()
            if entry["verb"] not in {"get", "list", "watch"} and entry["objectRef"]["resource"] != "leases"
        ]


class Line:
    """A TCP proxy to a port of this machine; once cut, it carries nothing, and says so to nobody."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._is_cut = threading.Event()
        self._sockets: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Unlike `close`, this also ends a blocked `accept`.
        self._server.shutdown(socket.SHUT_RDWR)
        for opened in (self._server, *self._sockets):
            opened.close()

    def cut(self) -> None:
        self._is_cut.set()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._server.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += near, far
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(2**16):
                if self._is_cut.is_set():
                    return
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
