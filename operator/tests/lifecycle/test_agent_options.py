"""The options of agents whose images are older than the assignment document: as those versions rendered them."""

from collections.abc import Mapping
from typing import Any

import pytest

from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render import client
from support.ceph_runs import SETTINGS, UID, CephRun, ceph_run

COMMON = (
    "--secret=/etc/plimsoll/session",
    "--client=0",
    "--attempt=2",
    "--work=/var/lib/plimsoll",
    "--silence=900",
    "--termination-log=/dev/termination-log",
)
RADOS: Mapping[str, Any] = {"name": "r", "radosBench": {}, "runtimeSeconds": 4, "rampSeconds": 1}
OSDS: Mapping[str, Any] = {
    "name": "o",
    "osdBench": {"keyringSecret": {"name": "k"}},
    "runtimeSeconds": 4,
    "rampSeconds": 1,
}
FIO: Mapping[str, Any] = {"name": "w", "fio": {}, "runtimeSeconds": 4, "rampSeconds": 1}
POOL = "plimsoll-rook-images-f94acc63"


def pod_of_an_earlier_version(made: CephRun) -> Mapping[str, Any]:
    plan = made.plan.model_copy(update={"agent_assignments": False})
    job = client.job(made.run, plan, SETTINGS, client=0, attempt=2)
    template: Mapping[str, Any] = job["spec"]["template"]
    assert naming.ANNOTATION_ASSIGNMENT not in template["metadata"]["annotations"]
    spec: Mapping[str, Any] = template["spec"]
    return spec


@pytest.mark.parametrize(
    ("name", "workloads", "options"),
    [
        ("rook-claims", (FIO,), ("--tool=fio", "--directory=/data", "--mounted", "--capacity=1073741824")),
        ("rook-existing", (FIO,), ("--tool=fio", "--device=/dev/plimsoll-volume")),
        (
            "rook-images",
            (FIO,),
            (
                "--tool=fio",
                f"--image={POOL}/plimsoll-{UID}-0",
                "--size=1073741824",
                "--rbd-cache",
                f"--ceph-user={POOL}-agent",
            ),
        ),
        (
            "ceph",
            (FIO, RADOS, OSDS),
            (
                *("--tool=fio", "--tool=osdBench", "--tool=radosBench"),
                *(f"--image=bench/plimsoll-{UID}-0", "--size=1073741824", "--ceph-user=bench"),
                *("--rados-pool=bench", f"--rados-namespace=plimsoll-{UID}-0"),
                "--osd-keyring=/etc/plimsoll/osd-bench/keyring",
            ),
        ),
    ],
)
def test_an_earlier_agent_gets_its_options(
    name: str, workloads: tuple[Mapping[str, Any], ...], options: tuple[str, ...]
) -> None:
    spec = pod_of_an_earlier_version(ceph_run(name, *workloads))
    (container,) = spec["containers"]
    conductor = f"--conductor=https://{name}-conductor.bench.svc:8443"
    assert container["args"] == ["agent", conductor, *COMMON, *options]
    assert "assignment" not in {one["name"] for one in (*container["volumeMounts"], *spec["volumes"])}
