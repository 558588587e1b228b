"""fio on a volume: the tool that most of what Plimsoll publishes rests on.

`parameters` says what can be asked for, `command` turns it into arguments, `document` reads fio's JSON, `series` its
logs of rates and `slices` its log of latency, `output` makes a measurement of them. Before anything is measured,
`prefill` writes a volume once and `precondition` overwrites it in random order.
"""

from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.fio.precondition import parse_precondition, precondition_command
from plimsoll.tools.fio.prefill import parse_prefill, prefill_command
from plimsoll.tools.fio.tool import FIO

__all__ = [
    "FIO",
    "FioParameters",
    "parse_precondition",
    "parse_prefill",
    "precondition_command",
    "prefill_command",
]
