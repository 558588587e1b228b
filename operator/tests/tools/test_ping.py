"""ping: its command, and what real ones printed."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from plimsoll.api.json_reader import OutputError
from plimsoll.api.names import LatencyKind, Layer, Operation
from plimsoll.measure.histogram import Histogram
from plimsoll.measure.rates import Quantities
from plimsoll.tools.base import StepContext, StepKind, Timing
from plimsoll.tools.ping import Ping, PingParameters
from plimsoll.tools.target import PeerTarget, TargetKind
from support.goldens import VERSIONS, NetworkGolden, network_golden

from .conftest import replaced, step_context

PING = Ping()

SECOND = 10**9


Cases = Callable[[str], NetworkGolden]


@pytest.fixture(params=VERSIONS["ping"])
def golden(request: pytest.FixtureRequest) -> Cases:
    """The recorded cases of each version."""
    return lambda case: network_golden(f"ping-{request.param}-{case}")


def context(seconds: int = 10, step: StepKind = StepKind.MEASURE) -> StepContext:
    return step_context(PeerTarget(addresses={4: "10.0.0.4", 5: "10.0.0.5"}), 2, seconds, step=step)


def printed(sent: int, *answered: tuple[int, float], lasted: int = 5000) -> str:
    """Return the output of a ping with replies to these requests, each sent at that second."""
    replies = [
        f"[{100 + at:.6f}] 64 bytes from 192.0.2.2: icmp_seq={number % 2**16} ttl=64 time=0.500 ms"
        for number, at in answered
    ]
    return "\n".join(
        [
            "PING 192.0.2.2 (192.0.2.2) 56(84) bytes of data.",
            *replies,
            "",
            "--- 192.0.2.2 ping statistics ---",
            f"{sent} packets transmitted, {len(answered)} received, 0% packet loss, time {lasted}ms",
            "rtt min/avg/max/mdev = 0.500/0.500/0.500/0.000 ms",
            "",
        ]
    )


def test_declarations() -> None:
    assert (PING.target, PING.layer, PING.windowed) == (TargetKind.PEER, Layer.NETWORK, True)
    assert not PING.has_server
    assert PING.sysctls == {"net.ipv4.ping_group_range": "0 2147483647"}
    assert PING.quantities == Quantities(cells=True)


def test_every_peer_has_a_ping() -> None:
    command = PING.command(PingParameters(size=1000), context())
    assert [ping.argv[-1] for ping in command.all] == ["10.0.0.4", "10.0.0.5"]
    assert command.argv == ("ping", "-D", "-n", "-i0.010", "-s1000", "-w13", "10.0.0.4")


def test_more_requests_than_the_output_can_hold_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 800000 requests in 8003 s; raise intervalMilliseconds"):
        PING.command(PingParameters(), context(8000))
    PING.command(PingParameters(interval_milliseconds=20), context(8000))


@pytest.mark.parametrize("case", ["good", "large"])
def test_replies_to_requests_after_the_ramp_are_measured(golden: Cases, case: str) -> None:
    recorded = golden(case)
    measurement = recorded.parse()
    replies = [
        (float(match[1]), float(match[2]))
        for match in re.finditer(r"^\[([\d.]+)\].* time=([\d.]+) ms$", recorded.output.stdout, re.MULTILINE)
    ]
    begin = replies[0][0] - replies[0][1] / 1000 + recorded.timing.ramp_seconds
    inside = [time for at, time in replies if begin <= at - time / 1000 < begin + 3]
    (sample,) = measurement.operations
    assert (sample.operation, sample.bytes, sample.lost_ios) == (Operation.ROUND_TRIP, 0, 0)
    assert sample.ios == pytest.approx(len(inside), abs=1)
    assert (sample.latency.kind, sample.latency.count) == (LatencyKind.FULL, sample.ios)
    assert sample.latency.mean_nanoseconds == pytest.approx(sum(inside) / len(inside) * 1e6, rel=0.01)
    assert Histogram.decode(sample.latency.histogram or "").total == sample.ios
    assert sample.cells is not None
    assert sum(sample.cells.ios) == sample.ios
    assert len(sample.cells.ios) == 3
    assert measurement.runtime == 3 * SECOND
    assert measurement.started_at / SECOND == pytest.approx(begin, abs=0.001)
    (peer,) = measurement.peers
    assert (peer.peer, peer.ios, peer.bytes, peer.seconds) == (1, sample.ios, 0, 3)
    assert (measurement.errors, measurement.warnings) == ((), ())


def test_lost_replies_are_counted(golden: Cases) -> None:
    lossy, gone = golden("losses").parse().operations[0], golden("went-away").parse().operations[0]
    assert lossy.lost_ios > 0
    assert gone.lost_ios > 0
    assert gone.cells is not None
    # The peer was away from 2.5 s on, of which the first was the ramp.
    assert gone.cells.ios[-1] == 0


@pytest.mark.parametrize(
    ("sent", "numbers", "lost"),
    [
        (500, range(1, 501), 0),
        (500, [*range(1, 201), *range(203, 501)], 2),
        # In the ramp of 1 s, and after the runtime of 3 s.
        (500, [*range(1, 50), *range(53, 501)], 0),
        (500, [*range(1, 450), *range(460, 501)], 0),
        (500, range(1, 301), 100),
    ],
)
def test_requests_without_a_reply_are_lost_if_they_belong_to_the_measured_part(
    golden: Cases, sent: int, numbers: list[int], lost: int
) -> None:
    stdout = printed(sent, *((number, number / 100) for number in numbers))
    (sample,) = golden("good").parse(stdout).operations
    assert sample.lost_ios == pytest.approx(lost, abs=1 if lost else 0)


def test_numbers_beyond_16_bits_go_on(golden: Cases) -> None:
    recorded = replace(golden("good"), timing=Timing(ramp_seconds=0, runtime_seconds=700))
    stdout = printed(70_000, *((number, number / 100) for number in range(1, 70_001)), lasted=700_000)
    (sample,) = recorded.parse(stdout).operations
    assert (sample.ios, sample.lost_ios) == (70_000, 0)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("nobody", "7 requests got 0 replies, exit code 1"),
        ("killed", "no number of packets, exit code -9"),
    ],
)
def test_a_ping_that_fails_is_an_error(golden: Cases, case: str, message: str) -> None:
    with pytest.raises(OutputError, match=message):
        golden(case).parse()


def test_replies_that_all_arrived_before_are_no_replies(golden: Cases) -> None:
    doubled = re.sub(r"(icmp_seq=\d+ [^\n]+ ms)\n", r"\1 (DUP!)\n", golden("good").output.stdout)
    with pytest.raises(OutputError, match="requests got 0 replies"):
        golden("good").parse(doubled)


def test_remarks_are_warnings(golden: Cases) -> None:
    stdout = golden("good").output.stdout
    router = "From 192.0.2.1 icmp_seq=3 Destination Host Unreachable\n"
    assert golden("good").parse(stdout.replace("\n", f"\n{router}", 1)).warnings == (f"unknown line: {router.strip()}",)
    again = replaced(r"(\n\[[^\n]+ ms)\n", r"\1\1 (DUP!)\n")(stdout)
    assert golden("good").parse(again).warnings == ("1 replies have the remark (DUP!)",)


@pytest.mark.parametrize(
    ("pattern", "by", "message"),
    [
        (r"\n\[[^\n]+icmp_seq=7 [^\n]+", "", "replies were received, but"),
        (r"icmp_seq=7 ", "icmp_seq=8 ", "request 8 was answered twice"),
        (r"(\d+) packets transmitted", "100 packets transmitted", "100 requests were sent, but"),
        (r"\n[^\n]*packets transmitted[^\n]*", "", "no number of packets"),
        (r"time \d+ms", "time 2000ms", "before the end of its runtime"),
    ],
)
def test_damage_is_noticed(golden: Cases, pattern: str, by: str, message: str) -> None:
    with pytest.raises(OutputError, match=message):
        golden("good").parse(replaced(pattern, by)(golden("good").output.stdout))


def test_two_peers_are_one_distribution(golden: Cases) -> None:
    recorded = golden("good")
    both = replace(recorded.output, parallel=(recorded.output,))
    measurement = recorded.tool.parse(recorded.parameters, replace(recorded.context(), target=context().target), both)
    (sample,) = measurement.operations
    assert [peer.peer for peer in measurement.peers] == [4, 5]
    assert sample.ios == 2 * recorded.parse().operations[0].ios
    with pytest.raises(OutputError, match="2 commands of ping ended for 1 peers"):
        recorded.tool.parse(recorded.parameters, recorded.context(), both)


@pytest.mark.parametrize("remark", ["DIFFERENT ADDRESS!", "truncated", "anything"])
def test_a_reply_with_a_remark_is_one(golden: Cases, remark: str) -> None:
    found = golden("good").parse(
        replaced(r"(icmp_seq=7 [^\n]+ ms)\n", rf"\1 ({remark})\n")(golden("good").output.stdout)
    )
    assert found.operations == golden("good").parse().operations
    assert found.warnings == (f"1 replies have the remark ({remark})",)


def test_a_damaged_reply_is_none(golden: Cases) -> None:
    stdout = replaced(r"(icmp_seq=7 [^\n]+ ms)\n", r"\1 (BAD CHECKSUM!)\n")(golden("good").output.stdout)
    with pytest.raises(OutputError, match="replies were received, but"):
        golden("good").parse(stdout)
    (received,) = re.findall(r"(\d+) received,", stdout)
    found = golden("good").parse(
        stdout.replace(f"{received} received,", f"{int(received) - 1} received, +1 corrupted,")
    )
    (sample,), (whole,) = found.operations, golden("good").parse().operations
    assert whole.ios - sample.ios == sample.lost_ios
