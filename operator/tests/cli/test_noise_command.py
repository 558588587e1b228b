"""`plimsoll noise`."""

import json

import pytest

from plimsoll.api.names import Metric
from support.command_line import invoke, save, saved_run, saved_runs
from support.results import result, trials_of

pytestmark = pytest.mark.usefixtures(saved_runs.__name__)


def test_noise_of_a_run() -> None:
    text = invoke("noise", "baseline", code=0)
    (iops,) = [line for line in text.splitlines() if " iops " in line]
    assert iops.split()[-10:] == ["998", "5", "0.8", "%", "-", "2.0", "%", "5.0", "%", "gates"]


def test_noise_beyond_the_threshold_is_ungateable() -> None:
    save("noisy", [result(trials_of([850, 950, 1050]), run="noisy")])
    text = invoke("noise", "noisy", code=0)
    assert "w-000 read iops: ungateable: it varies by 10.6 %" in text


def test_noise_of_two_runs_of_the_same() -> None:
    save("drifted", [saved_run("drifted", 1100)])
    document = json.loads(invoke("noise", "baseline", "drifted", "-o", "json", code=0))
    iops = document[0]
    assert (iops["point"], iops["metric"]) == ("w-000", Metric.IOPS)
    assert iops["side"]["trials"] == 10
    assert iops["side"]["deviation"] > 0.04
    assert iops["within"] < 0.01
    assert iops["between"] == pytest.approx(0.067, abs=0.001)
    assert iops["runs"] == 2
    assert "6.7 %" in invoke("noise", "baseline", "drifted", code=0)


def test_noise_of_several_runs_of_the_same() -> None:
    save("third", [saved_run("third", 1010)])
    document = json.loads(invoke("noise", "baseline", "same", "third", "-o", "json", code=0))
    assert (document[0]["runs"], document[0]["side"]["trials"]) == (3, 15)
    assert "baseline, same, same: run default/same is given more than once; name each run once" in invoke(
        "noise", "baseline", "same", "same", code=1
    )


def test_noise_needs_a_point_that_all_runs_have() -> None:
    save("ab", [saved_run("ab", 1000, point="a-000"), saved_run("ab", 1000, point="b-000")])
    for name in ("a", "b"):
        save(name, [saved_run(name, 1000, point=f"{name}-000")])
    assert "ab, a, b have no point in common" in invoke("noise", "ab", "a", "b", code=1)


def test_more_trials_detect_less() -> None:
    few, many = (
        json.loads(invoke("noise", "baseline", "--trials", trials, "-o", "json", code=0))[0]["detectable"]
        for trials in ("3", "10")
    )
    assert many < few


def test_noise_of_different_runs_is_refused() -> None:
    save("other", [saved_run("other", 1000, identity={"clients": 9})])
    assert "`plimsoll compare baseline other` lists the differences" in invoke("noise", "baseline", "other", code=1)
    assert "run default/baseline is given more than once" in invoke("noise", "baseline", "baseline", code=1)
