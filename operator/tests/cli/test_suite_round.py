"""A round of a suite in a directory: begun once, and resumed only as what it was."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from plimsoll.api.suite import BenchmarkSuite, load_suite
from plimsoll.cli.local_storage import Target
from plimsoll.cli.suite_rounds import LocalRound, begin_round, read_round, resume_round

FAST, SLOW = Target(directory=Path("/fast")), Target(directory=Path("/slow"))


def written(path: Path, **changes: Any) -> tuple[Path, BenchmarkSuite]:
    spec = {
        "run": {
            "storage": {"storageClass": {"name": "any"}, "volume": {"size": "16Mi"}},
            "workloads": [{"name": "w", "fio": {}}],
        },
        "variants": [{"name": "old"}, {"name": "new"}],
    }
    suite = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BenchmarkSuite", "metadata": {"name": "s"}}
    file = path / "s.yaml"
    file.write_text(yaml.safe_dump({**suite, "spec": spec | changes}))
    return file, load_suite(file.read_text())


def begun(path: Path, targets: Mapping[str, Target] | None = None) -> LocalRound:
    return begin_round(path / "out", *written(path), targets or {"old": FAST, "new": SLOW}, 1)


def test_a_round_that_has_begun_is_read_as_it_began(tmp_path: Path) -> None:
    round_ = begun(tmp_path)
    again = read_round(tmp_path / "out")
    assert [*again.turns.items()] == [*round_.turns.items()]
    assert len(again.unfinished) == 6


def test_it_is_resumed_with_new_questions_only(tmp_path: Path) -> None:
    begun(tmp_path)
    question = {"name": "q", "baseline": {"variant": "old"}, "candidate": {"variant": "new"}}
    resume_round(tmp_path / "out", *written(tmp_path, comparisons=[question]), {"old": FAST, "new": SLOW})
    assert [one.name for one in read_round(tmp_path / "out").suite.spec.comparisons] == ["q"]
    with pytest.raises(click.ClickException, match="its run, variants or repeat differ"):
        resume_round(tmp_path / "out", *written(tmp_path, repeat=4), {"old": FAST, "new": SLOW})


def test_repeats_of_a_variant_are_not_measured_on_another_target(tmp_path: Path) -> None:
    begun(tmp_path)
    with pytest.raises(click.ClickException, match="measures variant new on /slow; name the same target"):
        resume_round(tmp_path / "out", *written(tmp_path), {"old": FAST, "new": FAST})


def test_devices_count_in_their_order(tmp_path: Path) -> None:
    first, second = Path("/dev/sdx"), Path("/dev/sdy")
    begun(tmp_path, {"old": FAST, "new": Target(devices=(first, second))})
    with pytest.raises(click.ClickException, match="measures variant new on /dev/sdx, /dev/sdy; name the same"):
        resume_round(tmp_path / "out", *written(tmp_path), {"old": FAST, "new": Target(devices=(second, first))})


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("round.json", "{}", r"contains no round of a suite: [^\0]*minute"),
        ("round.json", None, "contains no round of a suite"),
        ("suite.yaml", "kind: other", r"contains no round of a suite: [^\0]*kind: "),
    ],
)
def test_a_directory_without_a_readable_round_is_refused(
    tmp_path: Path, file: str, text: str | None, message: str
) -> None:
    begun(tmp_path)
    path = tmp_path / "out" / file
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(click.ClickException, match=message):
        read_round(tmp_path / "out")
