"""`-o`: every format has the same content, for every command."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner

from plimsoll.api.environment import CephDescription, Environment, PoolLayout
from plimsoll.cli import _COMMANDS as COMMANDS_OF_USERS
from plimsoll.cli import main
from support.results import ALL_LAYERS, result, steady, trials_of

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "cli.md"

COMMANDS: dict[str, Sequence[str]] = {
    "results": ["results", "before", "after"],
    "compare": ["compare", "before", "after"],
    "layers": ["layers", "layered"],
}


@pytest.fixture(autouse=True)
def where_results_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, rate in (("before", 1000), ("after", 800)):
        one = result(trials_of(steady(rate)), run=name, context={"seed": len(name)})
        Path(name).write_text(json.dumps([one.model_dump(mode="json")]))
    pool = Environment(ceph=CephDescription(fsid="x"), pool=PoolLayout(type="replicated", size=3))
    layered = [
        one.model_copy(update={"status": one.status.model_copy(update={"environment": pool})}).model_dump(mode="json")
        for one in ALL_LAYERS
    ]
    Path("layered").write_text(json.dumps(layered))


def printed(command: Sequence[str], form: str) -> str:
    found = CliRunner().invoke(main, [*command, "-o", form])
    assert found.exit_code == (3 if command[0] == "compare" else 0), found.output
    return found.output


def csv_rows(command: str) -> list[dict[str, str]]:
    return [*csv.DictReader(io.StringIO(printed(COMMANDS[command], "csv")))]


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_yaml_is_what_json_is_in_the_same_order(command: Sequence[str]) -> None:
    # As text, in which the order of keys counts.
    assert json.dumps(yaml.safe_load(printed(command, "yaml")), indent=1) == printed(command, "json").rstrip("\n")


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_form_that_is_not_there_is_refused_with_those_that_are(command: Sequence[str]) -> None:
    found = CliRunner().invoke(main, [*command, "-o", "xml"])
    assert found.exit_code == 2
    assert "'xml' is not one of 'table', 'json', 'yaml', 'csv'" in found.output


def options_of(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each option of the commands with what it takes."""
    for name in names:
        command = main.get_command(click.Context(main), name)
        assert command is not None
        for option in command.params:
            if isinstance(option, click.Option):
                takes = "a word of a list" if isinstance(option.type, click.Choice) else "a value"
                yield from ((word, "nothing" if option.is_flag else takes) for word in option.opts)


def test_an_option_takes_the_same_in_each_command() -> None:
    takes: dict[str, set[str]] = {}
    for word, what in options_of(COMMANDS_OF_USERS):
        takes.setdefault(word, set()).add(what)
    assert {word: found for word, found in takes.items() if len(found) > 1} == {}
    assert takes["--output"] == {"a word of a list"}


def keys_of(document: Any) -> Iterator[str]:
    if isinstance(document, dict):
        for key, value in document.items():
            yield key
            yield from keys_of(value)
    for entry in document if isinstance(document, list) else ():
        yield from keys_of(entry)


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "results"])
def test_every_field_is_documented(command: str) -> None:
    text = DOCUMENT.read_text()
    found = set(keys_of(json.loads(printed(COMMANDS[command], "json"))))
    assert [key for key in sorted(found) if f"`{key}`" not in text and f"{key}[]`" not in text] == []


def test_results_of_several_runs_are_one_list() -> None:
    documents = json.loads(printed(COMMANDS["results"], "json"))
    assert [one["spec"]["run"] for one in documents] == ["before", "after"]
    assert [row["run"] for row in csv_rows("results")] == ["before", "after"]


def test_results_of_several_runs_have_a_heading_each() -> None:
    lines = printed(COMMANDS["results"], "table").splitlines()
    assert [lines.index(name) for name in ("before", "after")] == [0, 4]


def test_comparison_has_a_row_for_every_metric() -> None:
    rows = csv_rows("compare")
    assert [row["metric"] for row in rows] == ["iops", "bytesPerSecond", "meanLatency", "p50", "p99"]
    iops = rows[0]
    assert (iops["point"], iops["gates"], iops["conclusion"], iops["confirmed"]) == (
        "w-000",
        "True",
        "Regression",
        "True",
    )
    assert (float(iops["baseline"]), iops["baseline_trials"]) == (998.0, "5")
    assert float(iops["ratio"]) == pytest.approx(0.8, abs=0.001)
    assert float(iops["low"]) < 0.8 < float(iops["high"])


def test_layers_have_a_row_for_every_operation() -> None:
    rows = {(row["layer"], row["operation"]): row for row in csv_rows("layers")}
    rbd = rows["RBD", "write"]
    part = float(rbd["bytes_per_second"]) / float(rbd["bytes_per_second_limit"])
    assert float(rbd["bytes_per_second_efficiency"]) == pytest.approx(part)
    assert rows["OSD", "write"]["iops_limit"] == ""
