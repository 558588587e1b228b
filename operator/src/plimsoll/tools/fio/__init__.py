"""fio on a volume or an image: the tool that most of what Plimsoll publishes rests on.

`parameters` says what can be asked for, `command` and `target` turn it into arguments, `document` reads fio's JSON,
`series` its logs of rates and `slices` its log of latency, `output` makes a measurement of them. Before anything is
measured, `prefill` writes a volume once and `precondition` overwrites it in random order; `discard` empties an image.
"""

from plimsoll.tools.fio.discard import discard_command, parse_discard
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.fio.precondition import parse_precondition, precondition_command
from plimsoll.tools.fio.prefill import parse_prefill, prefill_command
from plimsoll.tools.fio.tool import FIO

__all__ = [
    "FIO",
    "FioParameters",
    "discard_command",
    "parse_discard",
    "parse_precondition",
    "parse_prefill",
    "precondition_command",
    "prefill_command",
]
