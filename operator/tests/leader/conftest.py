"""One cluster with an audit log, in which the tests start operators."""

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from leader.operators import LEASE, SECONDS, AuditLog, Line, OperatorProcess, StartOperator
from support.pretend_conductor import Knobs
from support.served_world import Installed, installed_world


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    directory = tmp_path_factory.mktemp("leader")
    with installed_world(directory, *AuditLog.options(directory)) as installed:
        yield installed


@pytest.fixture
def audit(installed: Installed) -> AuditLog:
    """Return the log of requests from now on."""
    return AuditLog(installed.directory)


@pytest.fixture
def line(installed: Installed) -> Iterator[Line]:
    """Return a connection to the API server that tests cut."""
    with Line(installed.world.api.port) as line:
        yield line


@pytest.fixture
def start(installed: Installed, tmp_path: Path) -> Iterator[StartOperator]:
    """Return a function that starts an operator, which is killed after the test."""
    installed.world.conductors.knobs = Knobs()
    numbers = itertools.count()
    with ExitStack() as stack:

        def start(port: int | None = None) -> OperatorProcess:
            name = f"operator-{next(numbers)}"
            kubeconfig = installed.kubeconfig(tmp_path / f"{name}.yaml", port)
            environment = {"PLIMSOLL_LEASE": LEASE, "PLIMSOLL_LEASE_SECONDS": str(SECONDS), "POD_NAME": name}
            process = OperatorProcess(kubeconfig, tmp_path / f"{name}.log", {**installed.environment, **environment})
            stack.callback(process.kill)
            return process

        yield start
