"""Write manifests/samples and its index from the manifests of `plimsoll init`; with --check, fail on a difference."""

# ruff: noqa: INP001 - a script, run by path
import re
import sys
from pathlib import Path

import yaml

from plimsoll.cli.init import JOBS, manifest, question

DIRECTORY = Path(__file__).parent.parent / "manifests" / "samples"
INTRODUCTION = """\
# Samples

<!-- Generated from operator/src/plimsoll/cli/jobs by `make generate`; change it there. -->

Each file answers one question. `plimsoll init JOB` prints it with the names of your StorageClass and Rook cluster, and
`plimsoll plan FILE` shows what it measures, writes and takes. No file names a namespace; the comments assume `bench`.

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


def main() -> int:
    """Return the exit code."""
    texts = {f"{job}.yaml": manifest(job) for job in JOBS}
    texts["README.md"] = INTRODUCTION + "".join(f"{_row(job, texts[f'{job}.yaml'])}\n" for job in JOBS)
    written = {path.name: path.read_text() for path in DIRECTORY.iterdir()}
    if "--check" in sys.argv:
        if written != texts:
            names = sorted(name for name in written | texts if written.get(name) != texts.get(name))
            sys.stderr.write(f"manifests/samples: {', '.join(names)} is out of date; run `make generate`\n")
        return int(written != texts)
    for name in written.keys() - texts.keys():
        (DIRECTORY / name).unlink()
    for name, text in texts.items():
        (DIRECTORY / name).write_text(text)
    return 0


def _row(job: str, text: str) -> str:
    document = yaml.safe_load(text)
    spec = document["spec"].get("run", document["spec"])
    storage = spec.get("storage", {})
    needs = [] if storage else [f"{spec['clients']['count']} nodes"]
    if "storageClass" in storage:
        needs.append("raw disks as PersistentVolumes" if PROFILE.findall(text) == ["baseline"] else "a StorageClass")
    for values in VALUES.findall(text):
        names = ", ".join(f"`{name}`" for name in yaml.safe_load(values.replace("#   ", "")))
        needs.append(f"the chart's {names}")
    if PROFILE.findall(text) != ["restricted"]:
        needs.append(f"a namespace with the profile `{PROFILE.findall(text)[0]}`")
    (time,) = TIME.findall(text)
    a_round = " each round" if document["kind"] == "BenchmarkSuite" else ""
    return f"| {question(job)} | [{job}.yaml]({job}.yaml) | {', '.join(needs)} | {time}{a_round} |"


if __name__ == "__main__":
    sys.exit(main())
