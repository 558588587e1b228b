"""The rendered chart, which no test changes."""

import pytest

from chart.rendering import EVERYTHING, Rendering, render


@pytest.fixture(scope="session")
def everything() -> Rendering:
    """Return the chart with all features enabled."""
    return render(EVERYTHING)


@pytest.fixture(scope="session")
def defaults() -> Rendering:
    return render()
