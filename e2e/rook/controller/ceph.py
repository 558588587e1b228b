"""Ceph's own programs, with the administrator's key."""

import json
import subprocess
from typing import Any


class CommandError(Exception):
    """A command of Ceph failed.

    Attributes:
        complaint: what it wrote to standard error, the last line.
        ending: how it ended, as Go's os/exec says it, and therefore Rook.

    """

    def __init__(self, complaint: str, ending: str) -> None:
        super().__init__(f"{complaint}: {ending}")
        self.complaint = complaint
        self.ending = ending


def run(*command: str, seconds: float | None = 60) -> str:
    """Return what a command prints; None seconds: wait for ever, as Rook does in places."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as error:
        raise CommandError("", "signal: interrupt") from error
    if done.returncode != 0:
        raise CommandError((done.stderr.strip().splitlines() or [""])[-1], f"exit status {done.returncode}")
    return done.stdout


def read(*command: str) -> Any:  # noqa: ANN401 - whatever Ceph says
    """Return the JSON document that a command prints."""
    return json.loads(run(*command, "--format", "json"))
