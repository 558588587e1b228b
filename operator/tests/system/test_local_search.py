"""A search for the line in local mode, with real processes and a real fio."""

from pathlib import Path

import pytest

from plimsoll.api.line import MOST_PROBES, Ending, ProbeOutcome
from plimsoll.api.names import Verdict
from plimsoll.cli import Exit
from support.local_run import LocalRun, make_spec

pytestmark = [pytest.mark.system, pytest.mark.fio, pytest.mark.usefixtures("own_disk")]

SEARCH = {
    "start": 200,
    "limit": 400,
    "precisionPercent": 20,
    # Any storage meets it, or fills the depth: the line lies above the limit, whatever else the machine does.
    "objectives": [{"percentile": "50", "latency": "200ms"}],
}
WORKLOAD = {
    "name": "line",
    "fio": {"pattern": "randread", "blockSize": ["4Ki"], "ioDepth": [64]},
    "runtimeSeconds": 2,
    "rampSeconds": 1,
    "line": SEARCH,
}


def test_a_search_that_was_interrupted_continues_and_finds_that_the_line_is_above_its_limit(
    tmp_path: Path, fio: str
) -> None:
    spec = make_spec(workloads=[WORKLOAD], repetitions=1)
    with LocalRun(tmp_path, fio, spec) as run:
        run.wait_for(lambda: len(run.trials()) >= 2)
        run.wait_for_trial(seconds_in=0.5)
        run.interrupt()
        assert run.finish()[0] == Exit.INTERRUPTED
    with LocalRun(tmp_path, fio, None, "--resume") as run:
        code, _, err = run.finish(seconds=300)
    assert code == 0, err
    (result,) = run.found()
    assert result.spec.repetitions == MOST_PROBES
    assert result.spec.line is not None
    status = result.status
    assert status.final
    assert status.summary is None
    assert status.line is not None
    assert status.line.ending is Ending.NEVER_BROKE
    assert status.line.low is not None
    assert 200 <= status.line.low <= 400, "what arrived of the limit, of which a busy machine offers less"
    assert status.verdict is not Verdict.INVALID
    offered = [trial.probe.offered for trial in status.trials if trial.probe]
    assert offered[0] == 200
    assert max(offered) == 400, "a busy machine may repeat a load, or need smaller steps"
    counting = [trial.probe for trial in status.trials if trial.probe and trial.probe.outcome is ProbeOutcome.MET]
    assert len(counting) >= 3
    for probe in counting:
        assert probe.achieved is not None
        assert probe.offered / 2 <= probe.achieved <= 1.25 * probe.offered
        assert probe.depth_full_percent is not None
        assert probe.depth_full_percent < 1
    attempts = [(trial.pass_number, trial.attempt) for trial in status.trials]
    assert attempts == sorted(set(attempts))
    assert any(trial.abort is not None for trial in status.trials)
