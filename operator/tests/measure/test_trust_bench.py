import subprocess
import sys
from pathlib import Path

import pytest

OPERATOR = Path(__file__).parent.parent.parent
BAD, GOOD = "freezes of 0.2 s every 2 s", "flash, at many rates and depths"


@pytest.fixture(scope="module")
def rows() -> dict[str, list[str]]:
    """The cells of each storage after its name: the shares of each verdict, of unknown steadiness, and reasons."""
    argv = [sys.executable, str(OPERATOR / "bench" / "trust.py"), "3", BAD, GOOD]
    done = subprocess.run(
        argv, env={"PYTHONPATH": "src:tests"}, cwd=OPERATOR, capture_output=True, text=True, check=True
    )
    lines = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
    return {name: cells for name, *cells in lines}


def test_bad_storage_is_never_valid_and_has_a_reason(rows: dict[str, list[str]]) -> None:
    valid, suspect, invalid, _, reasons = rows[BAD]
    assert valid == "0.0 %"
    assert "100.0 %" in (suspect, invalid)
    assert reasons.startswith("`Stalled` 100 %")


def test_good_storage_is_valid_without_a_reason(rows: dict[str, list[str]]) -> None:
    valid, suspect, invalid, _, reasons = rows[GOOD]
    assert (valid, suspect, invalid, reasons) == ("100.0 %", "0.0 %", "0.0 %", "-")


def test_only_the_given_storages_are_simulated(rows: dict[str, list[str]]) -> None:
    assert rows.keys() - {"storage", "---"} == {BAD, GOOD}
