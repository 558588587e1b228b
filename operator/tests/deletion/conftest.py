"""One cluster for all deletions: an API server, the controllers and the operator, each a process of its own."""

import json
import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.apiserver import CRDS, Binaries, account_config, operator_process, read_yamls, running_apiserver
from support.pretend_conductor import Knobs
from support.pretend_rook import ROOK_NAMESPACE
from support.served_world import ServedWorld, controller_manager

ROOT = Path(__file__).parents[3]
OPERATOR_NAMESPACE = "plimsoll-system"
MANIFESTS = (ROOT / "manifests" / "install.yaml", ROOT / "manifests" / "rook" / "rook.yaml")
ROOK_KINDS = ROOT / "e2e" / "rook" / "crds.yaml"


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWorld]:
    """Install the operator as its manifests say, on a server without anything, and run it with the controllers.

    So are the admission policies, which refuse no request of the operator and no pod of the Job controller.
    """
    directory = tmp_path_factory.mktemp("served")
    binaries = Binaries.find(os.environ)
    with running_apiserver(binaries, directory) as api:
        for path in (*sorted(CRDS.glob("*.yaml")), ROOK_KINDS):
            for definition in read_yamls(path.read_text()):
                api.define(definition)
        log = directory / "operator.log"
        world = ServedWorld(api, log)
        kubeconfig = directory / "kubeconfig"
        kubeconfig.write_text(json.dumps(api.kubeconfig()))
        files = [argument for path in MANIFESTS for argument in ("-f", str(path))]
        kubectl = [str(binaries.etcd.with_name("kubectl")), f"--kubeconfig={kubeconfig}"]
        command = [*kubectl, f"--cache-dir={directory / 'kinds'}", "apply", "--server-side", *files]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        config = account_config(api, directory, OPERATOR_NAMESPACE, "plimsoll")
        environment = {"PLIMSOLL_ROOK_CLUSTERS": json.dumps({f"{ROOK_NAMESPACE}/rook-ceph": ["*"]})}
        environment["PLIMSOLL_RUNNER_IMAGE"] = "plimsoll-runner:0.1.0"
        with controller_manager(api, directory), operator_process(config, log, **environment):
            yield world
        assert world.complaints() == []


@pytest.fixture
def world(served: ServedWorld) -> Iterator[ServedWorld]:
    """Return the world, whose conductors do what they do by themselves, without what an earlier test found."""
    served.conductors.knobs = Knobs()
    served.cluster.early.clear()
    yield served
    assert served.complaints() == []


@pytest.fixture
def namespace(world: ServedWorld) -> str:
    """Return a new namespace."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    world.cluster.kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name
