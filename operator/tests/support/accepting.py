"""The library that limits servers to one peer, compiled once per test session from the source that the image has."""

import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).parents[3] / "runner" / "accept.c"


def compiled_library(directory: Path) -> Path:
    """Compile the library into a directory; fails if there is no compiler."""
    compiler = shutil.which("gcc")
    assert compiler, "gcc is missing; run `make setup`"
    library = directory / "accept.so"
    options = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
    subprocess.run([compiler, *options, "-o", library, SOURCE], check=True)
    return library
