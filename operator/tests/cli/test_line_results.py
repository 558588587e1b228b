"""`plimsoll results` of searches for the line."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from plimsoll.api.line import Ending, Line, ProbeOutcome, Vary
from plimsoll.api.names import Operation, Verdict
from plimsoll.api.result import BenchmarkResult, Finding, Fingerprint
from plimsoll.cli.results import show_results
from plimsoll.cli.tables import results_tables
from plimsoll.measure.histogram import Histogram, bin_index
from plimsoll.report.figure import runs_of
from plimsoll.report.markdown import results_markdown
from support.command_line import invoke
from support.results import (
    BOUND,
    GOING_ON,
    PRECISE,
    SEARCH,
    STORM,
    UNKNOWN,
    died,
    measured,
    probe,
    result,
    searched,
    trial,
)

HISTOGRAM = Histogram(counts={bin_index(100_000): 990, bin_index(1_000_000): 100}).encode()
PROBES = [
    probe(0, 8000, histogram=HISTOGRAM),
    died(1, 16_000),
    probe(1, 16_000, ProbeOutcome.LATE, p99=7_500_000).model_copy(update={"attempt": 1}),
    probe(2, 12_000, ProbeOutcome.UNKNOWN, p99=None, verdict=Verdict.INVALID),
    probe(3, 14_000, ProbeOutcome.NOT_ACHIEVED, achieved=13_100.4),
]


def printed(found: Sequence[BenchmarkResult], width: int = 160) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    show_results(console, found)
    return console.export_text()


def squeezed(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


@pytest.fixture(autouse=True)
def where_results_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write("run", searched(trials=PROBES), result([trial(0, measured(100))], point="w-001"))
    write("only", searched(trials=PROBES))


def write(name: str, *found: BenchmarkResult) -> None:
    Path(name).write_text(json.dumps([one.model_dump(mode="json") for one in found]))


def test_a_search_has_one_row_and_a_sentence() -> None:
    assert squeezed(printed([searched()], 180)) == [
        "Workload Parameters Objectives Clients Line 95 % interval Probes Ending Verdict Reasons",
        "line randread 4Ki up to qd64 p99 <= 5 ms 2 12,400 ± 600 IOPS 11,800 to 13,000 3 of 4 Precise Valid",
        (
            "line-000 carries 12,400 ± 600 IOPS at p99 <= 5 ms. The search ended after 4 probes, 3 of which count: the "
            "interval is 9.48 % of the estimate wide; at most 10 % were requested."
        ),
    ]


def test_a_storm_line_is_told_with_its_calm_line() -> None:
    results = [searched(), searched(STORM, point="line-000-storm"), searched(BOUND, point="line-001")]
    of_both = "carries 12,400 ± 600 IOPS at p99 <= 5 ms, 7,100 ± 400 while 1 OSD is out"
    sentences = [line for line in squeezed(printed(results, 180)) if "The search" in line or "The line" in line]
    assert [sentence.partition(" carries")[0] for sentence in sentences] == ["line-000", "line-001"]
    assert sentences[0].startswith(f"line-000 {of_both}. The search ended after ")
    assert " line-000-storm: The search ended after " in sentences[0]
    assert results_markdown(runs_of(results)).count(of_both) == 1


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            searched(GOING_ON, verdict=None),
            "2 between 8,000 and 16,000 IOPS 8,000 to 16,000 3 searching Unfinished",
        ),
        (searched(BOUND), "2 more than 200,000 IOPS above 200,000 12 NeverBroke Valid"),
        (searched(UNKNOWN, verdict=Verdict.INVALID), "2 unknown - 0 of 40 ProbesUsedUp Invalid"),
        (searched(None, verdict=None), "2 not known yet - 0 searching Unfinished"),
        (
            searched(
                PRECISE.model_copy(update={"estimate": 64, "low": 61, "high": 67}),
                search=SEARCH.model_copy(update={"vary": Vary.DEPTH}),
            ),
            "2 64 ± 3 in flight 61 to 67 3 of 4 Precise Valid",
        ),
    ],
)
def test_what_is_known_is_shown(found: BenchmarkResult, expected: str) -> None:
    assert expected in squeezed(printed([found]))[1]


def test_a_search_that_gave_up_names_the_most_frequent_reasons() -> None:
    gave_up = Line(ending=Ending.PROBES_DO_NOT_COUNT, probes=5, counted=0)
    short = Finding(reason="RuntimeTooShort", verdict=Verdict.INVALID, message="m")
    invalid = probe(0, 500, verdict=Verdict.INVALID).model_copy(update={"findings": (short,)})
    trials = [invalid.model_copy(update={"pass_number": number}) for number in range(5)]
    lines = squeezed(printed([searched(gave_up, trials, verdict=Verdict.INVALID)], 180))
    assert "unknown - 0 of 5 ProbesDoNotCount Invalid" in lines[1]
    assert (
        "line-000 line at p99 <= 5 ms is unknown after 5 probes, none of which counts. The search gave up: more probes "
        "would not count either (RuntimeTooShort in 5 probes); remove the cause, then run again."
    ) in " ".join(lines)


def test_points_at_one_load_have_their_own_table() -> None:
    lines = squeezed(printed([searched(), result([trial(0, measured(100))], point="w-001")]))
    assert lines[0].startswith("Workload Parameters Clients Op IOPS")
    assert lines[2].startswith("Workload Parameters Objectives Clients Line")
    assert not any("no trial counts" in line for line in lines)


@pytest.mark.parametrize(
    ("p99", "words"),
    [
        (5_000_000, []),
        (None, ["No p99 of w-001: fewer than 10 operations took longer in a trial; raise runtimeSeconds."]),
    ],
)
def test_a_missing_percentile_is_explained(p99: int | None, words: list[str]) -> None:
    lines = printed(
        [result([trial(number, measured(100, p99=p99)) for number in range(3)], point="w-001")]
    ).splitlines()
    assert [line.strip() for line in lines if line.startswith("No p99")] == words


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        ((1000, 1010, 1020), []),
        (
            (900, 1000, 1100),
            ["The mean of w-001 is uncertain by more than 10 %"],
        ),
    ],
)
def test_a_wide_interval_is_explained(rates: tuple[int, ...], words: list[str]) -> None:
    trials = [trial(number, measured(rate)) for number, rate in enumerate(rates)]
    lines = printed([result(trials, point="w-001")]).splitlines()
    assert [line.partition(";")[0] for line in lines if line.startswith("The mean of")] == words


DATA = {"storageClass": "fast", "dataSetBytes": 2**30}


@pytest.mark.parametrize(
    ("known", "operation", "is_said"),
    [
        (DATA, Operation.READ, True),
        (DATA, Operation.WRITE, False),
        ({"storageClass": "fast"}, Operation.READ, False),  # of a tool for networks
        (DATA | {"pool": {}}, Operation.READ, False),
        (DATA | {"storageClass": {"provisioner": "kubernetes.io/no-provisioner"}}, Operation.READ, False),
        ({}, Operation.READ, False),
    ],
)
def test_reads_behind_a_storage_class_may_come_from_memory(
    known: dict[str, Any], operation: Operation, *, is_said: bool
) -> None:
    trials = [trial(number, measured(1000, operation=operation)) for number in range(3)]
    for of_point in (result(trials, point="w-001"), searched()):
        known_fingerprint = Fingerprint(identity=known, context={}, identity_sha256="0" * 64, context_sha256="0" * 64)
        status = of_point.status.model_copy(update={"fingerprint": known_fingerprint, "trials": tuple(trials)})
        text = " ".join(printed([of_point.model_copy(update={"status": status})]).split())
        assert ("come from memory if the PVC fits in it" in text) is is_said


@pytest.mark.parametrize("width", range(60, 221, 10))
def test_no_column_vanishes_silently(width: int) -> None:
    finding = Finding(reason="NotMonotone", verdict=Verdict.SUSPECT, message="m")
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(*results_tables([searched(verdict=Verdict.SUSPECT, findings=(finding,))]))
    text = console.export_text()
    assert all(len(line) <= width for line in text.splitlines())
    for heading in ("Clients", "Line", "95 % interval", "Probes", "Ending", "Verdict"):
        assert heading in text.splitlines()[0] or heading in text.partition("No room for")[2], heading
    for wanted in ("12,400 ± 600 IOPS", "Suspect", "NotMonotone"):
        assert wanted in text


def test_probes_are_shown_in_order() -> None:
    assert squeezed(invoke("results", "run", "--probes")) == [
        "baseline-line-000: randread 4Ki up to qd64",
        "Probe Offered IOPS Achieved Depth full p99 <= 5 ms Outcome Verdict",
        "0 8,000 8,000 0.25 % 2.00 ms met Valid",
        "1 16,000 - - - aborted (ClientLost) Invalid",
        "1.1 16,000 16,000 0.25 % 7.50 ms late Valid",
        "2 12,000 12,000 0.25 % - unknown Invalid",
        "3 14,000 13,100 0.25 % 2.00 ms not achieved Valid",
        (
            "line-000 carries 12,400 ± 600 IOPS at p99 <= 5 ms. The search ended after 4 probes, 3 of which count: the "
            "interval is 9.48 % of the estimate wide; at most 10 % were requested."
        ),
    ]


def test_probes_as_csv_and_json_have_a_row_per_objective() -> None:
    rows = list(csv.DictReader(io.StringIO(invoke("results", "run", "--probes", "-o", "csv"))))
    assert [(row["probe"], row["attempt"], row["outcome"], row["latency_nanoseconds"]) for row in rows] == [
        ("0", "0", "Met", "2000000"),
        ("1", "0", "Unknown", ""),
        ("1", "1", "Late", "7500000"),
        ("2", "0", "Unknown", ""),
        ("3", "0", "NotAchieved", "2000000"),
    ]
    assert {row["limit_nanoseconds"] for row in rows if row["operation"]} == {"5000000"}
    documents = json.loads(invoke("results", "run", "--probes", "-o", "json"))
    assert [one["offered"] for one in documents] == [8000, 16_000, 16_000, 12_000, 14_000]


def test_probes_of_a_depth_have_their_rate() -> None:
    write("depth", searched(trials=PROBES, search=SEARCH.model_copy(update={"vary": Vary.DEPTH})))
    _, headings, first, *_ = squeezed(invoke("results", "depth", "--probes"))
    assert headings.startswith("Probe Offered in flight Achieved IOPS ")
    assert first.startswith("0 8,000 8,000 ")
    (row, *_) = csv.DictReader(io.StringIO(invoke("results", "depth", "--probes", "-o", "csv")))
    assert float(row["iops"]) > 0


def test_csv_has_the_line() -> None:
    search, point = csv.DictReader(io.StringIO(invoke("results", "run", "-o", "csv")))
    assert search["line"] == "carries 12,400 ± 600 IOPS at p99 <= 5 ms"
    assert (search["line_vary"], search["line_ending"]) == ("Rate", "Precise")
    assert [float(search[f"line_{name}"]) for name in ("estimate", "low", "high")] == [12_412.3, 11_824.7, 13_001.9]
    assert (search["line_probes"], search["line_counted"], search["trials"]) == ("4", "3", "3")
    assert (search["iops"], point["line"], point["line_probes"]) == ("", "", "")


def test_points_are_selected() -> None:
    rows = csv.DictReader(io.StringIO(invoke("results", "run", "--point", "w-001", "-o", "csv")))
    assert [row["point"] for row in rows] == ["w-001"]
    assert "--point w-009 is not a point; the points are line-000, w-001" in invoke(
        "results", "run", "--point", "w-009", code=2
    )


def test_probes_without_a_search_are_refused() -> None:
    output = invoke("results", "run", "--point", "w-001", "--probes", code=1)
    assert "no search for the line is among these results; omit --probes to see them" in output


@pytest.mark.parametrize("arguments", [["results"], ["results", "--probes"], ["report", "--html", "page.html"]])
@pytest.mark.parametrize("line", [PRECISE.model_copy(update={"estimate": 0.0, "low": 0.0, "high": 0.0}), PRECISE])
def test_loads_of_zero_are_shown(arguments: list[str], line: Line) -> None:
    """A changed result may have them; a search offers none."""
    write("zero", searched(line, [probe(0, 500), probe(1, 0.0), probe(2, 2000)]))
    command, *options = arguments
    assert invoke(command, "zero", *options)
