"""Write manifests/samples and its index from the manifests of `plimsoll init`; with --check, fail on a difference."""

# ruff: noqa: INP001 - a script, run by path
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml
from generated import update

from plimsoll.cli.init import JOBS, manifest, question

DIRECTORY = Path(__file__).parent.parent / "manifests" / "samples"
INTRODUCTION = """\
# Samples

<!-- Generated from operator/src/plimsoll/cli/jobs by `make generate`; change it there. -->

Each file answers one question. `plimsoll init JOB` prints it; `--storage-class`, `--rook` and `--pool` put
your names into it. `plimsoll plan FILE` shows what it measures, writes and takes. No file names a namespace; the
comments assume `bench`.

```
plimsoll init network | plimsoll plan -
plimsoll init claim-latency --storage-class fast > run.yaml
kubectl --namespace bench apply --filename run.yaml
```

An administrator sets the chart's values that a sample needs; its first comment has them
([Allow](../../docs/how-to/allow.md#ceph)). Pools with three copies need three hosts with OSDs.

| question | sample | needs | takes |
|---|---|---|---|
"""
VALUES = re.compile(r"# Values of the chart, for runs in the namespace bench:\n((?:#   .*\n)+)")
PROFILE = re.compile(r"# Pod Security profile of its namespace: (\w+)")
TIME = re.compile(r"[Tt]akes about (\d+ minutes)")


def files() -> Iterator[tuple[Path, str]]:
    """Yield the samples and their index."""
    texts = {job: manifest(job) for job in JOBS}
    for job, text in texts.items():
        yield DIRECTORY / f"{job}.yaml", text
    yield DIRECTORY / "README.md", INTRODUCTION + "".join(f"{_row(job, text)}\n" for job, text in texts.items())


def _row(job: str, text: str) -> str:
    document = yaml.safe_load(text)
    spec = document["spec"].get("run", document["spec"])
    storage = spec.get("storage", {})
    needs = [] if storage else [f"{spec['clients']['count']} nodes"]
    if "storageClass" in storage:
        needs.append("raw disks as PersistentVolumes" if PROFILE.findall(text) == ["baseline"] else "a StorageClass")
    if "existingPool" in storage.get("rook", {}):
        needs.append("a pool whose owner allows benchmarks")
    for values in VALUES.findall(text):
        names = ", ".join(f"`{name}`" for name in yaml.safe_load(values.replace("#   ", "")))
        needs.append(f"the chart's {names}")
    if PROFILE.findall(text) != ["restricted"]:
        needs.append(f"a namespace with the profile `{PROFILE.findall(text)[0]}`")
    (time,) = TIME.findall(text)
    a_round = " each round" if document["kind"] == "BenchmarkSuite" else ""
    return f"| {question(job)} | [{job}.yaml]({job}.yaml) | {', '.join(needs)} | {time}{a_round} |"


if __name__ == "__main__":
    sys.exit(update(files(), DIRECTORY.iterdir()))
