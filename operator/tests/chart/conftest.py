"""What no test changes: the rendered chart, and an installation of it whose policies are tested."""

from collections.abc import Iterator

import pytest

from chart.admission import VALUES, Installation, installed
from chart.rendering import EVERYTHING, Rendering, render


@pytest.fixture(scope="session")
def everything() -> Rendering:
    """Return the chart with all features enabled."""
    return render(EVERYTHING)


@pytest.fixture(scope="session")
def defaults() -> Rendering:
    return render()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Return the chart on an API server; tests that create objects give them other names."""
    with installed(tmp_path_factory.mktemp("apiserver"), VALUES) as installation:
        yield installation
