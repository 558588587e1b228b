"""Fixtures for all tests. A tool that is missing is a failure, never a reason to skip."""

import os
import shutil

import pytest
from hypothesis import settings

# A change passes or fails for what it changes: examples are the same each time. `make search` looks for new ones.
settings.register_profile("plimsoll", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile("plimsoll")

# Where tests run side by side each would be told a narrow terminal: tables are as wide as nobody's terminal says.
os.environ.pop("COLUMNS", None)


@pytest.fixture(scope="session")
def fio() -> str:
    """Return the fio that tests run: PLIMSOLL_FIO, which `make test` sets."""
    path = shutil.which(os.environ.get("PLIMSOLL_FIO", ""))
    if path is None:
        pytest.fail("PLIMSOLL_FIO does not name a fio; run `make test`, or PLIMSOLL_FIO=$(hack/fio.sh) pytest")
    return path
