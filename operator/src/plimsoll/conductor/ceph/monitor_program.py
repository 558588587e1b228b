"""A lasting connection to Ceph: a program for the interpreter that sees Ceph's modules, as Plimsoll's own may not.

usage: monitor_program.py USER

Each line of standard input is a JSON object: `request` is a command as the monitors take it, or the OSD with the number
`osd` if that is not null. Its answer on standard output is a line of JSON,
`{"code": ..., "message": ..., "bytes": ...}`, and that many bytes, the command's output. `code` is 0 or what `ceph`
would exit with. The connection is made for the first command, with the file that CEPH_CONF names.
"""

import errno
import importlib
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

_SETTINGS = {"mon_client_ping_interval": "2", "mon_client_ping_timeout": "6"}
"""A monitor that vanishes with its node is noticed, and another one asked, before a sample's time is over."""


def connect(user: str) -> Any:  # noqa: ANN401 - a type of Ceph's modules
    """Return a connection as `user` (without `client.`)."""
    cluster = importlib.import_module("rados").Rados(rados_id=user, conffile="", conf=_SETTINGS)
    cluster.connect()
    return cluster


def run(cluster: Any, osd: int | None, request: Mapping[str, Any]) -> tuple[int, str, bytes]:  # noqa: ANN401
    """Return a command's exit code, error and output."""
    text = json.dumps(request)
    code, output, message = cluster.mon_command(text, b"") if osd is None else cluster.osd_command(osd, text, b"")
    if code:
        return abs(code), f"Error {errno.errorcode.get(abs(code), 'Unknown')}: {message}", b""
    return 0, "", output


def main(user: str) -> None:
    """Answer commands until the input ends."""
    # What libraries print goes to the log, not into an answer.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    cluster = None
    for line in sys.stdin:
        try:
            cluster = cluster or connect(user)
            code, message, output = run(cluster, **json.loads(line))
        except Exception as error:  # noqa: BLE001 - Ceph's modules raise their own, and the next command may succeed
            refused = getattr(error, "errno", None) == errno.EACCES
            code, message, output = errno.EACCES if refused else 1, str(error) or repr(error), b""
        header = json.dumps({"code": code, "message": message, "bytes": len(output)})
        answers.write(header.encode() + b"\n" + output)
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
