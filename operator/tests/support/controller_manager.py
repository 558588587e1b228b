"""A real kube-controller-manager beside a real API server, with the controllers that take part in a deletion."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.apiserver import ApiServer, Binaries, running_program

CONTROLLERS = (
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
)


@contextmanager
def controller_manager(api: ApiServer, directory: Path) -> Iterator[None]:
    """Run one with all kinds that the server has by now: the garbage collector looks for new ones every 30 s only."""
    config = directory / "controller-manager.kubeconfig"
    config.write_text(json.dumps(api.kubeconfig()))
    arguments = [
        str(Binaries.find(os.environ).kube_controller_manager),
        f"--kubeconfig={config}",
        f"--controllers={','.join(CONTROLLERS)}",
        "--leader-elect=false",
        "--secure-port=0",
    ]
    with running_program(arguments, directory / "controller-manager.log"):
        yield
