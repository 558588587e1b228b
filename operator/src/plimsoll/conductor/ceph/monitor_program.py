"""`ceph` with a lasting connection: a program for the interpreter that sees Ceph's modules, as Plimsoll's own may not.

usage: monitor_program.py USER

Each line of standard input is a JSON list: the arguments of one `ceph` command. Its answer on standard output is a line
of JSON, `{"code": ..., "message": ..., "bytes": ...}`, and that many bytes, the command's output as JSON. `code` is 0
or what `ceph` would exit with. The connection is made for the first command, with the file that CEPH_CONF names.
"""

import errno
import importlib
import io
import json
import os
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr
from typing import Any

_SETTINGS = {"mon_client_ping_interval": "2", "mon_client_ping_timeout": "6"}
"""A monitor that vanishes with its node is noticed, and another one asked, before a sample's time is over."""
FORCE = "--force"
"""After a value for the configuration database: Ceph stores it even if it is not valid."""

_VERBATIM: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("config", "set"): ("who", "name", "value"),
    ("config-key", "set"): ("key", "val"),
}
"""Commands -> their arguments. A value may be empty, or begin like an option, so `ceph` must not interpret it."""


class Connection:
    """A connection to the monitors. It reads arguments as `ceph` does, by the descriptions that the monitors give."""

    def __init__(self, user: str) -> None:
        """Connect as `user` (without `client.`)."""
        self._cluster = importlib.import_module("rados").Rados(rados_id=user, conffile="", conf=_SETTINGS)
        self._argparse = importlib.import_module("ceph_argparse")
        self._cluster.connect()
        code, output, message = self._argparse.json_command(self._cluster, prefix="get_command_descriptions")
        if code:
            raise OSError(-code, f"the monitors do not describe their commands: {message}")
        self._descriptions = self._argparse.parse_json_funcsigs(output.decode(), "cli")
        self._requests: dict[tuple[str, ...], Mapping[str, Any]] = {}

    def run(self, arguments: list[str]) -> tuple[int, str, bytes]:
        """Return a command's exit code, error and output."""
        request = self._request(tuple(arguments))
        target = self._argparse.find_cmd_target(arguments)
        code, output, message = self._argparse.json_command(self._cluster, target=target, argdict=request)
        if code:
            return abs(code), f"Error {errno.errorcode.get(abs(code), 'Unknown')}: {message}", b""
        return 0, "", output

    def _request(self, arguments: tuple[str, ...]) -> Mapping[str, Any]:
        """Return what the monitors take for arguments. To find it costs more than to send it."""
        if arguments[:1] == ("tell",):
            # A daemon's own command: the monitors do not describe it.
            return {"prefix": " ".join(arguments[2:]), "format": "json"}
        if names := _VERBATIM.get(arguments[:2]):
            force = {"force": True} if arguments[2 + len(names) :] == (FORCE,) else {}
            values = dict(zip(names, arguments[2:], strict=False))
            return {"prefix": " ".join(arguments[:2]), "format": "json", **values, **force}
        if arguments not in self._requests:
            with redirect_stderr(io.StringIO()) as reason:
                request = self._argparse.validate_command(self._descriptions, list(arguments))
            if not request:
                raise OSError(errno.EINVAL, f"invalid command: {' '.join(reason.getvalue().split())}")
            self._requests[arguments] = {**request, "format": "json"}
        return self._requests[arguments]


def main(user: str) -> None:
    """Answer commands until the input ends."""
    # What libraries print goes to the log, not into an answer.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    connection: Connection | None = None
    for line in sys.stdin:
        try:
            connection = connection or Connection(user)
            code, message, output = connection.run(json.loads(line))
        except Exception as error:  # noqa: BLE001 - Ceph's modules raise their own, and the next command may succeed
            refused = getattr(error, "errno", None) == errno.EACCES
            code, message, output = errno.EACCES if refused else 1, str(error) or repr(error), b""
        header = json.dumps({"code": code, "message": message, "bytes": len(output)})
        answers.write(header.encode() + b"\n" + output)
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
