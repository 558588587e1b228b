from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.environment import Environment
from plimsoll.api.names import Layer, Operation, Verdict
from plimsoll.api.result import BenchmarkResult
from plimsoll.measure.layers import LayerRow, layers, osd_count, too_high
from plimsoll.tools.registry import LAYERS
from support.results import ALL_LAYERS, READ, WRITE, layer_result, osds

MEGABYTE = 10**6


@pytest.mark.parametrize(
    ("clients", "write_rate", "replicas", "read", "write"),
    [(8, 30, 1, 576, 240), (8, 62.5, 1, 576, 500), (2, 62.5, 1, 222, 222), (8, 30, 3, 576, 80)],
    ids=["journal on the disk", "journal in memory", "few clients", "three replicas"],
)
def test_limits_of_the_study_that_the_formula_is_from(
    clients: int, write_rate: float, replicas: int, read: float, write: float
) -> None:
    """Gudu et al., table III: 8 OSDs with disks of 72 MB/s behind clients of 111 MB/s each."""
    rados = layer_result("r-0", "radosBench", {READ: (1, 1), WRITE: (1, 1)})
    found = layers(
        [
            layer_result("o-0", "osdBench", {WRITE: (1, 1)}, osds=osds(8, round(write_rate * MEGABYTE), 1)),
            rados.model_copy(update={"spec": rados.spec.model_copy(update={"clients": clients})}),
        ],
        LAYERS,
        write_amplification=replicas,
        network_rate=111 * MEGABYTE,
        devices=[layer_result("d-0", "fio", {READ: (72 * MEGABYTE, 1)})],
    )
    limits = [limited(found, Layer.RADOS, operation)[0] for operation in (READ, WRITE)]
    assert limits == [read * MEGABYTE, write * MEGABYTE]


def row(found: tuple[LayerRow, ...], layer: Layer, operation: Operation) -> LayerRow:
    (only,) = (one for one in found if (one.layer, one.operation) == (layer, operation))
    return only


def limited(found: tuple[LayerRow, ...], layer: Layer, operation: Operation) -> tuple[float | None, Layer | None]:
    best = row(found, layer, operation).bytes_per_second
    assert best is not None
    return best.limit, best.limited_by


def test_each_layer_is_compared_with_the_one_below() -> None:
    found = layers(ALL_LAYERS, LAYERS, write_amplification=3)
    assert [(one.layer, one.operation) for one in found] == [
        (Layer.OSD, WRITE),
        (Layer.RADOS, READ),
        (Layer.RADOS, WRITE),
        (Layer.RBD, READ),
        (Layer.RBD, WRITE),
    ]
    rados = row(found, Layer.RADOS, WRITE)
    assert rados.bytes_per_second is not None
    assert rados.iops is not None
    assert (rados.bytes_per_second.value, rados.bytes_per_second.point) == (240, "r-1")
    assert (rados.bytes_per_second.limit, rados.bytes_per_second.efficiency) == (300, 0.8)
    assert (rados.iops.value, rados.iops.point, rados.iops.limit) == (15, "r-0", 3000)
    rbd = row(found, Layer.RBD, READ)
    assert rbd.bytes_per_second is not None
    assert (rbd.bytes_per_second.value, rbd.bytes_per_second.limit, rbd.bytes_per_second.efficiency) == (250, 500, 0.5)


def test_what_was_not_measured_is_no_limit() -> None:
    rados = row(layers(ALL_LAYERS, LAYERS, write_amplification=3), Layer.RADOS, READ).bytes_per_second
    assert rados is not None
    assert (rados.limit, rados.efficiency) == (None, None)
    assert limited(layers(ALL_LAYERS[5:], LAYERS, write_amplification=3), Layer.RBD, WRITE) == (None, None)


def test_nothing_exceeds_the_network_of_the_clients() -> None:
    found = layers(ALL_LAYERS, LAYERS, write_amplification=3, network_rate=200)
    limits_ = {
        (one.layer, one.operation): one.bytes_per_second.limit for one in found if one.bytes_per_second is not None
    }
    # One client each: of 300 that the OSDs take, and 500 and 240 that RADOS does, the network carries 200.
    assert limits_[Layer.RADOS, WRITE] == limits_[Layer.RADOS, READ] == limits_[Layer.RBD, READ] == 200
    assert limits_[Layer.RBD, WRITE] == 200
    rados = row(found, Layer.RADOS, WRITE).iops
    assert rados is not None
    assert rados.limit == 3000


def test_without_an_amplification_osds_limit_nothing() -> None:
    assert limited(layers(ALL_LAYERS, LAYERS, write_amplification=None), Layer.RADOS, WRITE) == (None, None)


def test_dd_and_ioping_count_as_the_layer_of_their_volume() -> None:
    """A rate without a window is one like any other."""
    on_image = layer_result("dd-000", "dd", {Operation.READ: (500.0, 5.0)})
    environment = Environment(volume_file_system="ext4")
    status = on_image.status.model_copy(update={"environment": environment})
    on_files = layer_result("pings-000", "ioping", {Operation.READ: (400.0, 4.0)}).model_copy(update={"status": status})
    found = layers([on_image, on_files], LAYERS, write_amplification=3)
    assert [(one.layer, one.operation) for one in found] == [(Layer.RBD, READ), (Layer.FILE_SYSTEM, READ)]


@pytest.mark.parametrize("reason", ["CacheSized", "PhasesApart"])
def test_rates_that_may_be_too_high_set_no_layer(reason: str) -> None:
    cached = layer_result("d-0", "dd", {READ: (10**9, 10**6)}, verdict=Verdict.SUSPECT, reason=reason)
    assert layers([*ALL_LAYERS, cached], LAYERS, write_amplification=3) == layers(
        ALL_LAYERS, LAYERS, write_amplification=3
    )
    assert layers(ALL_LAYERS, LAYERS, write_amplification=3, devices=[cached]) == layers(
        ALL_LAYERS, LAYERS, write_amplification=3
    )
    assert too_high([*ALL_LAYERS, cached]) == ("d-0",)
    suspect = layer_result("d-0", "dd", {READ: (10**9, 10**6)}, verdict=Verdict.SUSPECT, reason="RuntimeTooShort")
    assert (
        row(layers([*ALL_LAYERS, suspect], LAYERS, write_amplification=3), Layer.RBD, READ).bytes_per_second is not None
    )
    assert too_high([*ALL_LAYERS, suspect]) == ()


def test_no_results_no_layers() -> None:
    assert layers([], LAYERS, write_amplification=3) == ()
    assert layers([layer_result("d-0", "another", {READ: (1, 1)})], LAYERS, write_amplification=3) == ()


DEVICES = [
    layer_result("d-0", "fio", {READ: (120, 40), WRITE: (110, 20)}),
    layer_result("d-1", "fio", {READ: (60, 900)}),
]


def test_devices_limit_the_osds_and_what_clients_read() -> None:
    found = layers(ALL_LAYERS, LAYERS, write_amplification=3, devices=DEVICES)
    device = row(found, Layer.DEVICE, READ)
    assert device.bytes_per_second is not None
    assert device.iops is not None
    # Three OSDs, so three times the best of one device.
    assert (device.bytes_per_second.value, device.iops.value) == (360, 2700)
    assert limited(found, Layer.OSD, WRITE) == (330, Layer.DEVICE)
    assert limited(found, Layer.RADOS, READ) == (360, Layer.DEVICE)
    assert limited(found, Layer.RADOS, WRITE) == (300, Layer.OSD)
    assert limited(found, Layer.RBD, READ) == (500, Layer.RADOS)


def test_devices_limit_writes_where_osds_were_not_measured() -> None:
    found = layers([of_ceph(one, osds=4) for one in ALL_LAYERS[2:]], LAYERS, write_amplification=2, devices=DEVICES)
    assert limited(found, Layer.RADOS, WRITE) == (4 * 110 / 2, Layer.DEVICE)


def test_devices_of_an_unknown_number_of_osds_limit_nothing() -> None:
    found = layers(ALL_LAYERS[2:], LAYERS, write_amplification=2, devices=DEVICES)
    assert limited(found, Layer.RADOS, WRITE) == (None, None)


def test_the_rate_of_several_devices_is_that_of_as_many_as_there_are_osds() -> None:
    shared = layer_result("d-0", "fio", {WRITE: (600, 60)})
    six = shared.model_copy(update={"spec": shared.spec.model_copy(update={"clients": 6})})
    device = row(layers(ALL_LAYERS, LAYERS, write_amplification=3, devices=[six]), Layer.DEVICE, WRITE)
    assert device.bytes_per_second is not None
    assert device.bytes_per_second.value == pytest.approx(300)


def test_an_invalid_measurement_of_devices_counts_as_none() -> None:
    bad = [layer_result("d-0", "fio", {WRITE: (1, 1)}, verdict=Verdict.INVALID)]
    assert layers(ALL_LAYERS, LAYERS, write_amplification=3, devices=bad) == layers(
        ALL_LAYERS, LAYERS, write_amplification=3
    )


def test_files_are_a_layer_above_images_and_above_rados() -> None:
    files = layer_result("s-0", "fio", {READ: (90, 9)})
    environment = Environment.model_validate({"volumeFileSystem": "ext4"})
    files = files.model_copy(update={"status": files.status.model_copy(update={"environment": environment})})
    assert limited(layers([*ALL_LAYERS, files], LAYERS, write_amplification=3), Layer.FILE_SYSTEM, READ) == (
        250,
        Layer.RBD,
    )
    without_images = [one for one in ALL_LAYERS if one.spec.tool != "fio"]
    found = layers([*without_images, files], LAYERS, write_amplification=3)
    assert limited(found, Layer.FILE_SYSTEM, READ) == (500, Layer.RADOS)


def test_the_network_is_named_where_it_is_the_limit() -> None:
    found = layers(ALL_LAYERS, LAYERS, write_amplification=3, network_rate=200)
    assert limited(found, Layer.RADOS, WRITE) == (200, Layer.NETWORK)
    assert limited(layers(ALL_LAYERS, LAYERS, write_amplification=3, network_rate=10**9), Layer.RADOS, WRITE) == (
        300,
        Layer.OSD,
    )


def test_only_osds_of_the_class_of_the_pool_count() -> None:
    environment = Environment.model_validate(
        {
            "ceph": {"osds": {"count": 12, "up": 11, "deviceClasses": {"hdd": 9, "ssd": 3}}},
            "pool": {"deviceClass": "ssd"},
        }
    )
    one = ALL_LAYERS[2].model_copy(
        update={"status": ALL_LAYERS[2].status.model_copy(update={"environment": environment})}
    )
    assert osd_count([one]) == 3
    assert environment.pool is not None
    rooted = environment.model_copy(update={"pool": environment.pool.model_copy(update={"crush_root": "fast"})})
    other = one.model_copy(update={"status": one.status.model_copy(update={"environment": rooted})})
    assert osd_count([other]) is None, "how many OSDs that root has is not known"
    assert osd_count([of_ceph(ALL_LAYERS[2], osds=4)]) == 4
    assert (osd_count(ALL_LAYERS), osd_count(ALL_LAYERS[2:])) == (3, None)


def of_ceph(found: BenchmarkResult, *, osds: int) -> BenchmarkResult:
    environment = Environment.model_validate({"ceph": {"osds": {"count": osds}}})
    return found.model_copy(update={"status": found.status.model_copy(update={"environment": environment})})


NETWORK = {**LAYERS, "pairs": Layer.NETWORK}
LINKS = [layer_result("n-0", "pairs", {WRITE: (60, 0)}), layer_result("n-1", "pairs", {WRITE: (200, 0)})]


def at_once(found: BenchmarkResult) -> int:
    """In the first point one client sends at a time, in the second one four do."""
    return {"n-0": 1, "n-1": 4}[found.spec.point]


def test_the_network_is_a_layer_between_osds_and_rados_and_limits_what_is_above_it() -> None:
    found = layers([*ALL_LAYERS, *LINKS], NETWORK, write_amplification=3, at_once=at_once)
    assert [(one.layer, one.operation) for one in found[:3]] == [
        (Layer.OSD, WRITE),
        (Layer.NETWORK, WRITE),
        (Layer.RADOS, READ),
    ]
    network = row(found, Layer.NETWORK, WRITE)
    assert network.iops is None
    assert network.bytes_per_second is not None
    assert (network.bytes_per_second.value, network.bytes_per_second.limit) == (200, None)
    assert limited(found, Layer.RADOS, WRITE) == (60, Layer.NETWORK), "the best client of the best point"
    assert limited(found, Layer.RADOS, READ) == (60, Layer.NETWORK), "like the other direction"


def test_each_direction_of_the_network_limits_its_own() -> None:
    both = [*LINKS, layer_result("n-2", "pairs", {READ: (70, 0)})]
    found = layers([*ALL_LAYERS, *both], NETWORK, write_amplification=3, at_once=lambda _: 1)
    assert limited(found, Layer.RADOS, WRITE) == (200, Layer.NETWORK)
    assert limited(found, Layer.RADOS, READ) == (70, Layer.NETWORK)


def network(*measured: tuple[str, Mapping[Operation, float]]) -> list[BenchmarkResult]:
    """Return results of RADOS and of tools of the network with these bytes per second."""
    links = [
        layer_result(f"n-{number}", tool, {kind: (rate, 0) for kind, rate in rates.items()})
        for number, (tool, rates) in enumerate(measured)
    ]
    return [*ALL_LAYERS[2:], *links]


@pytest.mark.parametrize(
    ("measured", "read", "write"),
    [
        # KIT's suite: iperf3 only sends, netcat only receives, and shows itself.
        ([("iperf3", {WRITE: 111}), ("netcat", {READ: 60})], 111, 111),
        ([("iperf3", {WRITE: 111}), ("netcat", {READ: 105})], 111, 111),
        ([("iperf3", {WRITE: 60}), ("netcat", {READ: 111})], 111, 111),
        # The directions of the network differ, as one tool shows.
        ([("iperf3", {WRITE: 111, READ: 50})], 50, 111),
        ([("iperf3", {WRITE: 111, READ: 50}), ("netcat", {READ: 40})], 50, 111),
        ([("iperf3", {WRITE: 111, READ: 50}), ("netcat", {READ: 55})], 55, 111),
        ([("iperf3", {WRITE: 50, READ: 111}), ("netcat", {READ: 112})], 112, 50),
        # A tool that shows itself in both directions.
        ([("iperf3", {WRITE: 20, READ: 20}), ("netcat", {READ: 111})], 111, 111),
    ],
)
def test_a_slow_tool_of_the_network_is_no_limit(
    measured: Sequence[tuple[str, Mapping[Operation, float]]], read: float, write: float
) -> None:
    found = layers(network(*measured), LAYERS, write_amplification=None)
    assert limited(found, Layer.RADOS, READ) == (read, Layer.NETWORK)
    assert limited(found, Layer.RADOS, WRITE) == (write, Layer.NETWORK)


def test_the_network_has_a_row_for_what_a_slow_tool_shows() -> None:
    found = layers(network(("iperf3", {WRITE: 111}), ("netcat", {READ: 60})), LAYERS, write_amplification=None)
    rates = [row(found, Layer.NETWORK, kind).bytes_per_second for kind in (READ, WRITE)]
    assert [one and one.value for one in rates] == [60, 111]


LINK_RATES = st.lists(
    st.tuples(st.sampled_from(["iperf3", "netcat"]), st.sampled_from([READ, WRITE]), st.integers(1, 10**9)), min_size=1
)


@given(measured=LINK_RATES)
def test_a_client_is_limited_by_what_some_tool_of_the_network_showed(
    measured: list[tuple[str, Operation, int]],
) -> None:
    """In either direction by no less than what was shown in it, and by no more than in any."""
    links = network(*((tool, {kind: rate}) for tool, kind, rate in measured))
    found = layers(links, LAYERS, write_amplification=None)
    for operation in (READ, WRITE):
        limit, _ = limited(found, Layer.RADOS, operation)
        assert limit in {rate for _, _, rate in measured}
        assert limit >= max((rate for _, kind, rate in measured if kind is operation), default=0)


def test_osds_count_with_the_mean_of_their_trials_as_all_layers_do() -> None:
    one = ALL_LAYERS[0]
    trials = [
        one.status.trials[0].model_copy(update={"pass_number": number, "osds": osds(3, volume, iops)})
        for number, (volume, iops) in enumerate([(100, 10), (200, 30)])
    ]
    several = one.model_copy(update={"status": one.status.model_copy(update={"trials": tuple(trials)})})
    found = row(layers([several], LAYERS, write_amplification=3), Layer.OSD, WRITE)
    assert [best and best.value for best in (found.bytes_per_second, found.iops)] == [450, 60]


def test_a_measured_network_is_compared_with_the_stated_one_and_replaces_it() -> None:
    found = layers([*ALL_LAYERS, *LINKS], NETWORK, write_amplification=3, network_rate=80, at_once=at_once)
    network = row(found, Layer.NETWORK, WRITE).bytes_per_second
    assert network is not None
    assert (network.limit, network.limited_by, network.efficiency) == (4 * 80, Layer.NETWORK, 200 / 320)
    assert limited(found, Layer.RADOS, WRITE) == (60, Layer.NETWORK)


def test_an_invalid_measurement_of_the_network_limits_nothing() -> None:
    bad = layer_result("n-0", "pairs", {WRITE: (1, 0)}, verdict=Verdict.INVALID)
    found = layers([*ALL_LAYERS, bad], NETWORK, write_amplification=3, at_once=at_once)
    assert found == layers(ALL_LAYERS, LAYERS, write_amplification=3)
