"""Recorded output of kube-burner. Its times stay, since no other client measures at the same time."""

from pathlib import Path

from plimsoll.tools.base import Output

_GOLDEN = Path(__file__).parent.parent / "golden" / "kube-burner-2.7.3"


def recorded_burner_run(started_at: int) -> Output:
    """Return the golden run as if it had been started at that time, Unix nanoseconds."""
    return Output(
        exit_code=0,
        stdout=(_GOLDEN / "run.log").read_text(),
        stderr="",
        files={path.name: path.read_text() for path in _GOLDEN.glob("*.json")},
        launched_at=started_at,
        finished_at=started_at + 40 * 10**9,
    )
