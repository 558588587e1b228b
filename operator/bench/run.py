"""Measures Plimsoll itself: `run.py [SECTION ...]`. Prints figures and judges nothing; see each section's heading."""

import os
import platform
import subprocess
import sys
import time
from importlib import import_module

from place import WORK, fio
from plimsoll import __version__

_SECTIONS = ("overhead", "spread", "simulated", "idle", "merge", "scrape", "looks")
"""What is measured if no section is named. Each is a module with a function `measure`."""
_ON_SERVER = ("scale",)
"""Sections that need a kube-apiserver."""


def main() -> None:
    names = sys.argv[1:] or [*_SECTIONS]
    if unknown := [name for name in names if name not in {*_SECTIONS, *_ON_SERVER}]:
        sys.exit(f"no section {', '.join(unknown)}; there are {', '.join((*_SECTIONS, *_ON_SERVER))}")
    WORK.mkdir(parents=True, exist_ok=True)
    _show_environment()
    begin = time.monotonic()
    for name in names:
        import_module(name).measure()
    print(f"\n{time.monotonic() - begin:.0f} s in all, load average now {os.getloadavg()[0]:.2f}")


def _show_environment() -> None:
    """Print what the figures depend on."""
    version = subprocess.run([fio(), "--version"], capture_output=True, text=True, check=True, timeout=30)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    python = f"{platform.python_implementation()} {platform.python_version()}"
    print(f"Plimsoll {__version__}, {version.stdout.strip()}, {python}")
    print(f"{os.cpu_count()} processors, {memory / 2**30:.0f} GiB, {platform.machine()}, Linux {platform.release()}")
    print(f"file system of build/bench: {_file_system()}; load average at the start {os.getloadavg()[0]:.2f}")


def _file_system() -> str:
    found = subprocess.run(
        ["findmnt", "--noheadings", "--output", "FSTYPE,SOURCE", "--target", str(WORK)],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    return " on ".join(found.stdout.split()) or "not known"


if __name__ == "__main__":
    main()
