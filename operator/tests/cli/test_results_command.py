"""`plimsoll results`, and the table at the end of `plimsoll run`."""

import csv
import io
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from plimsoll.api.names import Verdict
from plimsoll.api.result import BenchmarkResult, Finding, Stalls
from plimsoll.cli.results import explanations
from plimsoll.cli.tables import NO_TERMINAL_COLUMNS, Terminal, results_table
from plimsoll.conductor.sink import RESULTS_DIRECTORY
from plimsoll.report.figure import result_rows
from plimsoll.report.points import RESULT_COLUMNS, named
from plimsoll.report.view import csv_rows
from support.command_line import invoke
from support.results import measured, trial
from support.results import result as result_of

NAMES = ["random-read", "mixed-with-quite-a-long-name", "random-write"]


def show(results: list[BenchmarkResult], width: int) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(results_table(results))
    return console.export_text()


def rows(results: list[BenchmarkResult]) -> list[Mapping[str, Any]]:
    return [*csv_rows(RESULT_COLUMNS, result_rows(named(results)))]


run = partial(invoke, "results")


# Rows


def test_there_is_a_row_for_every_operation_and_for_a_point_without_numbers(results: list[BenchmarkResult]) -> None:
    found = [(row["point"], row["operation"], row["verdict"], row["reasons"]) for row in rows(results)]
    assert found == [
        ("random-read-000", "read", "Valid", ""),
        ("mixed-with-quite-a-long-name-000", "read", "Suspect", "PassesMissing LowOverlap"),
        ("mixed-with-quite-a-long-name-000", "write", "Suspect", "PassesMissing LowOverlap"),
        ("random-write-000", None, "Invalid", "NoTrialCounts"),
        ("random-write-001", "read", "Unfinished", ""),
    ]


def test_row_holds_what_the_summary_says(results: list[BenchmarkResult]) -> None:
    row = rows(results)[0]
    assert (row["run"], row["workload"], row["label"], row["clients"]) == (
        "quickstart",
        "random-read",
        "randread 4Ki qd16",
        2,
    )
    assert (row["trials"], row["repetitions"], row["attempts"]) == (3, 3, 3)
    assert row["iops"] == 21_700.4
    assert row["iops_half_width"] == pytest.approx(9_503.2)
    assert row["latency_p50_nanoseconds"] == 612_000
    assert row["latency_p99_nanoseconds"] == 12_500_000
    assert row["latency_max_nanoseconds"] == 31_000_000


def test_row_has_the_longest_stall() -> None:
    trials = [trial(number, measured(1000)) for number in range(2)]
    stalled = [
        each.model_copy(update={"stalls": Stalls(seconds=stall, worst_client_seconds=stall)})
        for each, stall in zip(trials, (0.0, 2.5), strict=True)
    ]
    assert rows([result_of(stalled)])[0]["stall_seconds"] == 2.5


def test_row_without_series_knows_nothing_of_stalls(results: list[BenchmarkResult]) -> None:
    assert rows(results)[0]["stall_seconds"] is None


# Table


@pytest.mark.parametrize("width", range(60, 221, 5))
def test_no_column_vanishes_silently(results: list[BenchmarkResult], width: int) -> None:
    text = show(results, width)
    lines = text.splitlines()
    assert all(len(line) <= width for line in lines)
    folded = "".join(text.split())
    for wanted in (*NAMES, "1,234,567±123,456", "21,700±9,503", "Unfinished", "Suspect", "Invalid", "Valid"):
        assert wanted in folded or wanted[:16] in folded, wanted
    headings = lines[0]
    for heading in ("Clients", "Op", "IOPS ± 95 %", "MiB/s", "p50", "p99", "Trials", "Verdict"):
        assert heading in headings or heading in text.partition("No room for")[2], heading


@pytest.mark.parametrize(
    ("width", "headings"),
    [
        (160, "Workload Parameters Clients Op IOPS ± 95 % MiB/s p50 p99 Trials Verdict Reasons"),
        (120, "Point Clients Op IOPS ± 95 % MiB/s p50 p99 Trials Verdict"),
        (100, "Point Clients Op IOPS ± 95 % MiB/s p50 p99 Verdict"),
        (80, "Point Clients Op IOPS ± 95 % p99 Verdict"),
        (60, "Point IOPS ± 95 % Verdict"),
    ],
)
def test_least_important_columns_go_first(results: list[BenchmarkResult], width: int, headings: str) -> None:
    assert show(results, width).splitlines()[0].split() == headings.split()


def test_narrow_table_says_what_it_leaves_out(results: list[BenchmarkResult]) -> None:
    assert show(results, 80).splitlines()[-1] == "No room for MiB/s, p50, Trials: use a wider terminal, or -o csv."
    assert "No room" not in show(results, 160)


def test_narrow_table_keeps_parameters_and_reasons(results: list[BenchmarkResult]) -> None:
    lines = [line.strip() for line in show(results, 80).splitlines()]
    assert lines[1].startswith("random-read ")
    assert lines[2] == "randread 4Ki qd16"
    assert "NoTrialCounts" in lines


def test_wide_table_has_a_line_for_every_row(results: list[BenchmarkResult]) -> None:
    lines = show(results, 200).splitlines()
    assert len(lines) == 6
    assert lines[1].split() == [
        *("random-read", "randread", "4Ki", "qd16", "2", "read", "21,700", "±", "9,503", "84.8"),
        *("612", "µs", "12.5", "ms", "3/3", "Valid"),
    ]
    assert lines[4].split() == [
        *("random-write", "randwrite", "4Ki", "qd1", "2", "-", "-", "-", "-", "-", "0/3", "Invalid", "NoTrialCounts"),
    ]


def test_words_of_a_user_are_no_markup(results: list[BenchmarkResult]) -> None:
    spec = results[0].spec.model_copy(update={"label": "[red]x[/]"})
    assert "[red]x[/]" in show([results[0].model_copy(update={"spec": spec})], 160)


def test_no_results_are_an_empty_table() -> None:
    assert show([], 80).splitlines()[0].startswith("Point ")


def test_where_there_is_no_terminal_every_column_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert Terminal().width == NO_TERMINAL_COLUMNS
    monkeypatch.setenv("COLUMNS", "90")
    assert Terminal().width == 90


# Command


def test_table_is_printed(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    text = run(str(directory))
    assert text.splitlines()[0].split()[:2] == ["Workload", "Parameters"]
    assert "21,700 ± 9,503" in text


def test_every_reason_is_explained_once_below_the_table(directory: Path) -> None:
    lines = run(str(directory)).splitlines()
    assert lines[-3:] == [
        "PassesMissing (Suspect) at mixed-with-quite-a-long-name-000: measured 1, limit 2",
        "LowOverlap (Suspect) at mixed-with-quite-a-long-name-000: measured 1, limit 2",
        "NoTrialCounts (Invalid) at random-write-000: measured 1, limit 2",
    ]


def test_reason_of_several_points_is_explained_at_its_worst() -> None:
    verdicts = {"w-000": Verdict.SUSPECT, "w-001": Verdict.INVALID, "w-002": Verdict.SUSPECT}
    points = [
        result_of(
            [trial(number, measured(1000)) for number in range(2)],
            point=name,
            findings=(Finding(reason="ClockOffset", verdict=verdict, message=f"that of {name}"),),
        )
        for name, verdict in verdicts.items()
    ]
    texts = [*explanations((point.spec.point, point) for point in points)]
    assert texts == ["ClockOffset (Invalid) at w-001 and 2 more: that of w-001"]


def test_json_is_the_documents(directory: Path, results: list[BenchmarkResult]) -> None:
    documents = json.loads(run(str(directory), "-o", "json"))
    by_name = sorted(results, key=lambda result: result.metadata.name)
    assert [BenchmarkResult.model_validate(document) for document in documents] == by_name
    assert {document["kind"] for document in documents} == {"BenchmarkResult"}


def test_csv_has_plain_numbers_in_base_units(directory: Path) -> None:
    text = run(str(directory), "-o", "csv")
    assert "\r" not in text
    found = {(row["point"], row["operation"]): row for row in csv.DictReader(io.StringIO(text))}
    assert len(found) == 5
    row = found["random-read-000", "read"]
    assert float(row["iops"]) == 21_700.4
    assert float(row["bytes_per_second"]) == 21_700.4 * 4096
    assert float(row["latency_mean_nanoseconds"]) == 712_345.6
    assert int(row["latency_max_nanoseconds"]) == 31_000_000
    assert row["verdict"] == Verdict.VALID
    assert found["random-write-000", ""]["iops"] == ""
    assert found["random-write-001", "read"]["verdict"] == "Unfinished"


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"kind": "BenchmarkResult"}', "\udcff"])
def test_damaged_result_is_refused(directory: Path, damage: str) -> None:
    path = directory / RESULTS_DIRECTORY / "quickstart-random-read-000.json"
    path.write_bytes(damage.encode(errors="surrogateescape"))
    output = run(str(directory), code=1)
    assert output.startswith("Error: the results in ")
    assert "Traceback" not in output
