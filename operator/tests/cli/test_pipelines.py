"""`-o junit`, `-o markdown` and `-o otava-csv`, read by programs that pipelines use."""

import csv
import io
import json
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest
import xmlschema
from click.testing import CliRunner, Result
from cmarkgfm import github_flavored_markdown_to_html  # type: ignore[import-untyped] # it has no types
from cmarkgfm.cmark import Options  # type: ignore[import-untyped] # the same
from hypothesis import example, given
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase

from plimsoll.api.json_reader import printable_text
from plimsoll.api.names import Verdict
from plimsoll.api.result import BenchmarkResult, Finding
from plimsoll.cli import main
from plimsoll.measure.text import quote
from plimsoll.report.markdown import MAX_CHARACTERS, inline
from support.command_line import COMPARISONS, written_round
from support.results import above, full_mesh, matrix, matrix_point, result, searched, steady, trials_of

SCHEMA = xmlschema.XMLSchema(str(Path(__file__).with_name("junit.xsd")))
HOSTILE = (
    "]]></failure> <script>alert(1)</script> ![x](http://a.test/i.png) [y](//b.test) @team #12 |`\\| www.c.test "
    "\x1b[2J\0\n\n# h"
)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments], env={"COLUMNS": "160"})


def save(path: Path, results: Sequence[BenchmarkResult]) -> str:
    path.write_text(json.dumps([each.model_dump(mode="json") for each in results]))
    return str(path)


def saved(path: Path, name: str, rates: Sequence[float]) -> str:
    return save(path / name, [result(trials_of(rates), run=name)])


def hostile() -> BenchmarkResult:
    """Return a Suspect result in which every text that a tenant chooses tries to be markup."""
    measured = result(trials_of(steady(1000)), run="nightly")
    finding = Finding(reason=HOSTILE, verdict=Verdict.SUSPECT, message=HOSTILE)
    names = dict.fromkeys(("run", "point", "workload", "label"), HOSTILE)
    return measured.model_copy(
        update={
            "metadata": measured.metadata.model_copy(update={"namespace": HOSTILE}),
            "spec": measured.spec.model_copy(update=names),
            "status": measured.status.model_copy(update={"verdict": Verdict.SUSPECT, "findings": (finding,)}),
        }
    )


# JUnit


def cases_of(text: str) -> dict[str, list[TestCase]]:
    """Return the test cases of each suite, from a document that matches the schema and whose counts are right."""
    SCHEMA.validate(text)
    document = JUnitXml.fromstring(text.encode())
    declared = (document.tests, document.failures, document.errors, document.time)
    document.update_statistics()  # type: ignore[no-untyped-call] # of the package
    assert declared == (document.tests, document.failures, document.errors, pytest.approx(document.time, abs=0.01))
    return {suite.name: [*suite] for suite in document}


def outcome(case: TestCase) -> str:
    return "".join(part.type for part in case.result) or ("passed, " + case.system_out if case.system_out else "passed")


@pytest.mark.parametrize(("options", "suspect"), [((), type(None)), (("--strict",), Failure)])
def test_points_are_cases_by_their_verdict(directory: Path, options: Sequence[str], suspect: type) -> None:
    (cases,) = cases_of(run("results", str(directory), "-o", "junit", *options).stdout).values()
    mixed, valid, invalid, unfinished = cases
    assert valid.is_passed
    assert valid.system_out is None
    assert (valid.classname, valid.name) == ("random-read", "randread 4Ki qd16, 2 clients")
    assert [(type(part), part.message) for part in invalid.result] == [(Error, "NoTrialCounts: measured 1, limit 2")]
    assert [(type(part), part.message) for part in unfinished.result] == [
        (Skipped, "not finished: 3 of 3 trials recorded")
    ]
    assert type(next(iter(mixed.result), None)) is suspect
    told = mixed.system_out or mixed.result[0].text
    assert "PassesMissing (Suspect): measured 1, limit 2" in told


def test_numbers_are_properties_in_base_units(tmp_path: Path) -> None:
    source = saved(tmp_path, "base", steady(1000))
    (suite,) = JUnitXml.fromstring(run("results", source, "-o", "junit").stdout.encode())
    numbers = {each.name: float(each.value) for each in suite.properties()}  # type: ignore[no-untyped-call] # of the package
    assert numbers["w-000.read.iops"] == pytest.approx(998)
    assert numbers["w-000.read.p99"] == 5_000_000
    measured = json.loads(run("results", source, "-o", "json").stdout)[0]["status"]["trials"]
    assert suite.time == pytest.approx(sum((trial.get("window") or {}).get("seconds", 0) for trial in measured))


@pytest.mark.parametrize(
    ("rates", "exit_code", "expected"),
    [
        (steady(800), 3, [Failure, Failure]),
        (steady(1000), 0, [None, None]),
        ([1000, 700, 1200, 800, 950], 4, [Skipped, Skipped]),
    ],
)
def test_comparison_fails_where_its_exit_code_does(
    tmp_path: Path, rates: Sequence[float], exit_code: int, expected: list[type | None]
) -> None:
    sources = saved(tmp_path, "base", steady(1000)), saved(tmp_path, "candidate", rates)
    compared = run("compare", *sources, "-o", "junit")
    assert compared.exit_code == exit_code
    (cases,) = cases_of(compared.stdout).values()
    assert [case.name for case in cases][::2] == ["randread 4Ki qd1, 2 clients, read iops", "conclusion"]
    found = [next(iter(case.result), None) for case in cases[::2]]
    assert [part if part is None else type(part) for part in found] == expected
    if expected[0] is Failure:
        assert found[0] is not None
        assert found[0].message == "-20.0 %, 95 % interval -21.0 % to -19.0 %: Regression, confirmed"


@pytest.mark.parametrize(
    ("scale", "options", "exit_code", "verdict"),
    [
        (1.0, (), 0, "passed, NoRegression: no comparison shows a regression"),
        (0.8, (), 3, "Regressed"),
        (0.8, ("--accept", "2025-03-19T21:20Z"), 0, "Regressed"),
    ],
)
def test_round_fails_where_its_exit_code_does(
    tmp_path: Path, scale: float, options: Sequence[str], exit_code: int, verdict: str
) -> None:
    rounds = [written_round(tmp_path, number, {}, comparisons=COMPARISONS) for number in range(4)]
    rounds.append(written_round(tmp_path, 4, {"old": scale, "new": scale * scale}, comparisons=COMPARISONS))
    shown = run("results", *map(str, rounds), "-o", "junit", *options)
    assert shown.exit_code == exit_code, shown.output
    suites = cases_of(shown.stdout)
    assert [*suites] == ["weekly", "weekly: old", "weekly: new"]
    by_name = {(case.classname, case.name): case for case in suites["weekly"]}
    assert outcome(by_name["round", "verdict"]) == verdict
    parts = [part for cases in suites.values() for case in cases for part in case.result]
    assert any(isinstance(part, Failure | Error) for part in parts) == (exit_code == 3)
    if scale < 1:
        # What a variant costs, and what was expected of it, decide nothing.
        for name in (("costs", "new against old"), ("hypotheses", "alike")):
            (part,) = by_name[name].result
            assert isinstance(part, Skipped)
            assert "but it does not decide about the round" in part.message
    if options:
        assert "but the round is accepted" in by_name["upgrade", "old"].result[0].message


def test_junit_has_hostile_texts_as_texts(tmp_path: Path) -> None:
    text = run("results", save(tmp_path / "run", [hostile()]), "-o", "junit", "--strict").stdout
    assert text.isascii()
    ((case,),) = cases_of(text).values()
    (failure,) = case.result
    assert failure.message == f"{quote(HOSTILE)}: {quote(HOSTILE)}"
    assert case.classname == quote(HOSTILE)


# Markdown


class Page(HTMLParser):
    """The tags of a rendered document, and its texts outside code."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.code: list[str] = []
        self._in_code = False
        # As GitHub reads it, but with the HTML that it removes.
        self.feed(github_flavored_markdown_to_html(markdown, Options.CMARK_OPT_UNSAFE))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert all(name == "align" for name, _ in attrs)
        self.tags.append(tag)
        self._in_code |= tag == "code"

    def handle_endtag(self, tag: str) -> None:
        self._in_code &= tag != "code"

    def handle_data(self, data: str) -> None:
        (self.code if self._in_code else self.texts).append(data)


ALLOWED = {
    "h2",
    "h3",
    "p",
    "strong",
    "ul",
    "li",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "code",
    "details",
    "summary",
}


@given(st.text(alphabet="aw0. `|\\<>&@#*_[]()!:/-+~$\"'\n\r\t\x00é", max_size=30))
@example("www.a.test")
@example("`` ` ``|")
@example("1) a")
@example("a\\|b")
def test_a_text_stays_what_it_is(text: str) -> None:
    for in_table, before, after in ((False, "- ", " b"), (True, "| h | i |\n|---|---|\n| ", " | b |")):
        page = Page(f"{before}{inline(text, in_table=in_table)}{after}\n")
        around = ["table", "thead", "tr", "th", "th", "tbody", "tr", "td", "td"] if in_table else ["ul", "li"]
        assert [tag for tag in page.tags if tag != "code"] == around
        assert quote(text) in "".join(page.code or page.texts)
        assert not set("".join(page.texts)) & set("@#<>[]!`")


def spaced(text: str) -> str:
    """Return a text with spaces where it has some at which no line breaks."""
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_markdown_has_no_markup_of_a_tenant(tmp_path: Path) -> None:
    text = run("results", save(tmp_path / "run", [hostile()]), "-o", "markdown").stdout
    page = Page(text)
    assert set(page.tags) <= ALLOWED
    assert page.tags.count("tr") == 2
    assert page.tags.count("td") == page.tags.count("th")
    assert not set("".join(page.texts)) & set("@#[]<>")
    assert quote(HOSTILE) in page.code


def test_markdown_of_runs_has_verdicts_numbers_and_remedies(directory: Path) -> None:
    text = run("results", str(directory), "-o", "markdown").stdout
    assert text.startswith(
        "## ❌ Invalid: run `default/quickstart`\n\n4 points: 1 Invalid, 1 Unfinished, 1 Suspect, 1 Valid.\n"
    )
    assert "| ✅ Valid | `random-read` | `randread 4Ki qd16` | 2 | read | 21,700 ± 9,503 | 84.8 | 12.5 ms |" in spaced(
        text
    )
    assert "- ❌ Invalid: NoTrialCounts at `random-write-000`: measured 1, limit 2.\n" in text
    assert set(Page(text).tags) <= ALLOWED


@pytest.mark.parametrize(
    ("measured", "lines"),
    [
        (
            searched(above()),
            [
                "| ✅ Valid | line | `randread 4Ki up to qd64` | `p99 <= 5 ms` | 2 | more than 200,000 IOPS |",
                "- `line-000`: `carries more than 200,000 IOPS at p99 <= 5 ms`. The line is above 200,000 IOPS",
            ],
        ),
        (
            matrix_point(matrix(full_mesh(range(6), range(6)) | {(2, 3): 100})),
            [
                "The slowest of 30 links at `w-000`, in Mbit/s; a star is far below comparable links (LinkOutlier):",
                "| `client 2 (n2)` | `client 3 (n3)` | `100*` | 100 | - |",
            ],
        ),
    ],
)
def test_markdown_has_lines_and_links(tmp_path: Path, measured: BenchmarkResult, lines: Sequence[str]) -> None:
    text = run("results", save(tmp_path / "run", [measured]), "-o", "markdown").stdout
    assert [line for line in lines if line not in spaced(text)] == []
    assert set(Page(text).tags) <= ALLOWED


def test_markdown_of_a_comparison_has_its_conclusion_first(tmp_path: Path) -> None:
    sources = saved(tmp_path, "base", steady(1000)), saved(tmp_path, "slower", steady(800))
    compared = run("compare", *sources, "-o", "markdown")
    assert compared.exit_code == 3
    assert compared.stdout.startswith(f"## ❌ Regression: `{sources[1]}` against `{sources[0]}`\n")
    assert "| ❌ Regression, confirmed | w | " in compared.stdout
    assert "| read | iops | 998 | 798 | -20.0 % | -21.0 % to -19.0 % |" in spaced(compared.stdout)
    assert "<summary>Other metrics, which do not decide (3 rows)</summary>" in compared.stdout
    assert set(Page(compared.stdout).tags) <= ALLOWED


def test_markdown_of_a_round_says_how_to_accept_it(tmp_path: Path) -> None:
    rounds = [str(written_round(tmp_path, number, {"old": 1 - number // 4 * 0.2})) for number in range(5)]
    text = run("results", *rounds, "-o", "markdown").stdout
    name = json.loads(run("results", *rounds, "-o", "json").stdout)["rounds"][-1]["round"]
    assert text.startswith(f"## ❌ Regressed: round `{name}` of suite weekly\n")
    assert f"accept the round: `--accept {name}`" in text
    assert "### ❌ Regression: upgrade, compared with 4 accepted rounds" in text
    assert set(Page(text).tags) <= ALLOWED


def test_markdown_fits_into_a_comment(tmp_path: Path, results: list[BenchmarkResult]) -> None:
    many = [
        each.model_copy(
            update={
                "spec": each.spec.model_copy(update={"point": f"p-{number}"}),
                "metadata": each.metadata.model_copy(update={"name": f"p-{number}"}),
            }
        )
        for number, each in enumerate(results * 256)
    ]
    text = run("results", save(tmp_path / "run", many), "-o", "markdown").stdout
    assert MAX_CHARACTERS - 500 < len(text) <= MAX_CHARACTERS
    assert "\n\n</details>\n\n**Cut here:** a comment has at most 65,536 characters. `plimsoll results -o json`" in text


# Otava


def rows_of(shown: Result) -> list[dict[str, str]]:
    assert shown.exit_code == 0, shown.output
    return [*csv.DictReader(io.StringIO(shown.stdout))]


def test_otava_gets_a_row_of_numbers_for_each_round_by_time(tmp_path: Path) -> None:
    rounds = [str(written_round(tmp_path, number, {"new": 1 + number / 10})) for number in range(3)]
    shown = run("results", *reversed(rounds), "-o", "otava-csv")
    rows = [*csv.DictReader(io.StringIO(shown.stdout))]
    assert [*rows[0]][:5] == ["time", "round", "verdict", "accepted", "kernel"]
    assert [*rows[0]][5:] == [
        f"{variant}.w-000.read.{metric}" for variant in ("old", "new") for metric in ("iops", "p99")
    ]
    assert [row["time"] for row in rows] == sorted(row["time"] for row in rows)
    assert [float(row["new.w-000.read.iops"]) / float(rows[0]["old.w-000.read.iops"]) for row in rows] == [
        pytest.approx(1 + number / 10, rel=1e-3) for number in range(3)
    ]


def test_otava_has_hostile_texts_in_one_cell(tmp_path: Path) -> None:
    (row,) = rows_of(run("results", save(tmp_path / "run", [hostile()]), "-o", "otava-csv"))
    assert row["run"] == printable_text(f"{HOSTILE}/{HOSTILE}")


def test_otava_gets_only_columns_without_gaps(tmp_path: Path, results: list[BenchmarkResult]) -> None:
    first = save(tmp_path / "first", results[:2])
    other = [each.model_copy(update={"spec": each.spec.model_copy(update={"run_uid": "v"})}) for each in results]
    shown = run("results", first, save(tmp_path / "second", [other[0], other[2]]), "-o", "otava-csv")
    rows = rows_of(shown)
    assert len(rows) == 2
    assert {key.rpartition(".")[0] for key in rows[0] if "." in key} == {"random-read-000.read"}
    assert "Left out, because not every row has them: mixed-with-quite-a-long-name-000.read.iops" in shown.stderr
    refused = run("results", save(tmp_path / "none", [results[2]]), "-o", "otava-csv")
    assert refused.exit_code == 1
    assert "Left out, because they have no numbers: default/quickstart." in refused.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--probes", "-o", "junit"), "--probes does not support -o junit"),
    ],
)
def test_options_that_do_not_fit_are_refused(directory: Path, arguments: Sequence[str], message: str) -> None:
    refused = run("results", str(directory), *arguments)
    assert refused.exit_code == 2
    assert message in refused.output
