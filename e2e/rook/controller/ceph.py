"""Ceph's own programs and its library, with the administrator's key."""

import json
import subprocess
from typing import Any

import rados  # type: ignore[import-not-found] # Ceph's package brings it, PyPI has none

_CONFIGURATION = "/etc/ceph/ceph.conf"
_TIMEOUTS = {"rados_mon_op_timeout": "60", "client_mount_timeout": "60"}


class CommandError(Exception):
    """A command of Ceph failed.

    Attributes:
        complaint: the last line of its standard error.
        ending: its exit status in the words of Go's os/exec, which Rook uses.

    """

    def __init__(self, complaint: str, ending: str) -> None:
        super().__init__(f"{complaint}: {ending}")
        self.complaint = complaint
        self.ending = ending


def run(*command: str, seconds: float | None = 60) -> str:
    """Return the output of a command; None seconds means no timeout, as in some places of Rook."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as error:
        raise CommandError("", "signal: interrupt") from error
    if done.returncode != 0:
        raise CommandError((done.stderr.strip().splitlines() or [""])[-1], f"exit status {done.returncode}")
    return done.stdout


def read(*command: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the JSON document that a command prints."""
    return json.loads(run(*command, "--format", "json"))


class Monitors:
    """A connection to Ceph's monitors, for what is read again and again: a program costs half a second each time."""

    def __init__(self) -> None:
        self._cluster: Any = None

    def read(self, prefix: str) -> Any:  # noqa: ANN401 - JSON of any form
        """Return the JSON document that a command without arguments prints.

        Raises:
            CommandError: if the monitors do not answer, or refuse.

        """
        try:
            code, output, complaint = self._connection().mon_command(
                json.dumps({"prefix": prefix, "format": "json"}), b""
            )
        except rados.Error as error:
            self._cluster = None
            raise CommandError(str(error), "no connection") from error
        if code:
            raise CommandError(complaint, f"error {-code}")
        return json.loads(output)

    def _connection(self) -> Any:  # noqa: ANN401 - the library has no types
        if self._cluster is None:
            cluster = rados.Rados(conffile=_CONFIGURATION, conf=_TIMEOUTS)
            cluster.connect()
            self._cluster = cluster
        return self._cluster
