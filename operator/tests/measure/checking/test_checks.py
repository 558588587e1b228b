import pytest

from plimsoll.api.names import Verdict
from plimsoll.api.result import Finding
from plimsoll.measure.checks import registry
from plimsoll.measure.checks.check import (
    MAX_NAMED_CLIENTS,
    Check,
    CheckedValue,
    Direction,
    clients_text,
    evaluate,
    number_text,
    passes_text,
    quote,
    size_text,
    verdict_of,
)
from plimsoll.measure.checks.registry import (
    CHECKS,
    markdown_table,
)


def finding(verdict: Verdict) -> Finding:
    return Finding(reason="Any", verdict=verdict, message="")


def test_reasons_are_distinct_and_camel_case() -> None:
    reasons = [check.reason for check in CHECKS]
    assert len(set(reasons)) == len(reasons)
    assert all(reason.isalnum() and reason[0].isupper() for reason in reasons)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.reason)
def test_every_check_has_a_limit_and_a_remedy_and_invalid_is_farther_out(check: Check) -> None:
    limits = [limit for limit in (check.suspect, check.invalid) if limit is not None]
    assert limits
    assert check.remedy
    assert limits == sorted(limits, reverse=check.direction is Direction.BELOW)
    assert all(check.verdict(limit) is not check.verdict(limit + 0.001) for limit in limits) or (
        check.direction is Direction.BELOW
    )


@pytest.mark.parametrize(
    ("check", "value", "verdict"),
    [
        (registry.LATE_CLIENT, 1, Verdict.VALID),
        (registry.LATE_CLIENT, 1.001, Verdict.SUSPECT),
        (registry.LATE_CLIENT, 5, Verdict.SUSPECT),
        (registry.LATE_CLIENT, 5.001, Verdict.INVALID),
        (registry.LATE_CLIENT, -3, Verdict.VALID),
        (registry.EARLY_CLIENT, 1, Verdict.VALID),
        (registry.EARLY_CLIENT, 1.001, Verdict.SUSPECT),
        (registry.EARLY_CLIENT, 5, Verdict.SUSPECT),
        (registry.EARLY_CLIENT, 5.001, Verdict.INVALID),
        (registry.EARLY_CLIENT, -3, Verdict.VALID),
        (registry.SHORT_RUN, 1, Verdict.VALID),
        (registry.SHORT_RUN, 10.1, Verdict.INVALID),
        (registry.LOW_OVERLAP, 0.98, Verdict.VALID),
        (registry.LOW_OVERLAP, 0.9799, Verdict.SUSPECT),
        (registry.LOW_OVERLAP, 0.90, Verdict.SUSPECT),
        (registry.LOW_OVERLAP, 0.8999, Verdict.INVALID),
        (registry.WIDE_SPREAD, 1000, Verdict.SUSPECT),
        (registry.CLOCK_OFFSET, 10.1, Verdict.SUSPECT),
        (registry.CLOCK_OFFSET, 50.1, Verdict.INVALID),
        (registry.LOST_IO, 0, Verdict.VALID),
        (registry.LOST_IO, 0.01, Verdict.SUSPECT),
        (registry.LOST_IO, 0.0101, Verdict.INVALID),
        (registry.NO_IO, 1, Verdict.VALID),
        (registry.NO_IO, 0, Verdict.INVALID),
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
    (result,) = evaluate(registry.LATE_CLIENT, observations)
    assert (result.reason, result.verdict, result.clients) == ("LateClient", Verdict.INVALID, (3, 4, 7))
    assert result.message == (
        "client 7: start after the planned time, without the longest operation: 6.5 s (limit 5 s); "
        "also clients 3 and 4; lengthen the ramp, and look for other load on the client's node"
    )


def test_a_value_is_never_rounded_to_its_limit() -> None:
    texts = [registry.LATE_CLIENT.with_unit(value) for value in (0.891135, 1.001, 1, 5.0001, 6.5)]
    assert texts == ["0.891 s", "1.001 s", "1 s", "5.0001 s", "6.5 s"]


def test_what_holds_gives_no_finding() -> None:
    assert evaluate(registry.LATE_CLIENT, [CheckedValue(clients=(1,), value=1)]) == ()
    assert evaluate(registry.LATE_CLIENT, []) == ()


def test_many_clients_are_named_within_bounds() -> None:
    (result,) = evaluate(registry.CLIENT_MISSING, [CheckedValue(clients=(n,), value=1) for n in range(1000)])
    assert len(result.clients) == MAX_NAMED_CLIENTS
    assert "clients 1, 2, 3, 4, 5 and 994 more" in result.message
    assert len(result.message) < 300


def test_a_check_has_no_limit_for_a_verdict_it_never_gives() -> None:
    with pytest.raises(ValueError, match="WideSpread is never Invalid"):
        registry.WIDE_SPREAD.limit(Verdict.INVALID)


def test_table_lists_every_check_with_its_limits() -> None:
    lines = markdown_table().splitlines()
    assert len(lines) == len(CHECKS) + 2
    assert {line.count("|") for line in lines} == {6}
    assert any(line.startswith("| `LowOverlap` |") and "| below 0.98 | below 0.9 |" in line for line in lines)
    assert any(line.startswith("| `WideSpread` |") and "| above 1 s | - |" in line for line in lines)


def test_wording() -> None:
    assert clients_text([]) == ""
    assert clients_text([3]) == "client 3"
    assert clients_text([2, 0, 1]) == "clients 0, 1 and 2"
    assert passes_text(range(9)) == "passes 0, 1, 2, 3, 4 and 4 more"
    assert [number_text(value) for value in (0.98, 2.5, 12_345_678, 1)] == ["0.98", "2.5", "12345678", "1"]
    assert [number_text(value) for value in (0.891135, 999.4, 999.6, 0.0)] == ["0.891", "999", "1000", "0"]
    assert [size_text(size) for size in (0, 1000, 1536, 3 * 2**40)] == ["0 bytes", "1000 bytes", "1.5 KiB", "3 TiB"]
    assert quote("  a\n b\t\x00c ") == "a b ?c"
    assert quote("x" * 10**6, 10) == "x" * 9 + "…"
