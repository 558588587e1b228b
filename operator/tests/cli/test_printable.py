"""No text from a file, a cluster or the command line reaches the terminal as anything but printable characters."""

import copy
import io
import json
import logging
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from plimsoll.api.environment import CephDescription, Environment, PoolLayout
from plimsoll.api.errors import SpecError
from plimsoll.api.json_reader import printable, printable_text
from plimsoll.api.names import SUITE_KIND, Verdict
from plimsoll.api.result import BenchmarkResult, Finding
from plimsoll.api.run import decode_run
from plimsoll.api.suite import decode_suite
from plimsoll.cli import _COMMANDS, main, printable_streams
from plimsoll.cli.options import write_document
from plimsoll.cli.tables import Terminal, facts_table, print_line
from plimsoll.kube.port import ForbiddenError
from support.command_line import (
    SUITE_NAME,
    SUITE_SPEC,
    ConnectedKube,
    Document,
    condition,
    ended,
    ended_round,
    measured_runs,
    rounds_in,
    suite,
    suite_condition,
)
from support.results import ALL_LAYERS, full_mesh, matrix, matrix_point, result, searched, steady, trials_of
from support.specs import document as run_document
from support.specs import manifest

HOSTILE = st.text(st.characters(categories=("Cc", "Cf", "Co", "Zl", "Zp"), exclude_characters="\0\t\n"), min_size=1)
OWNED = "\x1b]0;owned\x07\x1b[8m\x9b31m"
"""Sets the title of a terminal, hides what follows, and colours it."""

STYLE = re.compile(r"\x1b\[[0-9;]*[mAK]|\x1b\[\?25[lh]|\r")
"""What a console of rich writes for its styles and for its live picture."""

Path_ = tuple[str | int, ...]


def leaves(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Yield the paths of all texts of a JSON document."""
    if isinstance(value, str):
        yield path
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from leaves(part, (*path, key))


def poisoned(document: Any, paths: Sequence[Path_], payload: str) -> Any:
    """Return a document with the payload appended to these texts."""
    changed = copy.deepcopy(document)
    for *path, last in paths:
        parent = changed
        for key in path:
            parent = parent[key]
        parent[last] += payload
    return changed


def free_texts(document: Any, decode: Callable[[Any], object]) -> list[Path_]:
    """Return the paths of the texts that may contain anything."""

    def accepted(paths: list[Path_]) -> list[Path_]:
        try:
            decode(poisoned(document, paths, OWNED))
        except (ValueError, SpecError):
            half = len(paths) // 2
            return [*accepted(paths[:half]), *accepted(paths[half:])] if half else []
        return paths

    return accepted([*leaves(document)])


def of_results(*results: BenchmarkResult) -> tuple[list[Any], list[list[Path_]]]:
    documents = [one.model_dump(mode="json") for one in results]
    return documents, [free_texts(one, BenchmarkResult.model_validate) for one in documents]


FINDING = Finding(reason="LowOverlap", verdict=Verdict.SUSPECT, message="measured 1, limit 2")


def with_status(result: BenchmarkResult, **changes: Any) -> BenchmarkResult:
    return result.model_copy(update={"status": result.status.model_copy(update=changes)})


def run_of(rate: float, name: str) -> list[BenchmarkResult]:
    suspect = with_status(
        result(trials_of(steady(rate)), run=name, context={"kernel": "6.1"}),
        verdict=Verdict.SUSPECT,
        findings=(FINDING,),
        environment=Environment.model_validate({"kernel": "6.1", "nodes": ["a"]}),
    )
    links = matrix_point(matrix(full_mesh(range(3), range(3))), run=name, point="m-000")
    return [suspect, searched(run=name, findings=[FINDING]), links]


CEPH = Environment(ceph=CephDescription(fsid="x"), pool=PoolLayout(type="replicated", size=3))
RESULTS = {
    "before": of_results(*run_of(1000, "before")),
    "after": of_results(*run_of(800, "after")),
    "layered": of_results(*(with_status(one, environment=CEPH) for one in ALL_LAYERS)),
}
"""Results by their file, with the paths of their free texts."""

SUITE = manifest(SUITE_KIND, SUITE_SPEC, name=SUITE_NAME)
MANIFESTS = {
    "run.yaml": (RUN := run_document(), free_texts(RUN, decode_run)),
    "suite.yaml": (SUITE, free_texts(SUITE, decode_suite)),
    "bad.yaml": (RUN, [*leaves(RUN)]),
}
"""Runs and suites by their file, with the paths of their free texts; of an invalid one, all texts."""

COMMANDS: Sequence[Sequence[str]] = (
    ("plan", "run.yaml"),
    ("plan", "run.yaml", "-o", "yaml"),
    ("plan", "bad.yaml"),
    ("plan", "bench/nightly"),
    ("plan", "absent{}"),
    ("run", "bad.yaml", "--directory", "."),
    ("results", "before", "after"),
    ("results", "before", "-o", "csv"),
    ("results", "before", "-o", "json"),
    ("results", "before", "-o", "yaml"),
    ("results", "before", "--probes"),
    ("results", "before", "--point", "absent{}"),
    ("results", "bad.yaml"),
    ("results", "bench/nightly"),
    ("results", "bench/absent{}"),
    ("results", "refused/nightly"),
    ("compare", "before", "after"),
    ("compare", "before", "after", "-o", "csv"),
    ("layers", "layered"),
    ("report", "before", "after"),
    ("watch", "bench/nightly"),
    ("watch", "refused/nightly"),
    ("plan", "suite.yaml"),
    ("plan", "bsuite/bench/weekly"),
    ("run", "suite.yaml", "--directory", "old=/absent{}"),
    ("results", "round-0", "round-1", "round-2"),
    ("results", "bsuite/bench/weekly"),
    ("report", "round-0", "round-1"),
    ("watch", "bsuite/bench/weekly"),
    ("watch", "bsuite/bench/weekly", "--quiet"),
    ("run", "bsuite/bench/weekly", "--yes", "--timeout", "1s"),
    ("doctor", "-n", "bench"),
    ("doctor", "--directory", "/absent{}"),
    ("init", "job{}"),
    ("init", "claim-latency", "--storage-class", "class{}"),
    ("absent{}",),
)
"""Each command, with what it reads; `{}` stands for the hostile text."""


def write_files(payload: str) -> None:
    """Write poisoned results, runs, suites and rounds into the current directory."""
    for name, results in RESULTS.items():
        texts = [poisoned(*found, payload) for found in zip(*results, strict=True)]
        Path(name).write_text(json.dumps(texts))
    for name, (document, paths) in MANIFESTS.items():
        changed = poisoned(document, paths, payload)
        Path(name).write_text(json.dumps(changed | {f"unknown{payload}": 1} if name == "bad.yaml" else changed))
    for path in Path().glob("round-*/*/results/*.json"):
        document = json.loads(path.read_text())
        document["spec"]["label"] = f"randread{payload}"
        path.write_text(json.dumps(document))


def put_objects(kube: ConnectedKube, payload: str) -> None:
    """Put a poisoned run, its results, and a suite with its rounds into a cluster, which refuses one namespace."""

    def refuse(request: str) -> None:
        if "refused/" in request or request.endswith(" refused"):
            raise ForbiddenError(f"{request}{payload}", f"webhook: {payload}")

    kube.interfere, kube.user = refuse, payload
    for namespace in ("bench", "refused"):
        kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    run = ended(succeeded=False, message=f"client 1: {payload}")
    run["status"]["conditions"] += [
        condition("StorageReady", "False", payload),
        condition("CleanedUp", "False", payload),
    ]
    kube.put(run | {"spec": poisoned(RUN["spec"], [path[1:] for path in MANIFESTS["run.yaml"][1]], payload)})
    for document, paths in zip(*RESULTS["before"], strict=True):
        changed = poisoned(document, paths, payload)
        changed["metadata"] = {**LABELLED, "name": f"nightly-{document['spec']['point']}"}
        changed["status"]["display"] = {"iops": payload, "trials": "1/1", "reason": payload}
        kube.put(changed)
    stalled = suite_condition("Stalled", "Failing", payload)
    display = {"status": "Stalled", "message": f"round failed: {payload}"}
    kube.put(suite(rounds=[ended_round(0, accepted=True, pinned=True)], conditions=[stalled], display=display))
    for document in measured_runs(range(1)):
        kube.put(document)


LABELLED = {"namespace": "bench", "labels": {"plimsoll.dev/run": "nightly"}}


@pytest.fixture(scope="module", autouse=True)
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Work in a directory with rounds of a suite."""
    path = tmp_path_factory.mktemp("hostile")
    rounds_in(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        yield path


def test_every_command_of_users_is_tried() -> None:
    assert {command[0] for command in COMMANDS} >= {*_COMMANDS}


@pytest.mark.parametrize("is_terminal", [False, True], ids=["file", "terminal"])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@settings(max_examples=3, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=HOSTILE)
def test_a_command_prints_only_printable_characters(
    drawn: str,
    command: Sequence[str],
    is_terminal: bool,  # noqa: FBT001 - a parameter of the test
    connected: ConnectedKube,
) -> None:
    payload = f"{drawn}{OWNED}"
    write_files(payload)
    put_objects(connected, payload)
    Path("report.html").unlink(missing_ok=True)
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "100"} if is_terminal else {}
    found = CliRunner().invoke(main, [part.format(payload) for part in command], env=terminal)
    assert found.exception is None or isinstance(found.exception, SystemExit), found.output
    assert "]0;owned" in found.output or found.exit_code == 0
    text = STYLE.sub("", found.output) if is_terminal else found.output
    assert text == printable_text(text)
    if Path("report.html").exists():
        page = Path("report.html").read_text()
        texts = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
        (figures,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
        assert "]0;owned" in texts
        for text in (texts, json.dumps(json.loads(figures), ensure_ascii=False)):
            assert text == printable_text(text)


@given(st.text())
def test_everything_that_a_program_prints_is_made_printable(text: str) -> None:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), printable_streams():
        sys.stdout.write(text)
        sys.stdout.writelines([text])
        click.echo(text)
        handler = logging.StreamHandler()
        handler.emit(logging.LogRecord("plimsoll", logging.WARNING, "", 0, "%s", (text,), None))
        click.ClickException(text).show()
    for printed in (out.getvalue(), err.getvalue()):
        assert printed == printable_text(printed)
    assert out.getvalue() == printable_text(text) * 2 + printable_text(text) + "\n"


@given(st.text())
def test_a_console_styles_texts_but_never_obeys_them(text: str) -> None:
    out = io.StringIO()
    with redirect_stdout(out), printable_streams():
        console = Terminal()
        print_line(console, text, "bold red")
        console.print(f"[bold]{text}", facts_table([(text, text)]))
    assert out.getvalue() == printable_text(out.getvalue())


def test_a_text_keeps_its_styles_and_its_width() -> None:
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), printable_streams():
        patch.setenv("FORCE_COLOR", "1")
        patch.setenv("TERM", "xterm-256color")
        patch.setenv("COLUMNS", "10")
        print_line(Terminal(), "\x1b[31mx\x9b", "green")
        Terminal().print(facts_table([("a", "\x1b[2J" * 12)]))
    first, *others = out.getvalue().splitlines()
    assert first == "\x1b[32m?[31mx?\x1b[0m"
    assert "?[2J" in "".join(others)
    # Although the text is wider than its characters were.
    assert all(len(STYLE.sub("", line)) <= 10 for line in others)


@given(st.dictionaries(st.text(), st.text() | st.lists(st.text())))
def test_a_document_loses_nothing(document: Document) -> None:
    for form, load in (("json", json.loads), ("yaml", yaml.safe_load)):
        out = io.StringIO()
        with redirect_stdout(out), printable_streams():
            write_document(document, form)
        assert load(out.getvalue()) == document


def test_a_traceback_is_printable() -> None:
    program = "from plimsoll.cli import main\nmain(['--help'], standalone_mode=False)\nraise ValueError('\\x1b[31m')"
    failed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert "ValueError: ?[31m" in failed.stderr
    assert failed.stderr == printable_text(failed.stderr)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x07\x7f\x9b", "?[31mred???"),
        ("right\u202eleft\u200b\u2066", "right?left??"),
        ("line\r\nnext\u2028\x0b\x85", "line?\nnext???"),
        ("\ud800\ue000\U000e0001", "???"),
        ("tab\tno-break\u00a0thin\u2009ü±µ…日本", "tab\tno-break\u00a0thin\u2009ü±µ…日本"),
    ],
)
def test_what_a_terminal_may_obey_or_hide_is_a_question_mark(text: str, shown: str) -> None:
    assert printable_text(text) == shown
    assert printable(text) == shown.replace("\n", "?").replace("\t", "?")


def test_every_console_is_a_terminal_of_ours() -> None:
    others = [
        path.name
        for path in Path(printable_text.__code__.co_filename).parents[1].rglob("*.py")
        if re.search(r"\bConsole\(|from rich import|rich\.(progress|status|prompt|logging)\b", path.read_text())
    ]
    assert others == []
