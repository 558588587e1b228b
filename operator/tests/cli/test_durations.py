"""The one grammar of durations on the command line."""

import click
import pytest
from click.testing import CliRunner

from plimsoll.cli import main
from plimsoll.cli.options import duration


def seconds(text: str) -> int:
    return duration(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90s", 90), ("90", 90), ("15m", 900), ("1h", 3600), ("1h30m", 5400), ("1h30s", 3630), ("2h0m5s", 7205)],
)
def test_a_duration_has_a_unit_for_every_number_or_is_a_number_of_seconds(text: str, expected: int) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "0", "1h30", "15m30", "0s", "h", "-5s", "1.5h", "5d", "30s1h", "1 h", "s", "٣"])
def test_anything_else_is_refused_with_the_grammar(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a duration; write it as 90s, 15m or 1h30m"):
        seconds(text)


@pytest.mark.parametrize(
    "command",
    [
        ["watch", "nightly"],
        ["check-installation", "--namespace", "default"],
        ["remove-runs"],
    ],
)
def test_every_timeout_has_this_grammar(command: list[str]) -> None:
    done = CliRunner().invoke(main, [*command, "--timeout", "1h30"])
    assert done.exit_code == 2
    assert "'1h30' is not a duration; write it as 90s, 15m or 1h30m" in done.output
