"""Ceph's commands, with the administrator's key.

A start of Ceph's program `ceph` costs a third of a second of processor time, so commands are sent over one connection,
by the program's own library.
"""

import errno
import json
import subprocess
from threading import Lock
from typing import Any

import ceph_argparse  # type: ignore[import-not-found] # Ceph's packages bring it and the next, PyPI has none
import rados  # type: ignore[import-not-found]

_CONFIGURATION = "/etc/ceph/ceph.conf"
_TIMEOUTS = {"rados_mon_op_timeout": "60", "client_mount_timeout": "60"}
_PROGRAM = "ceph"
_JSON = ("--format", "json")


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


class _Cluster:
    """One connection for all threads, and the signatures of the commands that the cluster knows."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._handle: Any = None
        self._signatures: Any = None

    def run(self, words: list[str], seconds: float | None) -> str:
        """Return what `ceph` would print for these arguments; CommandError as `run`."""
        as_json = tuple(words[-2:]) == _JSON
        try:
            handle = self._connection()
            words = words[:-2] if as_json else words
            command = ceph_argparse.validate_command(self._like(words), words)
            if not command:
                self._forget()  # a manager that has started since may know it
                raise CommandError("Error EINVAL: invalid command", f"exit status {errno.EINVAL}")
            more = {"format": "json"} if as_json else {}
            code, output, remark = ceph_argparse.json_command(handle, argdict=command | more, timeout=seconds)
        except rados.Error as error:
            self._forget()
            raise CommandError(str(error), f"exit status {error.errno or 1}") from error
        except RuntimeError as error:  # of the library, for a command without an answer
            raise CommandError("", "signal: interrupt") from error
        if code < 0:
            complaint = f"Error {errno.errorcode.get(-code, 'Unknown')}: {remark}".strip().splitlines()[-1]
            raise CommandError(complaint, f"exit status {-code}")
        return str(output.decode())

    def _like(self, words: list[str]) -> dict[str, Any]:
        """Return the signatures of commands that begin like this one: to try all takes a tenth of a second."""

        def begins(described: Any) -> list[str]:  # noqa: ANN401 - the library has no types
            return [part.instance.prefix for part in described["sig"][:2] if part.t is ceph_argparse.CephPrefix]

        return {name: one for name, one in self._signatures.items() if words[: len(begins(one))] == begins(one)}

    def _forget(self) -> None:
        """Have the next command connect and read the signatures again."""
        with self._lock:
            self._handle = None

    def _connection(self) -> Any:  # noqa: ANN401 - the library has no types
        with self._lock:
            if self._handle is None:
                handle = rados.Rados(conffile=_CONFIGURATION, conf=_TIMEOUTS)
                handle.connect()
                code, described, remark = ceph_argparse.json_command(
                    handle, prefix="get_command_descriptions", timeout=60
                )
                if code:
                    raise CommandError(remark, f"exit status {-code}")
                self._signatures = ceph_argparse.parse_json_funcsigs(described.decode(), "cli")
                self._handle = handle
            return self._handle


_CLUSTER = _Cluster()


def run(*command: str, seconds: float | None = 60) -> str:
    """Return the output of a command; None seconds means no timeout, as in some places of Rook."""
    program, *words = command
    if program == _PROGRAM:
        return _CLUSTER.run(words, seconds)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as error:
        raise CommandError("", "signal: interrupt") from error
    if done.returncode != 0:
        raise CommandError((done.stderr.strip().splitlines() or [""])[-1], f"exit status {done.returncode}")
    return done.stdout


def read(*command: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the JSON document that a command prints."""
    return json.loads(run(*command, *_JSON))
