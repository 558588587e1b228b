import importlib.util
import io
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from support.apiserver import wait_until

SCRIPT = Path(__file__).parents[3] / "hack" / "stages.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("stages", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["stages"] = module
    sys.path.append(str(SCRIPT.parent))
    spec.loader.exec_module(module)
    return module


stages = load()


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(stages, "LOGS", tmp_path)
    return tmp_path


def run(definition: str, *, cold: bool = False, keep_going: bool = False) -> tuple[int, str]:
    output = io.StringIO()
    chosen = stages.select(stages.read_stages(definition), [])
    code = stages.Runner(chosen, cold=cold, keep_going=keep_going, output=output).run()
    return code, output.getvalue()


def test_the_definitions_can_be_read_and_each_stage_can_be_chosen() -> None:
    defined = stages.read_stages(stages.DEFINITIONS.read_text())
    for name in defined:
        chosen = [stage.name for stage in stages.select(defined, [name])]
        assert chosen[-1] == name
        assert set(chosen) >= set(defined[name].after)


def test_a_stage_by_name_is_left_out_unless_it_is_named() -> None:
    defined = stages.read_stages(
        """
        [all]
        command = ":"
        warm = 1
        [few]
        command = ":"
        warm = 1
        by_name = true
        """
    )
    assert [stage.name for stage in stages.select(defined, [])] == ["all"]
    assert [stage.name for stage in stages.select(defined, ["few"])] == ["few"]


def test_budgets_add_up_along_the_longest_path() -> None:
    defined = stages.read_stages(
        """
        [a]
        command = ":"
        warm = 10
        cold = 100
        [b]
        command = ":"
        warm = 20
        after = ["a"]
        [c]
        command = ":"
        warm = 5
        after = ["a"]
        """
    )
    assert stages.longest_path(defined, cold=False) == 30
    assert stages.longest_path(defined, cold=True) == 120


def test_a_stage_may_come_before_others_on_the_processor(logs: Path) -> None:
    code, output = run(
        """
        [a]
        command = 'sleep 0.5; cat /proc/self/autogroup; echo 1 passed'
        nice = 5
        warm = 60
        """
    )
    assert code == 0, output
    assert " nice 5" in output


def test_a_command_is_told_its_stage(logs: Path) -> None:
    code, output = run("[a]\ncommand = 'echo this is $PLIMSOLL_STAGE'\nwarm = 60\n")
    assert code == 0
    assert "this is a\n" in output


def test_a_need_that_is_not_defined_is_named() -> None:
    with pytest.raises(ValueError, match="stage a needs b, not defined before it"):
        stages.read_stages('[a]\ncommand = ":"\nwarm = 1\nafter = ["b"]\n')


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    defined = stages.read_stages('[a]\ncommand = ":"\nwarm = 1\n')
    with pytest.raises(ValueError, match="no stage x; there are a"):
        stages.select(defined, ["x"])


def test_stages_run_side_by_side_but_for_what_they_need(logs: Path) -> None:
    meet = "touch {0}/{1}; for _ in {{1..100}}; do [[ ! -e {0}/{2} ]] || exit 0; sleep 0.1; done; exit 1"
    code, output = run(
        f"""
        [a]
        command = '{meet.format(logs, "a", "b")}'
        warm = 60
        [b]
        command = '{meet.format(logs, "b", "a")}'
        warm = 60
        [c]
        command = '[[ -e {logs}/a && -e {logs}/b ]] && echo 3 passed'
        warm = 60
        after = ["a", "b"]
        """
    )
    assert code == 0, output
    assert "3 passed" in output
    assert output.index("c: started") > max(output.index("a: passed"), output.index("b: passed"))


def test_a_failure_shows_everything_and_ends_what_else_runs_with_its_children(logs: Path) -> None:
    code, output = run(
        f"""
        [long]
        command = 'sleep 600 & echo $! > {logs}/pid; wait'
        warm = 1
        [bad]
        command = 'until [[ -s {logs}/pid ]]; do sleep 0.1; done; seq 100 199; exit 7'
        warm = 1
        [never]
        command = 'touch {logs}/never'
        warm = 1
        after = ["bad"]
        """
    )
    assert code == 7
    assert "100\n101\n" in output
    assert not (logs / "never").exists()
    pid = int((logs / "pid").read_text())
    deadline = time.monotonic() + 20
    while _runs(pid):
        assert time.monotonic() < deadline, "it still runs"
        time.sleep(0.05)


def test_with_keep_going_only_what_needs_the_failed_one_is_left_out(logs: Path) -> None:
    code, _ = run(
        f"""
        [bad]
        command = 'exit 3'
        warm = 1
        [other]
        command = 'sleep 0.5; touch {logs}/other'
        warm = 1
        [never]
        command = 'touch {logs}/never'
        warm = 1
        after = ["bad"]
        """,
        keep_going=True,
    )
    assert code == 3
    assert (logs / "other").exists()
    assert not (logs / "never").exists()


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize(("cold", "over"), [(False, True), (True, False)])
def test_a_stage_over_its_budget_names_its_slowest_tests(*, cold: bool, over: bool) -> None:
    code, output = run(
        """
        [slow]
        command = 'echo "12.50s call     tests/a.py::test_x"; echo "90.10s setup    tests/a.py::test_y"'
        warm = 0
        cold = 600
        """,
        cold=cold,
    )
    assert code == 0
    closing = output.partition("stage ")[2]
    assert ("over budget" in closing) is over
    assert ("90 s  tests/a.py::test_y" in closing) is over
    assert "total" in closing


def test_a_log_that_is_no_text_is_shown_all_the_same(logs: Path) -> None:
    code, output = run("[odd]\ncommand = 'printf \"\\\\377\\\\n1 passed\\\\n\"'\nwarm = 9\n")
    assert code == 0
    assert "1 passed" in output
    assert [path.name for path in logs.iterdir()] == ["odd.log"]


def test_a_stage_that_hangs_is_stopped_and_fails(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "LEAST_DEADLINE_SECONDS", 0.5)
    code, output = run("[hung]\ncommand = 'sleep 600 & wait'\nwarm = 0.1\n")
    assert code == stages.TIMED_OUT
    assert "hung: timed out after 0:00, stopping it" in output
    assert "FAILED" in output
    assert [path.name for path in logs.iterdir()] == ["hung.log"]


MEASURING = """
from pathlib import Path

import pytest


@pytest.mark.parametrize("where", ["a b", "it's"])
def test_it_passes_alone(where):
    first = Path(f"{__file__}.{len(where)}{where[:1]}")
    failed_before = first.exists()
    first.touch()
    assert failed_before


def test_it_always_passes():
    with Path(f"{__file__}.count").open("a") as count:
        count.write("x")
"""

FAILING = """
import pytest


@pytest.mark.parametrize("number", range(COUNT))
def test_it(number):
    assert False
"""


AFTER_ALL_TESTS = """
import pytest


@pytest.fixture(scope="session")
def seen():
    found = []
    yield found
    assert len(found) < 2


@pytest.mark.parametrize("number", range(2))
def test_it(seen, number):
    seen.append(number)
"""


def measuring(path: Path, tests: str) -> str:
    (path / "test_it.py").write_text(tests)
    (path / "pytest.ini").write_text("[pytest]")
    return f"""
        [measure]
        command = 'cd {path} && eval "{sys.executable} -m pytest -q $ONLY"'
        warm = 60
        repeats = true
        [next]
        command = "echo after"
        after = ["measure"]
        warm = 60
        """


def test_few_failed_tests_are_repeated_alone_when_all_else_is_over(logs: Path, tmp_path: Path) -> None:
    code, output = run(measuring(tmp_path, MEASURING))
    assert code == 0, output
    assert output.index("next: passed") < output.index("measure-repeated: started")
    assert (tmp_path / "test_it.py.count").read_text() == "x"
    names = "test_it.py::test_it_passes_alone[a b], test_it.py::test_it_passes_alone[it's]"
    assert output.endswith(f"repeated alone after a failure in measure: {names}\n")


def test_a_test_that_fails_again_fails_the_run(logs: Path, tmp_path: Path) -> None:
    code, output = run(measuring(tmp_path, FAILING.replace("COUNT", "3")))
    assert code != 0
    assert "next: passed" in output
    assert "measure-repeated: FAILED" in output


def test_many_failed_tests_are_not_repeated(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "test_another.py").write_text("def test_it():\n    assert False\n")
    code, output = run(measuring(tmp_path, FAILING.replace("COUNT", "12")))
    assert code != 0
    assert "repeated" not in output
    assert "next: started" not in output


def test_tests_of_one_file_may_share_what_failed(logs: Path, tmp_path: Path) -> None:
    code, output = run(measuring(tmp_path, FAILING.replace("COUNT", "13")))
    assert code != 0
    assert "measure-repeated: FAILED" in output


def test_a_command_that_fails_without_a_failed_test_is_not_repeated(logs: Path) -> None:
    code, output = run("[measure]\ncommand = 'exit 3'\nwarm = 60\nrepeats = true\n")
    assert code == 3
    assert "repeated" not in output


@pytest.mark.parametrize(
    "tests",
    [AFTER_ALL_TESTS, "import missing_altogether\n", f"{FAILING}\n\ndef test_last():\n    pytest.exit('no')\n"],
    ids=["teardown", "collection", "exit"],
)
def test_what_is_not_the_failure_of_one_test_is_not_repeated(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tests: str
) -> None:
    """pytest names a test or a file all the same, and it could pass alone, whatever the others show."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    code, output = run(measuring(tmp_path, tests.replace("COUNT", "1")))
    assert code != 0
    assert stages.failed_tests(logs / "measure.pytest")
    assert "repeated" not in output


def test_a_signal_stops_all_stages_and_a_second_one_changes_nothing(tmp_path: Path) -> None:
    """A group of processes that is stopped gets it twice: from the sender, and from make."""
    at_the_end = f"touch {tmp_path}/stopping; sleep 1; touch {tmp_path}/stopped; exit 1"
    stopping = f"trap '{at_the_end}' TERM; touch {tmp_path}/started; sleep 60 & wait"
    (tmp_path / "stages.toml").write_text(f"[long]\ncommand = {stopping!r}\nwarm = 60\n")
    script = "import stages, sys, pathlib; here = pathlib.Path(sys.argv[1])\n"
    script += "stages.DEFINITIONS, stages.LOGS = here / 'stages.toml', here / 'logs'; sys.exit(stages.main([]))"
    process = subprocess.Popen([sys.executable, "-c", script, tmp_path], cwd=SCRIPT.parent)
    for mark in ("started", "stopping"):
        wait_until((tmp_path / mark).exists, f"the stage is {mark}")
        process.terminate()
    assert process.wait(timeout=20) == 128 + signal.SIGTERM
    assert (tmp_path / "stopped").exists()


SKIPPING = """
import pytest


@pytest.fixture(scope="module")
def definitions():
    pytest.skip("no definitions: nothing is compared with them")


@pytest.mark.parametrize("number", range(2))
def test_it(definitions, number):
    pass


def test_another():
    pytest.skip("no reason")
"""


def test_the_last_lines_name_what_was_not_tested_and_why(logs: Path, tmp_path: Path) -> None:
    code, output = run(measuring(tmp_path, SKIPPING).replace("pytest -q", "pytest -q -ra"))
    assert code == 0, output
    lines = [
        "not tested in measure: test_it.py:10: no definitions: nothing is compared with them (tests: 2)",
        "not tested in measure: test_it.py:16: no reason (tests: 1)",
    ]
    assert output.splitlines()[-2:] == lines
    assert (logs / stages.NOT_TESTED).read_text().splitlines() == lines
    run("[fine]\ncommand = ':'\nwarm = 60\n")
    assert not (logs / stages.NOT_TESTED).exists(), "it would be of an earlier run"


def test_a_stage_that_was_not_run_is_named_last(logs: Path) -> None:
    code, output = run("[bad]\ncommand = 'exit 3'\nwarm = 9\n[never]\ncommand = ':'\nwarm = 9\nafter = ['bad']\n")
    assert code == 3
    assert output.endswith("not run: never\n")
    assert (logs / stages.NOT_TESTED).read_text() == "not run: never\n"


def test_the_groups_of_tests_are_not_part_of_their_names(tmp_path: Path) -> None:
    cache = tmp_path / "v" / "cache" / "lastfailed"
    cache.parent.mkdir(parents=True)
    cache.write_text('{"a.py::b[x@y]@kube": true, "a.py::c[x@y]": true}')
    assert stages.failed_tests(tmp_path) == ["a.py::b[x@y]", "a.py::c[x@y]"]


def test_a_stage_without_tests_is_repeated_as_a_whole(logs: Path, tmp_path: Path) -> None:
    fails_once = f"test -e {tmp_path}/before || {{ touch {tmp_path}/before; exit 3; }}"
    code, output = run(f"[demo]\ncommand = '{fails_once}'\nwarm = 60\nrepeats_whole = true\n")
    assert code == 0
    assert "demo: FAILED with exit code 3" in output
    assert "demo-repeated: passed" in output
    assert output.endswith("repeated alone after a failure in demo: all of it\n")


def test_a_stage_that_fails_again_as_a_whole_fails_the_run(logs: Path) -> None:
    code, output = run("[demo]\ncommand = 'exit 3'\nwarm = 60\nrepeats_whole = true\n")
    assert code == 3
    assert "demo-repeated: FAILED with exit code 3" in output
