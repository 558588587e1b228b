"""iperf3: its commands and what real ones printed."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from plimsoll.api.json_reader import OutputError
from plimsoll.api.names import Layer, Operation
from plimsoll.measure.rates import Quantities
from plimsoll.tools.base import Output, StepKind
from plimsoll.tools.cast import SERVING_PORTS, Pairing, serving_port
from plimsoll.tools.iperf3 import Iperf3, Iperf3Parameters
from plimsoll.tools.target import PeerTarget, TargetKind
from support.goldens import VERSIONS, NetworkGolden, network_golden

from .conftest import pair_context

IPERF3 = Iperf3()

SECOND = 10**9


Cases = Callable[[str], NetworkGolden]


@pytest.fixture(params=VERSIONS["iperf3"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def golden(version: str) -> Cases:
    """The recorded cases of each version."""
    return lambda case: network_golden(f"iperf3-{version}-{case}")


def edited(recorded: NetworkGolden, edit: Callable[[dict[str, Any]], object]) -> str:
    document = document_of(recorded)
    edit(document)
    return json.dumps(document)


def document_of(recorded: NetworkGolden) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(recorded.output.stdout)
    return document


def test_declarations() -> None:
    assert (IPERF3.target, IPERF3.layer, IPERF3.windowed) == (TargetKind.PEER, Layer.NETWORK, True)
    assert IPERF3.quantities == Quantities(operations=False, cells=True)
    assert IPERF3.has_server


def test_a_client_loads_every_server_at_the_same_time() -> None:
    command = IPERF3.command(Iperf3Parameters(streams=4), pair_context(c5="10.0.0.5", c7="10.0.0.7"))
    assert [client.argv[1:3] for client in command.all] == [
        (f"--client={address}", f"--port={serving_port(server, 3)}")
        for server, address in ((5, "10.0.0.5"), (7, "10.0.0.7"))
    ]
    assert {"--json", "--interval=1", "--time=10", "--omit=2", "--parallel=4"} <= set(command.argv)
    assert not {"--reverse", "--udp"} & set(command.argv)
    assert {client.accepts_only for client in command.all} == {""}


def test_options_follow_the_parameters() -> None:
    parameters = Iperf3Parameters.model_validate(
        {"window": "1Mi", "direction": "Receive", "protocol": "UDP", "bitrate": "500M", "datagramBytes": 1400}
    )
    argv = IPERF3.command(parameters, pair_context(c5="10.0.0.5")).argv
    assert {"--window=1048576", "--reverse", "--udp", "--bitrate=500000000", "--length=1400"} <= set(argv)


def test_a_server_has_a_program_and_a_port_for_each_client_and_accepts_only_that() -> None:
    command = IPERF3.command(Iperf3Parameters(), pair_context(StepKind.SERVE, c0="10.0.0.1", c1="10.0.0.2"))
    assert [(server.argv[2], server.accepts_only) for server in command.all] == [
        (f"--port={serving_port(3, 0)}", "10.0.0.1"),
        (f"--port={serving_port(3, 1)}", "10.0.0.2"),
    ]


def test_a_server_serves_once_it_listens_behind_its_filter() -> None:
    listening = "accepting only 10.0.0.1\n---\nServer listening on 20480 (test #1)\n"
    assert IPERF3.is_serving(Iperf3Parameters(), listening)
    assert not IPERF3.is_serving(Iperf3Parameters(), "Server listening on 20480 (test #1)\n")
    assert not IPERF3.is_serving(Iperf3Parameters(), "accepting only 10.0.0.1\n")


def test_ports_of_pairs_differ_and_stay_in_range() -> None:
    pairs = [(server, client) for server in range(64) for client in range(64)]
    ports = {serving_port(*pair) for pair in pairs}
    assert len(ports) == len(pairs)
    at_one_server = [serving_port(999, client) for client in range(1000)]
    assert len(set(at_one_server)) == 1000
    assert {*ports, *at_one_server} <= set(SERVING_PORTS)


def test_pairing_gives_the_rounds() -> None:
    assert IPERF3.cast_size(Iperf3Parameters(), 3, 0).rounds == 6
    assert IPERF3.cast_size(Iperf3Parameters(pairing=Pairing.ONE_TO_ALL), 3, 2).rounds == 3
    assert IPERF3.cast_size(Iperf3Parameters(pairing=Pairing.ALL_AT_ONCE), 3, 2).rounds == 1


def test_label() -> None:
    assert Iperf3Parameters.model_validate({"streams": 4, "window": "1Mi"}).label() == "iperf3 Send TCP x4 window 1Mi"


@pytest.mark.parametrize(
    ("case", "operation"),
    [
        ("tcp-send", Operation.WRITE),
        ("tcp-receive", Operation.READ),
        ("tcp-4-streams", Operation.WRITE),
        ("udp-send", Operation.WRITE),
        ("udp-receive", Operation.READ),
        ("udp-lossy", Operation.WRITE),
    ],
)
def test_bytes_are_those_that_the_receiver_got(golden: Cases, version: str, case: str, operation: Operation) -> None:
    measurement = golden(case).parse()
    received = document_of(golden(case))["end"]["sum_received"]
    (sample,) = measurement.operations
    (peer,) = measurement.peers
    assert (sample.operation, sample.ios, sample.bytes) == (operation, 0, received["bytes"])
    assert (peer.peer, peer.bytes, peer.seconds) == (1, received["bytes"], received["seconds"])
    assert sample.cells is not None
    assert sum(sample.cells.bytes) == pytest.approx(received["bytes"], rel=1e-12)
    assert min(sample.cells.bytes[:3]) > 0
    assert measurement.runtime / SECOND == pytest.approx(3, abs=0.05)
    assert (measurement.errors, measurement.warnings, measurement.start_is_estimated) == ((), (), False)
    assert measurement.tool_version == f"iperf {version}"


@pytest.mark.parametrize("case", ["tcp-send", "tcp-receive", "udp-send"])
def test_the_start_lies_between_what_the_agent_saw(golden: Cases, case: str) -> None:
    recorded = golden(case)
    measurement = recorded.parse()
    ramp = recorded.timing.ramp_seconds * SECOND
    begin = measurement.started_at - ramp
    assert recorded.output.launched_at <= begin <= recorded.output.launched_at + SECOND // 4
    assert measurement.started_at + measurement.runtime <= recorded.output.finished_at


def test_a_slow_end_makes_the_start_an_estimate(golden: Cases) -> None:
    recorded = golden("tcp-send")
    slow = replace(recorded.output, finished_at=recorded.output.finished_at + SECOND)
    assert recorded.tool.parse(recorded.parameters, recorded.context(), slow).start_is_estimated
    early = replace(recorded.output, finished_at=recorded.output.finished_at - SECOND)
    with pytest.raises(OutputError, match="was the clock set"):
        recorded.tool.parse(recorded.parameters, recorded.context(), early)


def test_a_slow_connection_makes_the_start_an_estimate_unless_its_milliseconds_are_known(
    golden: Cases, version: str
) -> None:
    recorded = golden("tcp-send")
    slow = replace(recorded.output, launched_at=recorded.output.launched_at - 2 * SECOND)
    measurement = recorded.tool.parse(recorded.parameters, recorded.context(), slow)
    assert measurement.start_is_estimated is (version == "3.12")


def test_retransmits_are_those_after_the_ramp(golden: Cases) -> None:
    for case in ("tcp-send", "tcp-4-streams"):
        (peer,) = golden(case).parse().peers
        intervals = [interval["sum"] for interval in document_of(golden(case))["intervals"]]
        assert peer.retransmits == sum(total["retransmits"] for total in intervals if not total["omitted"])
        assert peer.lost_percent is None


@pytest.mark.parametrize("case", ["udp-send", "udp-receive", "udp-lossy"])
def test_what_was_sent_was_received_or_lost(golden: Cases, case: str) -> None:
    """Before 3.14, iperf3 also counts the datagrams that were lost in the ramp."""
    (peer,) = golden(case).parse().peers
    sent = document_of(golden(case))["end"]["sum_sent"]["bytes"]
    assert peer.retransmits is None
    assert peer.lost_percent is not None
    assert sent * (1 - peer.lost_percent / 100) == pytest.approx(peer.bytes, rel=0.01)
    # The link of `udp-lossy` carried two thirds of what was sent.
    assert peer.lost_percent == pytest.approx(35 if case == "udp-lossy" else 0, abs=1)


def test_more_losses_in_the_ramp_than_datagrams_after_it_are_no_damage() -> None:
    recorded = network_golden("iperf3-3.12-udp-lossy")
    (peer,) = recorded.parse(edited(recorded, lambda document: document["end"]["sum"].update(lost_packets=9000))).peers
    assert peer.lost_percent == pytest.approx(35, abs=1)


@pytest.mark.parametrize(("version_of_tool", "threads"), [("3.12", 1), ("3.15", 1), ("3.16", 4), ("3.22", 4)])
def test_the_busier_end_counts_and_threads_depend_on_the_version(
    golden: Cases, version_of_tool: str, threads: int
) -> None:
    def busy(document: dict[str, Any]) -> None:
        document["start"]["version"] = f"iperf {version_of_tool}"
        document["end"]["cpu_utilization_percent"] |= {"host_total": 40.0, "remote_total": 96.0}

    recorded = golden("tcp-4-streams")
    assert recorded.parse(edited(recorded, busy)).thread_percent == 96 / threads


def test_udp_says_which_part_of_its_rate_it_sent(golden: Cases) -> None:
    assert golden("tcp-send").parse().pace is None
    recorded = golden("udp-send")
    assert recorded.parse().pace == pytest.approx(1, abs=0.01)
    assert golden("udp-lossy").parse().pace == pytest.approx(1, abs=0.01)
    faster = replace(recorded, parameters=recorded.parameters.model_copy(update={"bitrate": 20_000_000}))
    assert faster.parse().pace == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("exit_code", [0, 1])
@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("refused", r"unable to connect to server.*: Connection refused"),
        ("server-died", r"unable to write to stream socket: Connection reset by peer|control socket has closed .*"),
    ],
)
def test_an_error_is_one_whatever_the_exit_code(golden: Cases, case: str, message: str, exit_code: int) -> None:
    """Before 3.14, iperf3 exits with 0."""
    recorded = golden(case)
    measurement = replace(recorded, output=replace(recorded.output, exit_code=exit_code)).parse()
    (error,) = measurement.errors
    assert re.fullmatch(message, error)
    assert (measurement.runtime, measurement.operations) == (0, ())


def test_a_killed_client_leaves_nothing(golden: Cases) -> None:
    with pytest.raises(OutputError, match="iperf3 failed with exit code -9"):
        golden("killed").parse()


def test_two_servers_are_two_peers_in_one_series(golden: Cases) -> None:
    recorded = golden("tcp-send")
    both = replace(recorded.output, parallel=(recorded.output,))
    target = PeerTarget(addresses={1: "192.0.2.2", 4: "192.0.2.3"})
    measurement = recorded.tool.parse(recorded.parameters, replace(recorded.context(), target=target), both)
    (single,) = recorded.parse().operations
    (two,) = measurement.operations
    assert [peer.peer for peer in measurement.peers] == [1, 4]
    assert two.bytes == 2 * single.bytes
    assert single.cells is not None
    assert two.cells is not None
    assert two.cells.bytes == pytest.approx([2 * cell for cell in single.cells.bytes])


def test_every_peer_needs_an_output(golden: Cases) -> None:
    recorded = golden("tcp-send")
    target = PeerTarget(addresses={1: "192.0.2.2", 4: "192.0.2.3"})
    with pytest.raises(OutputError, match="1 commands of iperf3 ended for 2 peers"):
        recorded.tool.parse(recorded.parameters, replace(recorded.context(), target=target), recorded.output)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda document: document["intervals"].pop(2), "has nothing from 1.0 to 2.0 s"),
        (lambda document: document["intervals"].__delitem__(slice(1, None)), "has none after the ramp"),
        (lambda document: document["intervals"].reverse(), "omitted ones after the ramp"),
        (lambda document: document["intervals"][1]["sum"].update(bytes=10**9), "the intervals have"),
        (lambda document: document["intervals"][1]["sum"].update(omitted=0), "omitted is not true or false"),
        (lambda document: document["start"]["test_start"].update(num_streams=2), "were not requested"),
        (lambda document: document["start"]["test_start"].update(reverse=1), "were not requested"),
        (lambda document: document["end"].pop("sum_received"), "sum_received is missing"),
        (lambda document: document["end"]["sum_received"].update(seconds=0), "seconds is 0"),
        (lambda document: document["start"].update(version="netperf 2"), "version is unknown"),
        (lambda document: document["end"].clear(), "is missing"),
    ],
)
def test_damage_is_noticed(golden: Cases, edit: Callable[[dict[str, Any]], object], message: str) -> None:
    with pytest.raises(OutputError, match=message):
        golden("tcp-send").parse(edited(golden("tcp-send"), edit))


def test_something_other_than_a_document_is_refused(golden: Cases) -> None:
    for text, words in (
        ("[1]", "is not an object"),
        ("", "is not JSON"),
        ('{"start":{"version":"1","version":"2"}}', "start.version occurs twice with different values"),
    ):
        with pytest.raises(OutputError, match=words):
            golden("tcp-send").parse(text)
    with pytest.raises(OutputError, match="iperf3 failed with exit code 1: parameter error"):
        IPERF3.parse(
            Iperf3Parameters(),
            golden("tcp-send").context(),
            Output(exit_code=1, stdout="", stderr="parameter error\n", files={}),
        )


def silent_from(part: float) -> Callable[[dict[str, Any]], object]:
    """Let nothing arrive after a part of the time, which leaves no gap that the receiver could count."""

    def edit(document: dict[str, Any]) -> None:
        received = document["end"]["sum_received"]
        received["bytes"] = int(received["bytes"] * part)

    return edit


@pytest.mark.parametrize(("part", "lost"), [(1.0, 0.0), (0.97, 0.0), (0.5, 50.0), (0.0, 100.0)])
def test_datagrams_after_the_last_one_that_arrives_are_lost_too(golden: Cases, part: float, lost: float) -> None:
    (peer,) = golden("udp-send").parse(edited(golden("udp-send"), silent_from(part))).peers
    assert peer.lost_percent == pytest.approx(lost, abs=0.1)


def test_a_document_that_is_printed_twice_is_one(golden: Cases) -> None:
    recorded = golden("tcp-send")
    assert recorded.parse(recorded.output.stdout * 2) == recorded.parse()


@pytest.mark.parametrize(("lost", "packets"), [(6200, 4100), (-12, 4100), (1, -1), (None, 1)])
@pytest.mark.parametrize("sent", [True, False])
def test_an_impossible_loss_leaves_the_bytes(
    golden: Cases,
    lost: int | None,
    packets: int,
    sent: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["end"]["sum"].update(lost_packets=lost, packets=packets)
        if not sent:
            document["end"]["sum_sent"]["packets"] = 0

    recorded = golden("udp-receive")
    found = recorded.parse(edited(recorded, edit))
    assert found.operations == recorded.parse().operations
    (peer,) = found.peers
    if sent:
        assert peer.lost_percent == pytest.approx(0, abs=1)
    else:
        assert (peer.lost_percent, len(found.warnings)) == (None, 1)
        assert found.warnings[0].startswith("the loss is unknown: end.sum has ")


@pytest.mark.parametrize(
    "path",
    [("sum_sent", "retransmits"), ("cpu_utilization_percent", "host_total"), ("cpu_utilization_percent",)],
)
@pytest.mark.parametrize("value", [None, -1, float("nan"), "7", 2**64])
def test_only_a_secondary_field_is_unknown_if_it_is_wrong(golden: Cases, path: tuple[str, ...], value: object) -> None:
    def edit(document: dict[str, Any]) -> None:
        holder = document["end"]
        for name in path[:-1]:
            holder = holder[name]
        holder[path[-1]] = value

    recorded = golden("tcp-send")
    found = recorded.parse(edited(recorded, edit))
    assert (found.runtime, found.operations) == (recorded.parse().runtime, recorded.parse().operations)
