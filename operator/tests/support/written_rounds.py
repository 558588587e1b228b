"""Rounds of a suite as `plimsoll suite run` leaves them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from plimsoll.api.environment import Environment
from plimsoll.api.names import RunPhase
from plimsoll.api.result import Fingerprint
from plimsoll.api.status import RunState
from plimsoll.cli.options import read_suite
from plimsoll.cli.suite_round import RoundStart
from plimsoll.suite.children import children_of, suite_digest
from support.followed_suites import MINUTE, RATES, SPEC
from support.repeated import result, steady, trials_of

COSTS = {"name": "costs", "baseline": {"variant": "old"}, "candidate": {"variant": "new"}}
COMPARISONS = [*SPEC["comparisons"], COSTS]

WEEK = 7 * 24 * 60
"""Minutes."""


def written_round(
    path: Path, number: int, scale: Mapping[str, float], *, kernel: str = "6.1.0", node: str = "a", **spec: Any
) -> Path:
    """Write a round of a week, and return its directory; `scale` is the rate of each variant, by default 1."""
    directory = path / f"round-{number}"
    directory.mkdir()
    header = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BenchmarkSuite", "metadata": {"name": "weekly"}}
    (directory / "suite.yaml").write_text(yaml.safe_dump({**header, "spec": SPEC | spec}))
    suite = read_suite(directory / "suite.yaml")
    targets: dict[str, tuple[str, ...]] = {variant.name: ("/fast",) for variant in suite.spec.variants}
    start = RoundStart(minute=MINUTE + number * WEEK, seed=1, digest=suite_digest(suite.spec), targets=targets)
    (directory / "round.json").write_text(start.model_dump_json())
    for child in children_of(suite, minute=start.minute, seed=1):
        rate = RATES[child.repeat % len(RATES)] * scale.get(child.variant, 1.0)
        found = result(trials_of(steady(rate)), run=child.name)
        fingerprint = Fingerprint(
            identity={}, context={"kernel": kernel}, identity_sha256="0" * 64, context_sha256="0" * 64
        )
        environment = Environment.model_validate({"kernel": kernel, "nodes": [node]})
        status = found.status.model_copy(update={"fingerprint": fingerprint, "environment": environment})
        results = directory / child.name / "results"
        results.mkdir(parents=True)
        (results / "w-000.json").write_text(found.model_copy(update={"status": status}).model_dump_json())
        (directory / child.name / "state.json").write_text(RunState(phase=RunPhase.COMPLETE).model_dump_json())
    return directory


def rounds_in(path: Path, slow: float = 0.8) -> list[str]:
    """Write five rounds: before the fourth one another kernel is installed, the last one is slow on another node."""
    found = [written_round(path, number, {}, comparisons=COMPARISONS) for number in range(3)]
    found.append(written_round(path, 3, {}, kernel="6.12.0", comparisons=COMPARISONS))
    scale = {"old": slow, "new": slow}
    found.append(written_round(path, 4, scale, kernel="6.12.0", node="b", comparisons=COMPARISONS))
    return [str(one) for one in found]
