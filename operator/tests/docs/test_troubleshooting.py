"""docs/how-to/troubleshooting.md explains exactly the reasons that a status can have."""

import re
from enum import StrEnum
from pathlib import Path

import pytest

from plimsoll.agent import agent
from plimsoll.api.names import AbortReason, ConditionType, FailureReason, RunPhase
from plimsoll.api.reasons.reason import Reason
from plimsoll.api.reasons.suites import SuiteReason
from plimsoll.conductor import main
from plimsoll.lifecycle.decision import Stage

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "how-to" / "troubleshooting.md").read_text()
SOURCE = ROOT / "operator" / "src" / "plimsoll"
TABLE_OF_REASONS = SOURCE / "api" / "reasons"

VOCABULARIES: tuple[type[StrEnum], ...] = (AbortReason, FailureReason, ConditionType, RunPhase, Stage)


def given_reasons() -> set[str]:
    """Return the reasons that the code gives; their rows in the table and comparisons with them do not count."""
    modules = _modules()
    compared = r"(?:\bis(?: not)?|[=!]=) Reason\.[A-Z_]+"
    texts = [re.sub(compared, "", path.read_text()) for path in modules]
    named = {name for text in texts for name in re.findall(r"\bReason\.([A-Z_]+)\b", text)}
    return {Reason[name].value for name in named} | {reason.value for reason in (*AbortReason, *FailureReason)}


def _modules() -> list[Path]:
    return [path for path in SOURCE.rglob("*.py") if TABLE_OF_REASONS not in path.parents]


def section(title: str) -> str:
    _, _, rest = PAGE.partition(f"\n## {title}\n")
    assert rest, title
    return rest.partition("\n## ")[0]


def explained() -> set[str]:
    """Return the reasons that have a row: in the second column, among aborted attempts in the first."""
    conditions, _, attempts = section("Conditions and reasons").partition("### Reasons of an aborted attempt")
    attempts, _, _ = attempts.partition("### Suites")
    _, _, conditions = conditions.partition("### While a run is under way")
    cells = [row.split("|")[2] for row in conditions.splitlines() if row.startswith("|")]
    cells += [row.split("|")[1] for row in attempts.splitlines() if row.startswith("|")]
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def test_the_code_gives_reasons() -> None:
    assert {"InvalidSpec", "AllFinal", "Incomplete", "Unschedulable", "ClientsMissing", "ClientFailed"} <= (
        given_reasons()
    )


def test_every_reason_has_a_row() -> None:
    assert given_reasons() - explained() == set()
    assert {reason.value for reason in Reason} - explained() == set()


def test_no_row_is_about_a_reason_that_the_code_does_not_give() -> None:
    assert explained() - given_reasons() == set()


def test_reasons_of_suites_are_those_that_the_code_gives() -> None:
    _, _, suites = section("Conditions and reasons").partition("### Suites")
    cells = [row.split("|")[2] for row in suites.splitlines() if row.startswith("|")]
    explained = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    named = {name for path in _modules() for name in re.findall(r"\bSuiteReason\.([A-Z_]+)\b", path.read_text())}
    assert explained == {reason.value for reason in SuiteReason}
    assert {SuiteReason[name].value for name in named} == explained


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_every_name_is_on_the_page(vocabulary: type[StrEnum]) -> None:
    assert [name.value for name in vocabulary if f"`{name}`" not in PAGE] == []


@pytest.mark.parametrize("module", [main, agent])
def test_every_exit_code_has_a_row(module: object) -> None:
    codes = [value for name, value in vars(module).items() if name.startswith("EXIT_") and isinstance(value, int)]
    codes += main.EXIT_OF_FAILURE.values() if module is main else []
    rows = section("Exit codes")
    program = "conductor" if module is main else "agent"
    own = rows[rows.index(f"| {program} |") :]
    assert codes
    assert [code for code in codes if f"| {code} |" not in own] == []


def test_every_environment_variable_of_the_operator_is_on_the_page() -> None:
    modules = SOURCE / "operator"
    source = "".join((modules / name).read_text() for name in ("main.py", "leader.py"))
    names = set(re.findall(r"\"([A-Z]+(?:_[A-Z]+)+)\"", source))
    assert "PLIMSOLL_RUNNER_IMAGE" in names
    page = (ROOT / "docs" / "reference" / "configuration.md").read_text()
    assert {name for name in names if f"`{name}`" not in page} == set()
