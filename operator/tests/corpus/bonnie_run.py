"""Recorded output of bonnie++, as if it had run in a trial."""

from pathlib import Path

from plimsoll.tools.base import Output
from plimsoll.tools.target import VolumeKind, VolumeTarget

_GOLDEN = Path(__file__).parent.parent / "golden"

TARGET = VolumeTarget(kind=VolumeKind.FILE, path="/data/plimsoll.data", size=64 * 2**20)
"""With the size of the recorded large files."""


def recorded_bonnie(case: str, started_at: int) -> Output:
    """Return a golden case as if it had begun at that time, Unix nanoseconds."""
    files = {path.suffix: path.read_text() for path in _GOLDEN.glob(f"bonnie-2.00a-{case}.*")}
    return Output(
        exit_code=int(files[".exit"]),
        stdout=files[".csv"],
        stderr=files[".stderr"],
        files={},
        launched_at=started_at,
        finished_at=started_at + round(float(files[".seconds"]) * 10**9),
    )
