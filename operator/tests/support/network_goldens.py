"""What real iperf3, ping and netcat printed, in the form in which an agent passes it on."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType

from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import AnyTool, Output, StepContext, StepKind, Timing, ToolParameters
from plimsoll.tools.iperf3 import IPERF3
from plimsoll.tools.netcat import NETCAT
from plimsoll.tools.ping import PING
from plimsoll.tools.target import PeerTarget

_GOLDEN = Path(__file__).parent.parent / "golden"
PEER = PeerTarget(addresses={1: "192.0.2.2"})

_TOOLS: Mapping[str, AnyTool] = MappingProxyType({"iperf3": IPERF3, "ping": PING, "netcat": NETCAT})


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkGolden:
    """One captured case with what its command was given."""

    tool: AnyTool
    parameters: ToolParameters
    timing: Timing
    output: Output

    def parse(self, stdout: str | None = None) -> Measurement:
        """Return the measurement, of another standard output if there is one."""
        output = self.output if stdout is None else replace(self.output, stdout=stdout)
        return self.tool.parse(self.parameters, self.context(), output)

    def context(self) -> StepContext:
        """Return the context of the measuring step."""
        return StepContext(step=StepKind.MEASURE, target=PEER, timing=self.timing, seed=1, work_directory="/work")


_UDP = {"protocol": "UDP", "bitrate": "10M", "datagramBytes": 1400}
_CASES: Mapping[str, tuple[Mapping[str, object], int, int]] = MappingProxyType(
    {
        "iperf3-3.12-tcp-send": ({}, 1, 3),
        "iperf3-3.12-tcp-receive": ({"direction": "Receive"}, 2, 3),
        "iperf3-3.12-tcp-4-streams": ({"streams": 4, "window": "256Ki"}, 1, 3),
        "iperf3-3.12-udp-send": ({**_UDP, "streams": 2}, 1, 3),
        "iperf3-3.12-udp-receive": ({**_UDP, "direction": "Receive"}, 1, 3),
        "iperf3-3.12-udp-lossy": ({**_UDP, "bitrate": "30M"}, 1, 3),
        "iperf3-3.12-killed": ({}, 1, 30),
        "iperf3-3.12-server-died": ({}, 1, 5),
        "iperf3-3.12-refused": ({}, 1, 3),
        "ping-20221126-good": ({}, 1, 3),
        "ping-20221126-large": ({"size": 1400, "intervalMilliseconds": 50}, 0, 3),
        "ping-20221126-losses": ({"size": 1000}, 1, 3),
        "ping-20221126-nobody": ({"intervalMilliseconds": 100}, 0, 1),
        "ping-20221126-went-away": ({}, 1, 3),
        "ping-20221126-killed": ({"intervalMilliseconds": 50}, 1, 28),
        "netcat-1.10-receive": ({}, 1, 4),
        "netcat-1.10-server-died": ({}, 1, 4),
    }
)
NETWORK_CASES = tuple(_CASES)
MEASURED_CASES = (
    "iperf3-3.12-tcp-send",
    "iperf3-3.12-tcp-receive",
    "iperf3-3.12-tcp-4-streams",
    "iperf3-3.12-udp-send",
    "iperf3-3.12-udp-receive",
    "iperf3-3.12-udp-lossy",
    "ping-20221126-good",
    "ping-20221126-large",
    "ping-20221126-losses",
    "ping-20221126-went-away",
    "netcat-1.10-receive",
)
"""Those of a measurement that was not cut short."""


def network_golden(name: str) -> NetworkGolden:
    """Return a captured case."""
    fields, ramp, runtime = _CASES[name]
    tool = _TOOLS[name.partition("-")[0]]
    return NetworkGolden(
        tool=tool,
        parameters=tool.parameters.model_validate(fields),
        timing=Timing(ramp_seconds=ramp, runtime_seconds=runtime),
        output=_output(name),
    )


@cache
def _output(name: str) -> Output:
    # `with_suffix` would take the version for a suffix.
    files = {
        match[1]: path.read_text()
        for path in _GOLDEN.glob(f"{name}.*")
        if (match := re.fullmatch(rf"{re.escape(name)}\.([a-z]+)", path.name))
    }
    status = int(files.get("exit", "0"))
    began, ended = map(int, files.get("times", "0 0").split())
    return Output(
        # The shell's number for a signal, as an agent counts it.
        exit_code=128 - status if status > 128 else status,
        stdout=files.get("json", files.get("txt", "")),
        stderr=files.get("stderr", ""),
        files={},
        launched_at=began,
        finished_at=ended,
    )
