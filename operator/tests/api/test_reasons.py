"""The table of reasons is whole, and decisions name its entries and never spell a reason."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll.api.names import AbortReason, ConditionType, FailureReason
from plimsoll.api.reasons import LOAD_IS_GONE, PASSED_BY, REFUSALS, event_name, remedy_of, severity_of
from plimsoll.api.reasons.attempts import ATTEMPT_REASONS
from plimsoll.api.reasons.entry import Severity
from plimsoll.api.reasons.reason import Reason, read_reason
from plimsoll.lifecycle.naming import ALLOW_BENCHMARKS

SOURCE = Path(__file__).parents[2] / "src" / "plimsoll"
DECIDING = ("lifecycle", "operator", "conductor", "kube")


def test_every_reason_has_an_explanation() -> None:
    assert [reason for reason in Reason if reason.entry.under_way is None and reason.entry.ended is None] == []
    assert list(ATTEMPT_REASONS) == list(AbortReason)


def test_a_reason_of_conditions_says_which() -> None:
    entries = [reason.entry for reason in Reason]
    assert [entry.name for entry in entries if bool(entry.conditions) is not (entry.under_way is not None)] == []


def test_a_run_may_fail_as_its_conductor_says() -> None:
    assert [reason for reason in FailureReason if Reason(reason).entry.ended is None] == []


def test_a_run_that_waited_in_vain_is_told_what_to_do() -> None:
    waited = [reason for reason in Reason if reason.entry.ended and reason.entry.under_way]
    assert Reason.CLAIMS_NOT_BOUND in waited
    assert [reason for reason in {*waited, *REFUSALS} if not remedy_of(reason)] == []


def test_the_load_is_gone_only_by_the_word_of_the_condition_about_it() -> None:
    assert [reason for reason in LOAD_IS_GONE if reason.entry.conditions != (ConditionType.CLEANED_UP,)] == []


def test_a_run_that_is_passed_by_is_one_that_waits() -> None:
    assert [reason for reason in PASSED_BY if ConditionType.SUCCEEDED not in reason.entry.conditions] == []


def test_a_remedy_names_the_annotation_that_is_looked_for() -> None:
    assert f'{ALLOW_BENCHMARKS}="true"' in remedy_of(Reason.KEYRING_NOT_ALLOWED)


def test_a_reason_of_another_version_is_kept_and_taken_seriously() -> None:
    assert read_reason("Bound") is Reason.BOUND
    unknown = read_reason("FromTheFuture")
    assert (unknown, severity_of(unknown), event_name(unknown)) == ("FromTheFuture", Severity.WARNING, "FromTheFuture")


def spelled(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that give a reason as a literal, or compare one with a literal."""
    for node in ast.walk(tree):
        match node:
            case ast.keyword(arg="reason", value=ast.Constant(value=str())):
                yield node.value.lineno
            case ast.Compare(left=left, comparators=others) if any(map(is_reason, (left, *others))):
                yield from (part.lineno for part in ast.walk(node) if isinstance(part, ast.Constant) and is_text(part))


def is_reason(node: ast.AST) -> bool:
    """Whether an expression is a reason: an attribute or a variable of that name, or a field of a condition."""
    match node:
        case ast.Attribute(attr="reason") | ast.Name(id="reason"):
            return True
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value="reason"), *_]):
            return True
    return False


def is_text(node: ast.Constant) -> bool:
    return isinstance(node.value, str) and node.value in {*Reason, *AbortReason, *FailureReason}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("Fact(holds=False, reason='Bound')", [1]),
        ("fact.reason == 'Bound'", [1]),
        ("fact.reason in {'Bound', 'Ready'}", [1, 1]),
        ("condition.get('reason') == 'Bound'", [1]),
        ("fact.reason is Reason.BOUND or pod.phase == 'Suspended'", []),
    ],
)
def test_what_counts_as_spelling_a_reason(text: str, lines: list[int]) -> None:
    assert list(spelled(ast.parse(text))) == lines


@pytest.mark.parametrize("package", DECIDING)
def test_no_decision_spells_a_reason(package: str) -> None:
    modules = sorted((SOURCE / package).rglob("*.py"))
    assert modules
    found = {path.name: [*spelled(ast.parse(path.read_text()))] for path in modules}
    assert {name: lines for name, lines in found.items() if lines} == {}
