"""Each claim of the page on security names tests that try the contrary; these and its values of the chart exist."""

import re

from .test_guides import CHART, ROOT

PAGE = (ROOT / "docs" / "explanation" / "security.md").read_text()


def known_tests() -> set[str]:
    files = [*(ROOT / "operator" / "tests").rglob("test_*.py"), *(ROOT / "e2e" / "tests").glob("test_*.py")]
    definition = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)
    return {name for file in files for name in definition.findall(file.read_text())}


def attempts() -> list[list[str]]:
    """Return the rows of the tables that name tests: attempt, what prevents it, and the tests."""
    tables = re.findall(r"^\| attempt \|.*\n\|---.*\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    return [row.strip("|").split(" | ") for table in tables for row in table.splitlines()]


def test_the_tests_that_the_page_names_exist() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert named - known_tests() == set()


def test_no_attempt_is_without_a_test() -> None:
    rows = attempts()
    assert len(rows) > 20
    assert [attempt for attempt, _, tests in rows if not re.search(r"`test_\w+`", tests)] == []


def test_the_values_are_those_of_the_chart() -> None:
    named = {tuple(name.split(".")) for name in re.findall(r"`([a-z]\w+\.[a-z]\w+)`", PAGE)}
    values = {(key, name) for key, part in CHART.items() if isinstance(part, dict) for name in part}
    assert {name for name in named if name[0] in CHART} - values == set()
