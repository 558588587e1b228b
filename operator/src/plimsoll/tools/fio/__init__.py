"""fio on a volume or an image.

`parameters` defines a point, `command` and `target` turn it into arguments, `document` reads fio's JSON, `series` its
logs of rates, `slices` and `gaps` its logs of latency, and `output` combines them into a measurement. Before anything
is measured, `preparation` prefills, preconditions or discards a data set.
"""

from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.fio.preparation import (
    discard_command,
    parse_discard,
    parse_precondition,
    parse_prefill,
    precondition_command,
    prefill_command,
)
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
