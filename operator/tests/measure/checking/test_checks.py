import inspect
import re
from collections import Counter
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from plimsoll.api.names import Verdict
from plimsoll.api.result import Finding
from plimsoll.measure.checks import cluster, documents, hosts, judge, load, outliers, repetitions
from plimsoll.measure.checks.check import (
    MAX_NAMED_CLIENTS,
    Check,
    CheckedValue,
    Evidence,
    evaluate,
    verdict_of,
)
from plimsoll.measure.checks.documents import (
    client_missing,
    clock_offset,
    early_client,
    late_client,
    lost_io,
    low_overlap,
    no_io,
    short_run,
    wide_spread,
)
from plimsoll.measure.checks.judge import CHECKS, TRIAL_CHECKS, markdown_table
from plimsoll.measure.line import curve
from plimsoll.measure.text import number_text, numbered, quote, size_text


def finding(verdict: Verdict) -> Finding:
    return Finding(reason="Any", verdict=verdict, message="")


def test_reasons_are_distinct_and_camel_case() -> None:
    reasons = [check.reason for check in CHECKS]
    # Links have rates and round trips, and a search and the trials of a point drift alike. Clients and trials are
    # compared by latencies as by rates.
    shared = [
        check.reason
        for check in (
            outliers.clients_uneven,
            outliers.LINK_OUTLIER,
            repetitions.DRIFTING,
            repetitions.TRIALS_APART,
            repetitions.SCATTERED,
        )
    ]
    assert [reason for reason, count in Counter(reasons).items() if count > 1] == shared
    assert all(reason.isalnum() and reason[0].isupper() for reason in reasons)


def test_a_reason_leads_to_its_check_and_to_what_comes_before_and_after_it() -> None:
    """As "Follow a reason" of CONTRIBUTING.md says."""
    checks = {check.reason: check.values_of.__name__ for check in reversed(TRIAL_CHECKS)}
    assert {reason: re.sub(r"(?<!^)(?=[A-Z])", "_", reason).lower() for reason in checks} == checks
    guide = (Path(__file__).parents[4] / "CONTRIBUTING.md").read_text().partition("## Follow a reason")[2]
    steps = re.findall(r"`((?:line\.)?[a-z]+)\.([A-Za-z_]+)`", guide.partition("\n## ")[0])
    steps += re.findall(r"`([a-z]+)\.([a-z_]+)`", inspect.getsource(Evidence))
    assert len(steps) > 15
    packages = ("plimsoll.measure", "plimsoll.measure.checks", "plimsoll.measure.line")
    for module, name in steps:
        place = next(f"{package}.{module}" for package in packages if find_spec(f"{package}.{module}"))
        assert hasattr(import_module(place), name), (module, name)


def test_every_check_has_its_place_in_the_order() -> None:
    modules = (documents, hosts, load, outliers, cluster, repetitions, judge, curve)
    defined = [value for module in modules for value in vars(module).values() if isinstance(value, Check)]
    assert {check.reason for check in CHECKS} == {check.reason for check in defined}


@pytest.mark.parametrize(
    ("cause", "effect"),
    [
        ("ToolFailed", "ClientMissing"),
        ("ClientMissing", "LowOverlap"),
        ("LateClient", "LowOverlap"),
        ("ClockOffset", "ClientStalled"),
        ("ClientThrottled", "ClientCpuSaturated"),
        ("ClientThrottled", "ClientStalled"),
        ("NodeCpuSaturated", "ClientsUneven"),
        ("ForeignDeviceLoad", "Stalled"),
        ("Stalled", "ClientStalled"),
        ("ClientStalled", "NotSteady"),
        ("ClientStalled", "ClientsUneven"),
        ("ClusterUnhealthy", "OsdOutlier"),
        ("OsdOutlier", "ClientsUneven"),
        ("LinkOutlier", "NoTrialCounts"),
        ("NoTrialCounts", "Unreplicated"),
        ("VersionsChanged", "Scattered"),
        ("ClientsChanged", "Scattered"),
    ],
)
def test_causes_come_before_their_effects(cause: str, effect: str) -> None:
    reasons = [check.reason for check in CHECKS]
    assert reasons.index(cause) < reasons.index(effect)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.reason)
def test_every_check_has_a_limit_and_a_remedy_and_invalid_is_farther_out(check: Check) -> None:
    limits = [limit for limit in (check.suspect, check.invalid) if limit is not None]
    assert limits
    assert check.remedy
    assert limits == sorted(limits, reverse=check.is_low_bad)
    assert all(check.verdict(limit) is not check.verdict(limit + 0.001) for limit in limits) or (check.is_low_bad)


@pytest.mark.parametrize(
    ("check", "value", "verdict"),
    [
        (late_client, 1, Verdict.VALID),
        (late_client, 1.001, Verdict.SUSPECT),
        (late_client, 5, Verdict.SUSPECT),
        (late_client, 5.001, Verdict.INVALID),
        (late_client, -3, Verdict.VALID),
        (early_client, 1, Verdict.VALID),
        (early_client, 1.001, Verdict.SUSPECT),
        (early_client, 5, Verdict.SUSPECT),
        (early_client, 5.001, Verdict.INVALID),
        (early_client, -3, Verdict.VALID),
        (short_run, 1, Verdict.VALID),
        (short_run, 10.1, Verdict.INVALID),
        (low_overlap, 0.98, Verdict.VALID),
        (low_overlap, 0.9799, Verdict.SUSPECT),
        (low_overlap, 0.90, Verdict.SUSPECT),
        (low_overlap, 0.8999, Verdict.INVALID),
        (wide_spread, 1000, Verdict.SUSPECT),
        (clock_offset, 10.1, Verdict.SUSPECT),
        (clock_offset, 50.1, Verdict.INVALID),
        (lost_io, 0, Verdict.VALID),
        (lost_io, 0.01, Verdict.SUSPECT),
        (lost_io, 0.0101, Verdict.INVALID),
        (no_io, 1, Verdict.VALID),
        (no_io, 0, Verdict.INVALID),
    ],
    ids=lambda value: getattr(value, "reason", str(value)),
)
def test_limits(check: Check, value: float, verdict: Verdict) -> None:
    assert check.verdict(value) is verdict


def test_worst_verdict_wins_and_nothing_is_valid() -> None:
    assert verdict_of([]) is Verdict.VALID
    assert verdict_of(map(finding, (Verdict.SUSPECT, Verdict.INVALID, Verdict.SUSPECT))) is Verdict.INVALID
    assert verdict_of(map(finding, (Verdict.VALID, Verdict.SUSPECT))) is Verdict.SUSPECT


def test_finding_has_value_limit_remedy_and_clients() -> None:
    observations = [
        CheckedValue(clients=(client,), value=value) for client, value in ((0, 0.5), (3, 2.25), (4, 1.5), (7, 6.5))
    ]
    (result,) = evaluate(late_client, observations)
    assert (result.reason, result.verdict, result.clients) == ("LateClient", Verdict.INVALID, (3, 4, 7))
    assert result.message == (
        "client 7: delay of the start beyond the planned time, less the longest operation and the tool's step of the "
        "ramp: 6.5 s (limit 5 s); also clients 3 and 4; lengthen the ramp, and look for other load on the client's node"
    )


def test_a_value_is_never_rounded_to_its_limit() -> None:
    texts = [late_client.with_unit(value) for value in (0.891135, 1.001, 1, 5.0001, 6.5)]
    assert texts == ["0.891 s", "1.001 s", "1 s", "5.0001 s", "6.5 s"]


def test_what_holds_gives_no_finding() -> None:
    assert evaluate(late_client, [CheckedValue(clients=(1,), value=1)]) == ()
    assert evaluate(late_client, []) == ()


def test_many_clients_are_named_within_bounds() -> None:
    (result,) = evaluate(client_missing, [CheckedValue(clients=(n,), value=1) for n in range(1000)])
    assert len(result.clients) == MAX_NAMED_CLIENTS
    assert "clients 1, 2, 3, 4, 5 and 994 more" in result.message
    assert len(result.message) < 300


def test_a_check_has_no_limit_for_a_verdict_it_never_gives() -> None:
    with pytest.raises(ValueError, match="WideSpread is never Invalid"):
        wide_spread.limit(Verdict.INVALID)


def test_table_lists_every_check_with_its_limits() -> None:
    lines = markdown_table().splitlines()
    assert len(lines) == len(CHECKS) + 2
    assert {line.count("|") for line in lines} == {7}
    assert any(line.startswith("| `LowOverlap` |") and "| below 0.98 | below 0.9 |" in line for line in lines)
    assert any(line.startswith("| `WideSpread` |") and "| above 1 s | - |" in line for line in lines)


def test_wording() -> None:
    assert numbered("client", []) == ""
    assert numbered("client", [3]) == "client 3"
    assert numbered("client", [2, 0, 1]) == "clients 0, 1 and 2"
    assert numbered("pass", range(9)) == "passes 0, 1, 2, 3, 4 and 4 more"
    assert [number_text(value) for value in (0.98, 2.5, 12_345_678, 1)] == ["0.98", "2.5", "12345678", "1"]
    assert [number_text(value) for value in (0.891135, 999.4, 999.6, 0.0)] == ["0.891", "999", "1000", "0"]
    assert [size_text(size) for size in (0, 1000, 1536, 3 * 2**40)] == ["0 bytes", "1000 bytes", "1.5 KiB", "3 TiB"]
    assert quote("  a\n b\t\x00c ") == "a b ?c"
    assert quote("x" * 10**6, 10) == "x" * 9 + "…"
