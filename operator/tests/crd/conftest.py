"""An API server with Plimsoll's CRDs."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from support.apiserver import ApiServer, Binaries, BinariesMissingError, Document, running_apiserver

CRDS = Path(__file__).parents[3] / "crds"


@pytest.fixture(scope="session")
def definitions() -> dict[str, Document]:
    """Return kind -> definition."""
    documents = [yaml.safe_load(path.read_text()) for path in sorted(CRDS.glob("*.yaml"))]
    return {document["spec"]["names"]["kind"]: document for document in documents}


@pytest.fixture(scope="session")
def api(definitions: dict[str, Document], tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    try:
        binaries = Binaries.find(os.environ)
    except BinariesMissingError as error:
        pytest.fail(str(error), pytrace=False)
    with running_apiserver(binaries, tmp_path_factory.mktemp("apiserver")) as server:
        for definition in definitions.values():
            server.define(definition)
        yield server


@pytest.fixture
def kubectl(api: ApiServer, tmp_path: Path) -> Callable[..., str]:
    """Return a function that runs kubectl against the server and returns its output."""
    program = Path(os.environ["PLIMSOLL_KUBE_BINARIES"]) / "kubectl"
    config = tmp_path / "kubeconfig"
    config.write_text(json.dumps(api.kubeconfig()))

    def run(*arguments: str) -> str:
        command = [str(program), f"--kubeconfig={config}", f"--cache-dir={tmp_path}", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
