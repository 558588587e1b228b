"""netcat: its commands, and the agent's meter of a real one."""

from dataclasses import replace

import pytest

from plimsoll.api.json_reader import OutputError
from plimsoll.api.names import Layer, Operation
from plimsoll.tools.base import StepKind
from plimsoll.tools.cast import serving_port
from plimsoll.tools.netcat import Netcat, NetcatParameters
from plimsoll.tools.target import PeerTarget, TargetKind
from support.goldens import network_golden

from .conftest import pair_context

NETCAT = Netcat()

SECOND = 10**9
WHOLE = network_golden("netcat-1.10-receive")


def lines(*counts: tuple[float, int]) -> str:
    return "".join(f"{int((100 + at) * SECOND)} {count}\n" for at, count in counts)


def test_declarations() -> None:
    assert (NETCAT.target, NETCAT.layer, NETCAT.windowed) == (TargetKind.PEER, Layer.NETWORK, True)
    assert (NETCAT.quantities.operations, NETCAT.quantities.cells) == (False, True)
    assert NetcatParameters().label() == "netcat receive"


def test_a_server_sends_zeros_to_its_client_only() -> None:
    command = NETCAT.command(NetcatParameters(), pair_context(StepKind.SERVE, c0="10.0.0.1", c1="10.0.0.2"))
    assert [(server.argv[-1], server.stdin, server.accepts_only) for server in command.all] == [
        (str(serving_port(3, 0)), "/dev/zero", "10.0.0.1"),
        (str(serving_port(3, 1)), "/dev/zero", "10.0.0.2"),
    ]
    assert NETCAT.is_serving(NetcatParameters(), "accepting only 10.0.0.1\n")
    assert not NETCAT.is_serving(NetcatParameters(), "")


def test_a_client_is_metered_for_ramp_and_runtime() -> None:
    command = NETCAT.command(NetcatParameters(), pair_context(StepKind.MEASURE, c5="10.0.0.5"))
    assert command.argv[-2:] == ("10.0.0.5", str(serving_port(5, 3)))
    assert (command.metered_seconds, command.stdin) == (12, "/dev/null")


def test_ipv6_is_refused() -> None:
    with pytest.raises(ValueError, match="does not know IPv6, but the address of a peer is fd00::5; use iperf3"):
        NETCAT.command(NetcatParameters(), pair_context(StepKind.MEASURE, c5="fd00::5"))


def test_bytes_between_two_lines_are_measured() -> None:
    counts = [[int(word) for word in line.split()] for line in WHOLE.output.stdout.splitlines()]
    measurement = WHOLE.parse()
    (sample,) = measurement.operations
    (peer,) = measurement.peers
    assert (sample.operation, sample.bytes) == (Operation.READ, counts[-1][1] - counts[1][1])
    assert (measurement.started_at, measurement.runtime) == (counts[1][0], counts[-1][0] - counts[1][0])
    assert (peer.peer, peer.bytes, peer.seconds) == (1, sample.bytes, measurement.runtime / SECOND)
    assert sample.cells is not None
    assert sum(sample.cells.bytes) == pytest.approx(sample.bytes, rel=1e-12)
    assert (measurement.errors, measurement.warnings) == ((), ())


def test_a_server_that_ends_is_an_error_although_netcat_reports_none() -> None:
    measurement = network_golden("netcat-1.10-server-died").parse()
    assert measurement.errors == ("the connection ended after 1.0 s of 4 s",)


def test_a_failure_quotes_netcat() -> None:
    refused = "(UNKNOWN) [192.0.2.2] 20545 (?) : Connection refused\n"
    output = replace(WHOLE.output, exit_code=1, stdout=lines((0, 9000)), stderr=refused)
    with pytest.raises(OutputError, match=r"exit code 1: \(UNKNOWN\) .* Connection refused"):
        NETCAT.parse(NetcatParameters(), WHOLE.context(), output)


@pytest.mark.parametrize(
    ("stdout", "message"),
    [
        ("", "no line of a second"),
        ("now 12\n", "unknown line: now 12"),
        (lines((0, 5), (1, 4)), "goes back in time or bytes"),
        (lines((1, 5), (0, 6)), "goes back in time or bytes"),
        (lines((0, 5), (1, 6), (7, 8)), "there is no line for 6.0 s"),
        (lines((0, 5), (1, 6)), "before the end of its warm-up of 1 s"),
        (lines((0, 5), (1, 6)).rstrip(), "breaks off"),
    ],
)
def test_damage_is_noticed(stdout: str, message: str) -> None:
    with pytest.raises(OutputError, match=message):
        WHOLE.parse(stdout)


def test_a_stall_is_in_the_series() -> None:
    stalled = lines((0, 0), (1, 100), (2, 200), (3, 200), (4, 200), (5, 300))
    (sample,) = WHOLE.parse(stalled).operations
    assert sample.cells is not None
    assert list(sample.cells.bytes) == pytest.approx([100, 0, 0, 100])


def test_two_servers_are_two_peers() -> None:
    both = replace(WHOLE.output, parallel=(WHOLE.output,))
    target = PeerTarget(addresses={1: "192.0.2.2", 4: "192.0.2.3"})
    measurement = NETCAT.parse(NetcatParameters(), replace(WHOLE.context(), target=target), both)
    (sample,) = measurement.operations
    assert sample.bytes == 2 * measurement.peers[0].bytes
    with pytest.raises(OutputError, match=r"2 commands of nc\.traditional ended for 1 peers"):
        NETCAT.parse(NetcatParameters(), WHOLE.context(), both)
