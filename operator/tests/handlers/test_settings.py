"""The operator's configuration, read from its environment."""

import kopf
import pytest

from plimsoll.api.storage import NamespacedName
from plimsoll.lifecycle.run import Limits, NetworkPolicies, Settings
from plimsoll.operator.main import settings_of

IMAGE = {"PLIMSOLL_RUNNER_IMAGE": "runner:1"}
POLICIES = "PLIMSOLL_NETWORK_POLICIES"
ROOK = NamespacedName(namespace="rook-ceph", name="main")


def test_nobody_may_use_anything_by_default() -> None:
    settings = settings_of(IMAGE)
    assert settings.teardown_namespace == "plimsoll-teardown"
    assert not settings.osd_bench
    assert not settings.allows(ROOK, "bench")


def test_what_is_allowed_is_allowed() -> None:
    allowed = {"PLIMSOLL_ROOK_CLUSTERS": '{"rook-ceph/main": ["bench"], "other/c": ["*"]}'}
    settings = settings_of(IMAGE | allowed | {"PLIMSOLL_OSD_BENCH": "true", "PLIMSOLL_TEARDOWN_NAMESPACE": "here"})
    assert settings.allows(ROOK, "bench")
    assert not settings.allows(ROOK, "default")
    assert settings.allows(NamespacedName(namespace="other", name="c"), "anything")
    assert settings.osd_bench
    assert settings.teardown_namespace == "here"


def test_only_listed_options_may_be_set() -> None:
    assert not settings_of(IMAGE).allows_option(ROOK, "osd_mclock_profile")
    settings = settings_of(IMAGE | {"PLIMSOLL_ROOK_OPTIONS": '{"rook-ceph/main": ["osd_mclock_profile"]}'})
    assert settings.allows_option(ROOK, "osd_mclock_profile")
    assert not settings.allows_option(ROOK, "osd_memory_target")
    assert not settings.allows_option(NamespacedName(namespace="other", name="c"), "osd_mclock_profile")


def test_nobody_scrapes_conductors_by_default() -> None:
    for text in ("", "{}", '{"conductorMetricsFrom": []}'):
        assert settings_of(IMAGE | {POLICIES: text}).network_policies == NetworkPolicies()


def test_whoever_is_named_may_scrape_conductors() -> None:
    peers = '[{"namespaceSelector": {"matchLabels": {"a": "b"}}}, {"ipBlock": {"cidr": "10.0.0.0/8"}}]'
    found = settings_of(IMAGE | {POLICIES: f'{{"conductorMetricsFrom": {peers}}}'}).network_policies
    scrapers = ({"namespaceSelector": {"matchLabels": {"a": "b"}}}, {"ipBlock": {"cidr": "10.0.0.0/8"}})
    assert found == NetworkPolicies(conductor_metrics_from=scrapers)


def test_network_policies_follow_the_network_plugin() -> None:
    text = '{"enabled": false, "dnsPorts": [5353], "cephNetworks": ["192.0.2.0/24", "2001:db8::/64"]}'
    found = settings_of(IMAGE | {POLICIES: text}).network_policies
    networks = ("192.0.2.0/24", "2001:db8::/64")
    assert found == NetworkPolicies(enabled=False, dns_ports=(5353,), ceph_networks=networks)


def test_a_switch_is_true_or_false() -> None:
    assert not settings_of(IMAGE | {"PLIMSOLL_OSD_BENCH": "False"}).osd_bench
    assert settings_of(IMAGE | {"PLIMSOLL_PLATFORM_ASSIGNS_USER": "true"}).platform_assigns_user
    with pytest.raises(kopf.PermanentError, match="PLIMSOLL_OSD_BENCH is 'yes': write true or false"):
        settings_of(IMAGE | {"PLIMSOLL_OSD_BENCH": "yes"})


def test_an_image_is_needed() -> None:
    with pytest.raises(kopf.PermanentError, match="PLIMSOLL_RUNNER_IMAGE is not set"):
        settings_of({})


def test_the_hold_is_a_number_of_seconds() -> None:
    assert settings_of(IMAGE).hold_seconds == Settings(runner_image="runner:1").hold_seconds
    assert settings_of(IMAGE | {"PLIMSOLL_HOLD_SECONDS": " 120 "}).hold_seconds == 120
    for text in ("59", "1h", "-1", "1.5"):
        with pytest.raises(kopf.PermanentError, match=f"PLIMSOLL_HOLD_SECONDS is '{text}': write whole seconds, 60"):
            settings_of(IMAGE | {"PLIMSOLL_HOLD_SECONDS": text})


def test_no_run_drops_caches_by_default() -> None:
    settings = settings_of(IMAGE)
    assert settings.caches is None
    assert "caches.enabled" in settings.caches_problem("bench")


def test_namespaces_that_are_listed_may_drop_caches() -> None:
    text = '{"service": "plimsoll-caches/helpers", "namespaces": ["bench"]}'
    settings = settings_of(IMAGE | {"PLIMSOLL_CACHES": text})
    assert settings.caches is not None
    assert settings.caches.service == NamespacedName(namespace="plimsoll-caches", name="helpers")
    assert not settings.caches_problem("bench")
    assert "namespace lab may not drop caches" in settings.caches_problem("lab")
    assert not settings_of(IMAGE | {"PLIMSOLL_CACHES": text.replace("bench", "*")}).caches_problem("lab")


def test_no_run_uses_kube_burner_by_default() -> None:
    settings = settings_of(IMAGE)
    assert settings.burning is None
    assert "kubeBurner.enabled" in settings.burning_problem("bench")


BURNER = (
    '{"service": "plimsoll-kube-burner/helper", "namespaces": ["bench"], "maxObjects": 50, "maxQps": 5, '
    '"maxVolumeSize": "1Gi"}'
)


def test_namespaces_that_are_listed_may_use_kube_burner() -> None:
    settings = settings_of(IMAGE | {"PLIMSOLL_KUBE_BURNER": BURNER})
    assert settings.burning is not None
    assert settings.burning.service == NamespacedName(namespace="plimsoll-kube-burner", name="helper")
    assert (settings.burning.max_objects, settings.burning.max_qps) == (50, 5)
    assert settings.burning.max_volume_size == 2**30
    assert not settings.burning_problem("bench")
    assert "namespace lab may not use kube-burner" in settings.burning_problem("lab")
    assert not settings_of(IMAGE | {"PLIMSOLL_KUBE_BURNER": BURNER.replace("bench", "*")}).burning_problem("lab")


def test_nothing_limits_runs_by_default() -> None:
    for empty in ({}, {"PLIMSOLL_LIMITS": "{}", "PLIMSOLL_MAINTENANCE_WINDOWS": "[]"}):
        settings = settings_of(IMAGE | empty)
        assert settings.limits == Limits()
        assert settings.windows == ()


def test_defaults_of_pods_are_read() -> None:
    assert settings_of(IMAGE).pod_defaults == settings_of(IMAGE | {"PLIMSOLL_POD_DEFAULTS": "{}"}).pod_defaults
    text = '{"nodeSelector": {"pool": "bench"}, "priorityClassName": "", "affinity": {}, "runtimeClassName": "kata"}'
    defaults = settings_of(IMAGE | {"PLIMSOLL_POD_DEFAULTS": text}).pod_defaults
    assert (defaults.node_selector, defaults.runtime_class_name) == ({"pool": "bench"}, "kata")


def test_limits_and_windows_are_read() -> None:
    limits = '{"maxClients": 4, "maxVolumeSize": "10Gi", "maxWrittenBytes": "2Ti"}'
    windows = '[{"days": ["Sat"], "from": "22:00", "to": "06:00", "timeZone": "Europe/Berlin"}]'
    settings = settings_of(IMAGE | {"PLIMSOLL_LIMITS": limits, "PLIMSOLL_MAINTENANCE_WINDOWS": windows})
    assert settings.limits == Limits(max_clients=4, max_volume_size=10 * 2**30, max_written_bytes=2 * 2**40)
    (window,) = settings.windows
    assert (window.days, window.begin, window.end, window.time_zone) == (("Sat",), "22:00", "06:00", "Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[{"from": "22:00", "to": "22:00"}]', r"MAINTENANCE_WINDOWS\[0\]: .*from and to are both 22:00"),
        ('[{"from": "1:00", "to": "2:00", "timeZone": "Mars"}]', r"\[0\]\['from'\]"),
        ('[{"from": "01:00", "to": "02:00", "timeZone": "Mars"}]', r"\[0\]\['timeZone'\]: .*is not a known time zone"),
    ],
)
def test_a_window_that_cannot_be_meant_is_named(text: str, says: str) -> None:
    with pytest.raises(kopf.PermanentError, match=says):
        settings_of(IMAGE | {"PLIMSOLL_MAINTENANCE_WINDOWS": text})


@pytest.mark.parametrize(
    ("variable", "value", "texts"),
    [
        (
            "PLIMSOLL_LIMITS",
            "limits",
            ["[]", '{"maxClients": 0}', '{"maxVolumeSize": "big"}', '{"maxPods": 1}'],
        ),
        (
            "PLIMSOLL_POD_DEFAULTS",
            "podDefaults",
            ["[]", '{"hostNetwork": true}', '{"labels": {"plimsoll.dev/run-uid": "x"}}'],
        ),
        ("PLIMSOLL_MAINTENANCE_WINDOWS", "maintenanceWindows", ["{}", '[{"from": "22:00"}]']),
        (
            "PLIMSOLL_ROOK_CLUSTERS",
            "rook.clusters",
            ["rook-ceph/main", "[]", '{"main": ["bench"]}', '{"rook-ceph/main": "bench"}', '{"a/b": [1]}'],
        ),
        (
            "PLIMSOLL_ROOK_OPTIONS",
            "rook.options",
            ["[]", '{"rook-ceph/main": "osd_max_backfills"}', '{"a/b": ["osd max"]}'],
        ),
        (
            POLICIES,
            "networkPolicies",
            [
                "[]",
                '{"dnsPorts": []}',
                '{"dnsPorts": [0]}',
                '{"dnsPorts": ["dns"]}',
                '{"cephNetworks": ["192.0.2.1/24"]}',
                '{"cephNetworks": ["public"]}',
                '{"conductorMetricsFrom": [{}]}',
                '{"conductorMetricsFrom": [{"namespace": {}}]}',
                '{"ports": [53]}',
            ],
        ),
        (
            "PLIMSOLL_CACHES",
            "caches",
            ["[]", "{}", '{"service": "helpers", "namespaces": []}', '{"service": "a/b", "namespaces": "bench"}'],
        ),
        (
            "PLIMSOLL_KUBE_BURNER",
            "kubeBurner",
            ["[]", "{}", BURNER.replace("50", "0"), BURNER.replace("1Gi", "big"), BURNER.replace(', "maxQps": 5', "")],
        ),
    ],
)
def test_a_variable_that_cannot_be_read_is_reported_with_the_value_of_the_chart(
    variable: str, value: str, texts: list[str]
) -> None:
    for text in ("[", *texts):
        with pytest.raises(kopf.PermanentError, match=f"{variable}.*: .*; correct the chart's value {value}$"):
            settings_of(IMAGE | {variable: text})
