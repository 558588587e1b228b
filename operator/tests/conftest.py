"""Fixtures for all tests. A tool that is missing is a failure, never a reason to skip."""

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import settings
from playwright.sync_api import Browser, sync_playwright

from support.apiserver import ApiServer, apiserver_with_kinds
from support.disks import mounted_disk

# A change passes or fails for what it changes: examples are the same each time. `make search` looks for new ones.
settings.register_profile("plimsoll", deadline=None, derandomize=True, max_examples=30)
settings.register_profile("search", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile("plimsoll")

# Where tests run side by side the terminal looks narrow: tables take their default width.
os.environ.pop("COLUMNS", None)


_CHROMIUM_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)

REAL_THINGS = ("system", "browser", "crd", "chart", "fio", "network")
"""Markers of slow tests, the slowest first."""

SERVED_TOGETHER = ("crd", "browser")
"""Markers of the tests whose API server or browser is started once per process, or per directory and process."""


MARKERS = pytest.StashKey[Mapping[frozenset[str], set[Path]]]()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Start what takes longest first, and keep what shares an API server or a browser in one process."""
    files: dict[frozenset[str], set[Path]] = {}
    for item in items:
        files.setdefault(frozenset(_markers(item)), set()).add(item.path)
    config.stash[MARKERS] = files
    for item in items:
        if not _markers(item).isdisjoint(SERVED_TOGETHER):
            item.add_marker(pytest.mark.xdist_group(item.path.parent.name))
    items.sort(key=_rank)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fail if tests with a group have none for pytest-xdist, which would start their servers in every process."""
    if not getattr(session.config.option, "loadgroup", False):
        return
    for item in session.items:
        if item.get_closest_marker("xdist_group") and "@" not in item.nodeid:
            raise pytest.UsageError(f"pytest-xdist does not group tests: {item.nodeid}")


def _rank(item: pytest.Item) -> int:
    """Return the place of the first marker that a test has; without one it comes last."""
    names = _markers(item)
    return next((rank for rank, name in enumerate(REAL_THINGS) if name in names), len(REAL_THINGS))


def _markers(item: pytest.Item) -> set[str]:
    return {marker.name for marker in item.iter_markers()}


@pytest.fixture(scope="session")
def collected_markers(pytestconfig: pytest.Config) -> Mapping[frozenset[str], set[Path]]:
    """Return the sets of markers of all tests that were found, also of those that `-m` leaves out, and their files."""
    return pytestconfig.stash[MARKERS]


@pytest.fixture(scope="session")
def fio() -> str:
    """Return the fio that tests run: PLIMSOLL_FIO, which `make test` sets."""
    path = shutil.which(os.environ.get("PLIMSOLL_FIO", ""))
    if path is None:
        pytest.fail("PLIMSOLL_FIO does not name a fio; run `make test-all`, or PLIMSOLL_FIO=$(hack/fio.sh) pytest")
    return path


@pytest.fixture(scope="session")
def apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """Return an API server that knows Plimsoll's kinds. It takes seconds to start: directories share it."""
    with apiserver_with_kinds(tmp_path_factory.mktemp("apiserver")) as server:
        yield server


@pytest.fixture
def own_disk(tmp_path: Path) -> Iterator[Path]:
    """Return `data`, where a local run measures: on the machine's disk it would stall while other suites write.

    Only root can mount a disk; for others it is a directory, and measures as long as little else writes.
    """
    place = tmp_path / "data"
    if os.geteuid() != 0:
        place.mkdir()
        yield place
        return
    with mounted_disk(tmp_path, place) as mounted:
        yield mounted


# Not for the session: its event loop would still be there for tests that have one of their own.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium")
    if path is None:
        pytest.fail("there is no chromium on PATH; install the distribution's, as hack/setup.sh does")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*_CHROMIUM_ARGUMENTS])
        yield browser
        browser.close()
