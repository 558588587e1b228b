"""`plimsoll init JOB`: a short commented manifest for a common job."""

import json
import re
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from string import Template

import click
import yaml

from plimsoll.api.manifest import read_manifest
from plimsoll.cli.cluster import program
from plimsoll.cli.options import decode_file, storage_class_option
from plimsoll.cli.tables import Terminal, facts_table

JOBS = (
    "claim-latency",
    "replica-or-erasure-coding",
    "cephfs",
    "most-iops",
    "storm-line",
    "upgrade-regression",
    "before-upgrade",
    "network",
    "new-disk",
    "whole-stack",
)
"""What people want to know, the most frequent first: the names of the manifests."""

_STORAGE_CLASSES = {"claim-latency": "rook-ceph-block", "new-disk": "raw-devices"}
_OF_A_POOL = "most-iops"  # the job that a StorageClass can have as well
_WORDS = {
    "does the cluster": "does the StorageClass",
    "a pool with three PVCs": "three PVCs",
    " in three copies": "",
    "The OSDs may": "The storage may",
    "their disks": "its disks",
}
"""Words of its manifest about a pool -> about a StorageClass."""
_ROOK = "rook-ceph/rook-ceph"
_CLUSTER = re.compile(r"(?P<rook_namespace>[a-z0-9][-a-z0-9]*)/(?P<rook_name>[a-z0-9][-a-z0-9]*)")


@click.command(short_help="Print a commented manifest for a common question.")
@click.argument("job", type=click.Choice(JOBS), metavar="[JOB]", required=False)
@click.option("--name", help="Name of the run or the suite [JOB].")
@storage_class_option("StorageClass of the PVCs [the sample's].")
@click.option("--rook", metavar="NAMESPACE/NAME", help="CephCluster to measure [the only one that is allowed].")
@click.option("--pool", metavar="NAME", help="Existing pool to measure [the sample's].")
def command(*, job: str | None, **chosen: str | None) -> None:
    """Print a short commented manifest for a common JOB, or without JOB, list the jobs.

    The comments describe what is measured, how much is written, how long it takes, and what an administrator must
    allow:

        plimsoll init claim-latency --storage-class fast > run.yaml
    """
    if job is None:
        if any(chosen.values()):
            raise click.UsageError(f"which job? It is one of {', '.join(JOBS)}")
        Terminal().print(facts_table([(each, question(each)) for each in JOBS]))
        click.echo(f"\n`{program()} init JOB` prints the manifest; `{program()} plan FILE` shows what it costs.")
        return
    click.echo(manifest(job, **chosen), nl=False)


def question(job: str) -> str:
    """Return what the job answers: the first sentence of its manifest."""
    return _template(job).template.partition("?")[0].removeprefix("# ") + "?"


def manifest(job: str, **options: str | None) -> str:
    """Return the manifest of a job; exits if an option of the command is invalid, or if the job has no use for it."""
    template = _template(job)
    given = {option: value for option, value in options.items() if value is not None}
    if job == _OF_A_POOL and "storage_class" in given:
        if "rook" in given:
            raise click.UsageError("--storage-class and --rook are two places to measure; leave one out")
        template = _on_storage_class(template)
    for option in given:
        identifier = "rook_name" if option == "rook" else option
        if identifier not in template.get_identifiers():
            raise click.UsageError(f"--{option.replace('_', '-')} has no effect on {job}; leave it out")
    rook = given.get("rook", _ROOK)
    cluster = _CLUSTER.fullmatch(rook)
    if cluster is None:
        raise click.UsageError(f"--rook {rook!r} is not NAMESPACE/NAME of a CephCluster, such as {_ROOK}")
    defaults = {"name": job, "storage_class": _STORAGE_CLASSES.get(job, ""), "pool": "replicapool"}
    values = {key: _scalar(value) for key, value in (defaults | given | cluster.groupdict()).items()}
    text = template.substitute(values)
    if "rook" not in given:
        # The operator chooses the only cluster that is allowed.
        text = re.sub(r"^ *(rook: {)?cluster: .*\n", "", text, flags=re.MULTILINE)
        text = text.replace(f"{_ROOK}: [bench]}}}}\n", f"{_ROOK}: [bench]}}}} # NAMESPACE/NAME of your CephCluster\n")
    decode_file(Path(job), read_manifest(text))
    return text


def _on_storage_class(template: Template) -> Template:
    """Return the manifest of a run that makes a pool for its PVCs, with PVCs of a StorageClass instead."""
    storage = "    storageClass: {name: $storage_class}\n"
    text = re.sub(r"^    rook:\n(      .*\n)+", storage, template.template, flags=re.MULTILINE)
    # An administrator has nothing to allow.
    text = re.sub(r"^# Values of the chart.*\n(#  .*\n)+#\n", "", text, flags=re.MULTILINE)
    for of_pool, of_class in _WORDS.items():
        text = text.replace(of_pool, of_class)
    return Template(text)


def _scalar(text: str) -> str:
    """Return a text for YAML, in quotes if it would be read as anything else."""
    with suppress(yaml.YAMLError):
        # kubectl also reads 1e3 as a number. In braces, a comma is no part of a text.
        if text[:1].isalpha() and yaml.safe_load(f"[{text}]") == [text]:
            return text
    return json.dumps(text)


def _template(job: str) -> Template:
    return Template((files("plimsoll.cli") / "jobs" / f"{job}.yaml").read_text("utf-8"))
