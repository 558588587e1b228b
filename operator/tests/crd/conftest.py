"""An API server with Plimsoll's CRDs."""

import os
from collections.abc import Iterator
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
