"""Two operators in a real cluster: when the one that leads is stopped, killed or frozen, the other one follows."""

import time

import pytest

from runs import assert_measured_once, run
from support import OPERATOR_NAMESPACE, Cluster

pytestmark = pytest.mark.kills

WITHIN_SECONDS = {"TERM": 15, "KILL": 40, "STOP": 40}
"""A stopped leader releases its Lease, which otherwise expires after 15 s; and a busy machine takes its time."""


def holder(cluster: Cluster) -> str:
    return str(cluster.object("leases", "plimsoll", OPERATOR_NAMESPACE)["spec"].get("holderIdentity") or "")


@pytest.mark.parametrize("signal", WITHIN_SECONDS)
def test_another_operator_follows_and_the_run_is_measured_once(
    cluster: Cluster, namespace: str, signal: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with cluster.keeping_operator():
        leader = cluster.until(cluster.leader, seconds=60, what="an operator leads")
        cluster.apply(run("handed-over", namespace))
        cluster.until_measuring("handed-over", namespace)
        before, begun = holder(cluster), time.monotonic()
        cluster.signal_pod(leader, signal)
        cluster.until(
            lambda: holder(cluster) not in {"", before}, seconds=WITHIN_SECONDS[signal], what="another operator leads"
        )
        with capsys.disabled():
            print(f"\nSIG{signal}: followed within {time.monotonic() - begun:.1f} s")  # noqa: T201 - to be read
        follower = holder(cluster)
        if signal == "STOP":
            cluster.signal_pod(leader, "CONT")
        cluster.until_succeeded("handed-over", namespace)
        assert holder(cluster) == follower, "the former leader waits"
    assert cluster.interruptions("handed-over", namespace) == []
    for result in cluster.results("handed-over", namespace):
        assert_measured_once(result["status"]["trials"], 2)
    assert cluster.leftovers(namespace) == []
