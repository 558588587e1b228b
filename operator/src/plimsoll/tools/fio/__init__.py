"""fio on a volume: the tool that most of what Plimsoll publishes rests on.

`parameters` says what can be asked for, `command` turns it into arguments, `document` reads fio's JSON, `series` its
logs, `output` makes a measurement of both, `prefill` writes a volume once before anything is measured.
"""

from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.fio.prefill import parse_prefill, prefill_command
from plimsoll.tools.fio.tool import FIO

__all__ = ["FIO", "FioParameters", "parse_prefill", "prefill_command"]
