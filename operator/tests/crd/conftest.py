"""An API server with Plimsoll's CRDs."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from crd.manifests import Manifest
from support.apiserver import CRDS, Answer, ApiServer, Document, create, read_yaml


@pytest.fixture(scope="session")
def definitions() -> dict[str, Document]:
    """Return kind -> definition."""
    documents = [read_yaml(path.read_text()) for path in sorted(CRDS.glob("*.yaml"))]
    return {document["spec"]["names"]["kind"]: document for document in documents}


@pytest.fixture(scope="session")
def api(apiserver: ApiServer) -> ApiServer:
    return apiserver


@pytest.fixture(scope="session")
def refusal(api: ApiServer) -> Callable[[str, Manifest], Answer]:
    """Return a function that tries to create a manifest in a collection, once, and returns the answer."""
    answers: dict[tuple[str, int], Answer] = {}

    def refused(collection: str, manifest: Manifest) -> Answer:
        key = collection, id(manifest)
        if key not in answers:
            answers[key] = create(api, collection, manifest.document)
        return answers[key]

    return refused


@pytest.fixture(scope="session")
def discovered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory in which kubectl keeps the kinds that it found, so that only the first one asks for them."""
    return tmp_path_factory.mktemp("discovered")


@pytest.fixture
def kubectl(api: ApiServer, discovered: Path, tmp_path: Path) -> Callable[..., str]:
    """Return a function that runs kubectl against the server and returns its output."""
    program = Path(os.environ["PLIMSOLL_KUBE_BINARIES"]) / "kubectl"
    config = tmp_path / "kubeconfig"
    config.write_text(json.dumps(api.kubeconfig()))

    def run(*arguments: str) -> str:
        command = [str(program), f"--kubeconfig={config}", f"--cache-dir={discovered}", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
