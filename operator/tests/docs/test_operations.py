"""What an administrator may read in a status is explained in docs/operations.md, and nothing else is."""

import ast
import re
from collections.abc import Iterator
from enum import StrEnum
from itertools import product
from pathlib import Path

import pytest

from plimsoll.agent import agent
from plimsoll.api.names import AbortReason, ConditionType, FailureReason, RunPhase
from plimsoll.conductor import conduct
from plimsoll.lifecycle.admission import LOAD_IS_GONE
from plimsoll.lifecycle.decision import Stage
from plimsoll.lifecycle.refusal import REASONS as REFUSALS
from plimsoll.lifecycle.rook import facts

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "operations.md").read_text()
LIFECYCLE = ROOT / "operator" / "src" / "plimsoll" / "lifecycle"

CARRIERS = {"Ending", "Fact", "Situation"}
VOCABULARIES: tuple[type[StrEnum], ...] = (AbortReason, FailureReason, ConditionType, RunPhase, Stage)
CAMEL_CASE = re.compile(r"[A-Z][a-zA-Z]+")


def texts(node: ast.AST) -> Iterator[str]:
    """Yield the literals that an expression may evaluate to."""
    match node:
        case ast.Constant(value=str(text)) if CAMEL_CASE.fullmatch(text):
            yield text
        case ast.IfExp(body=one, orelse=other):
            yield from (*texts(one), *texts(other))
        case ast.BoolOp(values=values):
            yield from (text for value in values for text in texts(value))
        case ast.JoinedStr(values=parts):
            yield from map("".join, product(*map(literals, parts)))


def literals(part: ast.AST) -> list[str]:
    """Return what a part of a composed text may be: itself, one of two texts, or what Rook's objects are called."""
    match part:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.FormattedValue(value=ast.IfExp(body=ast.Constant(value=str(one)), orelse=ast.Constant(value=other))):
            return [one, str(other)]
        case ast.FormattedValue(value=ast.Subscript(value=ast.Name(id="WORDS"))):
            return sorted(facts.WORDS.values())
    return []


def reasons(tree: ast.AST) -> Iterator[str]:
    """Yield the literals given as a reason, and those that a function with that word in its name chooses from."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name), keywords=keywords) if name in CARRIERS:
                yield from (text for keyword in keywords if keyword.arg == "reason" for text in texts(keyword.value))
            case ast.Assign(targets=[ast.Name(id="reason")], value=value):
                yield from texts(value)
            case ast.FunctionDef(name=name) if "reason" in name:
                yield from chosen(node)


def chosen(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        match node:
            case ast.Return(value=ast.expr() as value):
                yield from texts(value)
            case ast.Tuple(elts=[ast.Tuple(), ast.Constant() as reason]):  # (words to look for, reason)
                yield from texts(reason)


def reasons_of_the_code() -> set[str]:
    found = {text for path in LIFECYCLE.rglob("*.py") for text in reasons(ast.parse(path.read_text()))}
    return found | LOAD_IS_GONE | REFUSALS | {reason.value for reason in (*AbortReason, *FailureReason)}


def section(title: str) -> str:
    _, _, rest = PAGE.partition(f"\n## {title}\n")
    assert rest, title
    return rest.partition("\n## ")[0]


def explained() -> set[str]:
    """Return the reasons that have a row: in the second column, among aborted attempts in the first."""
    conditions, _, attempts = section("Conditions and reasons").partition("### Reasons of an aborted attempt")
    _, _, conditions = conditions.partition("### While a run is under way")
    cells = [row.split("|")[2] for row in conditions.splitlines() if row.startswith("|")]
    cells += [row.split("|")[1] for row in attempts.splitlines() if row.startswith("|")]
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def test_the_code_gives_reasons() -> None:
    assert {"InvalidSpec", "AllFinal", "Incomplete", "Unschedulable", "ClientsMissing", "ClientFailed"} <= (
        reasons_of_the_code()
    )


def test_every_reason_has_a_row() -> None:
    assert reasons_of_the_code() - explained() == set()


def test_no_row_is_about_a_reason_that_the_code_does_not_give() -> None:
    assert explained() - reasons_of_the_code() == set()


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_every_name_is_on_the_page(vocabulary: type[StrEnum]) -> None:
    assert [name.value for name in vocabulary if f"`{name}`" not in PAGE] == []


@pytest.mark.parametrize("module", [conduct, agent])
def test_every_exit_code_has_a_row(module: object) -> None:
    codes = [value for name, value in vars(module).items() if name.startswith("EXIT_") and isinstance(value, int)]
    codes += conduct.EXIT_OF_FAILURE.values() if module is conduct else []
    rows = section("Exit codes")
    program = "conductor" if module is conduct else "agent"
    own = rows[rows.index(f"| {program} |") :]
    assert codes
    assert [code for code in codes if f"| {code} |" not in own.partition("| `plimsoll run` |")[0]] == []


def test_every_environment_variable_of_the_operator_is_on_the_page() -> None:
    source = (ROOT / "operator" / "src" / "plimsoll" / "handlers" / "process.py").read_text()
    names = set(re.findall(r"\"([A-Z]+(?:_[A-Z]+)+)\"", source))
    assert "PLIMSOLL_RUNNER_IMAGE" in names
    assert {name for name in names if f"`{name}`" not in section("Configuration")} == set()
