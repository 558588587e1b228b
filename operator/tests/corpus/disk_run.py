"""Recorded output of dd and ioping, which contains no times of day."""

from pathlib import Path

from plimsoll.tools.base import Output

ON_VOLUMES = frozenset({"dd", "ioping"})
RECORDED_BYTES = 128 * 2**20
"""Size of the data set of the longest recorded dd."""

_GOLDEN = Path(__file__).parent.parent / "golden"
_STARTING = 4 * 10**6
"""Nanoseconds from the launch of ioping to its first request, and from its last line to its end, together."""


def recorded_on_volume(stem: str, started_at: int) -> Output:
    """Return a golden case as if it had been launched at that time, Unix nanoseconds."""
    stdout, stderr, code = (_text(f"{stem}.{kind}") for kind in ("txt", "stderr", "exit"))
    last = stdout.rstrip().rpartition("\n")[2].split()
    return Output(
        exit_code=int(code),
        stdout=stdout,
        stderr=stderr,
        files={},
        launched_at=started_at,
        finished_at=started_at + _STARTING + (int(last[-1]) if last else 0),
    )


def _text(name: str) -> str:
    path = _GOLDEN / name
    return path.read_text() if path.exists() else ""
