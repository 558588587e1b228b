"""Recorded output of the network tools, with its times moved to those of a trial."""

import re
from dataclasses import replace

from plimsoll.tools.base import Output
from support.goldens import network_golden

MILLISECOND, SECOND = 10**6, 10**9
_REPLY = re.compile(r"^\[(\d+)\.(\d{6})\]", re.MULTILINE)
_CONNECTED = re.compile(r'("time(milli)?secs":\s*)(\d+)')
_METERED = re.compile(r"^(\d{19})(?= \d+$)", re.MULTILINE)


def network_run(stem: str, started_at: int) -> Output:
    """Return a golden case as if its tool had been launched at that time, Unix nanoseconds."""
    output = network_golden(stem).output
    began = output.launched_at or int(output.stdout.split()[0])
    distance = started_at - began

    def reply(match: re.Match[str]) -> str:
        micros = (int(match[1]) * 10**6 + int(match[2])) + distance // 1000
        return f"[{micros // 10**6}.{micros % 10**6:06}]"

    def connected(match: re.Match[str]) -> str:
        # Rounded down, because iperf3 had not connected before.
        unit = MILLISECOND if match[2] else SECOND
        return f"{match[1]}{(int(match[3]) * unit + distance) // unit}"

    stdout = _REPLY.sub(reply, output.stdout)
    stdout = _CONNECTED.sub(connected, stdout)
    stdout = _METERED.sub(lambda match: str(int(match[1]) + distance), stdout)
    finished = (output.finished_at or began) + distance
    return replace(output, stdout=stdout, launched_at=started_at, finished_at=finished)
