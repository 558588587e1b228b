"""Options, inputs and outputs that several commands share."""

import csv
import json
import re
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
import yaml
from pydantic import JsonValue
from pydantic.alias_generators import to_camel

from plimsoll.api.errors import Problem, SpecError, shown
from plimsoll.api.manifest import MAX_TEXT_BYTES, read_manifest
from plimsoll.api.names import RUN_KIND, SUITE_KIND, Metric
from plimsoll.api.run import BenchmarkRun, decode_run
from plimsoll.api.suite import BenchmarkSuite, decode_suite
from plimsoll.measure.compare.values import COMPARED, DEFAULT_GATES, RegressionRule
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import check_fits_deadline, make_plan
from plimsoll.report.pipelines import OtavaTable
from plimsoll.report.view import Column, csv_rows
from plimsoll.suite.children import variant_plans

STANDARD_INPUT = Path("-")
_PERCENT = 100
TABLE, YAML, CSV = "table", "yaml", "csv"
JUNIT, MARKDOWN, OTAVA = "junit", "markdown", "otava-csv"

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


destroy_option = click.option(
    "--destroy-data", is_flag=True, help="Confirm that the data on the devices may be destroyed."
)
results_option = click.option(
    "--results",
    type=click.Path(file_okay=False, path_type=Path),
    help="On this machine: directory of the results [plimsoll-results/NAME].",
)
load_seed_option = click.option(
    "--seed", type=click.IntRange(min=0), help="Seed of the order and the load; random by default."
)


def _output_option(*forms: str, text: str | None = None) -> Callable[[F], F]:
    return click.option("-o", "--output", type=click.Choice(forms), default=TABLE, show_default=True, help=text)


document_option = _output_option(TABLE, "json", YAML)
output_option = _output_option(TABLE, "json", YAML, CSV)
pipeline_option = _output_option(
    *(TABLE, "json", YAML, CSV, JUNIT, MARKDOWN, OTAVA),
    text="The last three are for pipelines: JUnit XML, a comment on a pull request, and input of Apache Otava.",
)
strict_option = click.option("--strict", is_flag=True, help="Exit with 5 also if a number is Suspect.")
fio_option = click.option("--fio", default="fio", envvar="PLIMSOLL_FIO", help="The fio to run.  [env: PLIMSOLL_FIO]")


def rule_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a rule, which the command gets as `rule`."""
    default = RegressionRule()

    def threshold(name: str, share: float, low: float, high: float, text: str) -> Callable[[F], F]:
        limits = click.FloatRange(min=low, max=high)
        return click.option(name, type=limits, default=share * _PERCENT, show_default=True, help=text)

    @threshold("--threshold-rate", default.rate, 0.1, 90, "Tolerated decrease of a rate, in percent.")
    # A bin of the histogram is up to 1.6 % of a latency wide.
    @threshold("--threshold-latency", default.latency, 2, 1000, "Tolerated increase of a latency, in percent.")
    @click.option(
        "--gate",
        "gates",
        multiple=True,
        type=click.Choice([metric.value for metric in COMPARED]),
        default=[metric.value for metric in COMPARED if metric in DEFAULT_GATES],
        show_default=True,
        help="Metric that gates; may be repeated. The others are only reported. The line of a search always gates.",
    )
    @wraps(function)
    def command(threshold_rate: float, threshold_latency: float, gates: tuple[str, ...], **others: object) -> None:
        metrics = frozenset(map(Metric, gates))
        rule = RegressionRule(rate=threshold_rate / _PERCENT, latency=threshold_latency / _PERCENT, gates=metrics)
        function(rule=rule, **others)

    return command


_DURATION = re.compile(r"(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,9})s)?")


def duration(value: object) -> int:
    """Return a duration in seconds: `90s`, `15m`, `1h30m`, or a plain number of seconds."""
    text = str(value)
    match = _DURATION.fullmatch(f"{text}s" if text.isdecimal() else text)
    seconds = sum(int(part) * unit for part, unit in zip(match.groups(0), (3600, 60, 1), strict=True)) if match else 0
    if not seconds:
        raise click.BadParameter(f"{text!r} is not a duration; write it as 90s, 15m or 1h30m")
    return seconds


_CLASS_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")  # source: Kubernetes, RFC 1123 subdomains


def _class_name(value: str) -> str:
    if not _CLASS_NAME.fullmatch(value):
        raise click.BadParameter(
            f"{value!r} cannot be the name of a StorageClass, which consists of lower-case letters, digits, '-' and "
            "'.'; `kubectl get storageclasses` lists them"
        )
    return value


def storage_class_option(text: str) -> Callable[[F], F]:
    return click.option("--storage-class", type=_class_name, metavar="NAME", help=text)


def timeout_option(text: str, default: str | None = None) -> Callable[[F], F]:
    help_text = f"{text}, such as 90s, 15m or 1h30m."
    return click.option(
        "--timeout", type=duration, metavar="TIME", default=default, show_default=default is not None, help=help_text
    )


def write_document(document: object, form: str) -> None:
    """Print a JSON document as JSON or YAML, in its own order. Unprintable characters are escaped, so none is lost."""
    text = json.dumps(document, indent=1).replace("\x7f", "\\u007f")
    if form == YAML:
        # From JSON, because the YAML dumper does not support StrEnum.
        value = json.loads(text)
        # Otherwise it escapes what is not ASCII.
        is_printable = json.dumps(value, ensure_ascii=False).isprintable()
        text = yaml.safe_dump(value, sort_keys=False, allow_unicode=is_printable, width=120).rstrip("\n")
    click.echo(text)


def document_of(value: object, *names: str) -> dict[str, Any]:
    """Return attributes of an object as JSON has them: by their names in camelCase."""
    return {to_camel(name): getattr(value, name) for name in names}


def write_csv(columns: Sequence[Column[T]], rows: Iterable[T]) -> None:
    """Print rows with a header: base units, plain numbers, empty cells for unknown values."""
    writer = csv.DictWriter(sys.stdout, [column.key for column in columns if column.key], lineterminator="\n")
    writer.writeheader()
    writer.writerows(csv_rows(columns, rows))


def write_otava(table: OtavaTable) -> None:
    """Print a table as CSV, and name on standard error what the table leaves out."""
    lines, notes = table
    if len(lines) == 1:
        raise click.ClickException(f"there is nothing to write as {OTAVA}. {' '.join(notes)}")
    csv.writer(sys.stdout, lineterminator="\n").writerows(lines)
    for note in notes:
        click.echo(note, err=True)


def read_file(path: Path) -> BenchmarkRun | BenchmarkSuite:
    """Read the file of a run or a suite; exits with all its errors, except those that variants have as runs."""
    return decode_file(path, read_document(path))


def decode_file(path: Path, document: JsonValue) -> BenchmarkRun | BenchmarkSuite:
    """Return the run or the suite of a document; exits if it is invalid. Errors name `path`."""
    with _valid(path):
        kind = document.get("kind", RUN_KIND) if isinstance(document, dict) else RUN_KIND
        if kind not in (RUN_KIND, SUITE_KIND):
            problem = Problem(field="kind", value=shown(kind), remedy=f"must be {RUN_KIND} or {SUITE_KIND}")
            raise SpecError([problem])
        return decode_suite(document) if kind == SUITE_KIND else decode_run(document)


def read_document(path: Path) -> JsonValue:
    """Return the document in a file, or `-` for standard input, which need not be valid; exits if there is none."""
    with _valid(path):
        try:
            with click.open_file(str(path), "rb") as file:
                # Just enough of an endless file to reject it.
                content = file.read(MAX_TEXT_BYTES + 1)
            text = content.decode(errors="strict" if len(content) <= MAX_TEXT_BYTES else "replace")
        except UnicodeDecodeError as error:
            raise SpecError([Problem(field="", remedy=f"is not UTF-8 text (byte {error.start})")]) from error
        except OSError as error:
            raise SpecError([Problem(field="", remedy=f"cannot be read: {error.strerror}")]) from error
        return read_manifest(text)


def freeze(path: Path, run: BenchmarkRun, seed: int | None) -> Plan:
    """Return the plan of a run, with a random seed by default; exits if the run cannot be planned."""
    with _valid(path):
        plan = make_plan(run, seed=chosen_seed(seed))
        check_fits_deadline(plan)
        return plan


def freeze_variants(path: Path, suite: BenchmarkSuite, seed: int) -> dict[str, Plan]:
    """Return a plan of each variant, by its name; exits with all errors if the suite cannot be measured."""
    with _valid(path):
        return variant_plans(suite, seed=seed)


def chosen_seed(seed: int | None) -> int:
    return secrets.randbits(63) if seed is None else seed


@contextmanager
def _valid(path: Path) -> Iterator[None]:
    """Exit with all errors if the block finds that the document is invalid."""
    try:
        yield
    except SpecError as error:
        lines = "\n".join(f"  {line}" for line in str(error).splitlines())
        source = "standard input" if path == STANDARD_INPUT else path
        raise click.ClickException(f"{source} is invalid:\n{lines}") from error
