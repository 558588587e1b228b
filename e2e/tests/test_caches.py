"""Dropping caches before trials: the helpers on the nodes, and whom they answer."""

import json
from collections.abc import Iterator

import pytest

from runs import run, workload
from support import Cluster

# Every drop slows down everything that uses this machine's files.
pytestmark = pytest.mark.cold

HELPERS = "plimsoll-caches"
URL = f"http://{HELPERS}.{HELPERS}.svc:8080/drop"
AUDIENCE = "plimsoll-caches"
COLD, SENDER = "e2e-cold", "e2e-cold-sender"
"""The namespaces that e2e/operator/values.yaml lists in `caches.namespaces`."""

POST = """
import sys, urllib.error, urllib.request
token = sys.argv[2] if len(sys.argv) > 2 else ""
headers = {"Authorization": f"Bearer {token}"} if token else {}
try:
    answer = urllib.request.urlopen(urllib.request.Request(sys.argv[1], b"{}", headers), timeout=300)
except urllib.error.HTTPError as error:
    answer = error
print(answer.status, answer.read().decode())
"""


RESIDENT = """
import ctypes, mmap, os, sys
path, size, page = "/tmp/cached", 2**25, os.sysconf("SC_PAGE_SIZE")
if "write" in sys.argv:
    with open(path, "wb") as file:
        file.write(os.urandom(size))
        os.fsync(file.fileno())
file = os.open(path, os.O_RDWR)
mapped = mmap.mmap(file, size)
pages = (ctypes.c_ubyte * (size // page))()
libc = ctypes.CDLL(None, use_errno=True)
address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
if libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), pages):
    sys.exit(os.strerror(ctypes.get_errno()))
print(sum(one & 1 for one in pages) / len(pages))
"""
MOSTLY = 0.9


@pytest.fixture
def cold(cluster: Cluster) -> Iterator[str]:
    """Return a namespace whose runs may drop caches, which is deleted after the test."""
    with cluster.with_namespace(COLD, enforce="baseline"):
        yield COLD


@pytest.fixture
def sender(cluster: Cluster) -> Iterator[str]:
    """Return another one, for the test that runs at the same time."""
    with cluster.with_namespace(SENDER, enforce="baseline"):
        yield SENDER


def test_every_trial_begins_with_cold_caches_on_both_nodes(cluster: Cluster, cold: str) -> None:
    buffered = workload(fio={"pattern": "read", "blockSize": ["64Ki"], "directIo": False, "rateIops": 40})
    changes = {"workloads": [buffered], "prepare": {"settleSeconds": 0, "dropCaches": True}}
    cluster.apply(run("cold", cold, **changes))
    cluster.until_measuring("cold", cold)
    # The clients have no token of their own; only the conductor has one for the helpers.
    for client in range(2):
        spec = cluster.client_pod("cold", cold, client)["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert not [volume for volume in spec["volumes"] if "projected" in volume]
    cluster.until_succeeded("cold", cold)
    (result,) = cluster.results("cold", cold)
    nodes = result["status"]["environment"]["nodes"]
    assert len(nodes) == 2
    # A trial that was measured again has no details of its first attempt.
    measured = {trial["passNumber"]: trial for trial in result["status"]["trials"] if trial["outcome"] == "Measured"}
    assert len(measured) >= 2
    for trial in measured.values():
        caches = trial["caches"]
        assert caches["nodeCount"] == 2
        assert sorted(one["node"] for one in caches["nodes"]) == sorted(nodes)
        for one in caches["nodes"]:
            assert trial["startedAt"][:19] <= one["droppedAt"][:19] <= trial["finishedAt"][:19]
            assert one["beforeBytes"] > 0
            assert one["afterBytes"] > 0
        assert "osds" not in caches, "the storage is not known to be Ceph"
    assert result["status"]["fingerprint"]["identity"]["prepare"]["dropCaches"] is True
    assert cluster.leftovers(cold) == []


def test_a_run_in_another_namespace_is_refused(cluster: Cluster, namespace: str) -> None:
    cluster.apply(run("refused", namespace, prepare={"settleSeconds": 0, "dropCaches": True}))
    ended = cluster.until_over("refused", namespace, seconds=60)
    assert (ended["status"], ended["reason"]) == ("False", "CacheDroppingNotAllowed")
    assert f"namespace {namespace} may not drop caches" in ended["message"]
    assert "caches.namespaces" in ended["message"]
    assert cluster.items("pods,persistentvolumeclaims", namespace, run="refused") == []


def test_a_helper_answers_only_to_service_accounts_of_listed_namespaces(
    cluster: Cluster, sender: str, namespace: str
) -> None:
    make_sender(cluster, sender)
    status, answer = post(cluster, sender)
    assert status == 401
    assert "no valid bearer token" in answer
    status, answer = post(cluster, sender, token(cluster, sender))
    assert status == 401, "a token for the API server"
    status, answer = post(cluster, sender, token(cluster, namespace, AUDIENCE))
    assert status == 403
    assert f"runs in namespace {namespace} may not drop caches" in answer
    assert resident(cluster, sender) > MOSTLY
    answer = drop(cluster, sender)
    assert cluster.object("pods", "sender", sender)["spec"]["nodeName"] in answer, "the helper of the sender's node"
    assert resident(cluster, sender, write=False) < 1 - MOSTLY


def test_helpers_have_one_file_of_their_node_and_may_only_have_tokens_reviewed(cluster: Cluster) -> None:
    pods = cluster.api.objects("pods", HELPERS, "app.kubernetes.io/component=caches")
    assert len(pods) >= 2
    for pod in pods:
        (container,) = pod["spec"]["containers"]
        assert not container["securityContext"].get("privileged", False)
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["image"] == "plimsoll-operator:e2e"
        assert not pod["spec"].get("hostNetwork", False)
        paths = [volume["hostPath"]["path"] for volume in pod["spec"]["volumes"] if "hostPath" in volume]
        assert paths == ["/proc/sys/vm/drop_caches"]
        (effective,) = cluster.kubectl(
            "exec", pod["metadata"]["name"], "-n", HELPERS, "--", "grep", "CapEff", "/proc/1/status"
        ).split()[1:]
        assert int(effective, 16) == 0
    account = f"--as=system:serviceaccount:{HELPERS}:{HELPERS}"
    assert cluster.kubectl("auth", "can-i", "create", "tokenreviews.authentication.k8s.io", account).strip() == "yes"
    assert cluster.kubectl("auth", "can-i", "get", "secrets", "-A", account, check=False).strip() != "yes"


def token(cluster: Cluster, namespace: str, *audiences: str) -> str:
    """Return a token of the namespace's default ServiceAccount."""
    cluster.until(lambda: cluster.exists("serviceaccounts", "default", namespace), seconds=30, what="its account")
    chosen = [f"--audience={audience}" for audience in audiences]
    return cluster.kubectl("create", "token", "default", "-n", namespace, *chosen).strip()


def make_sender(cluster: Cluster, namespace: str) -> None:
    """Create a pod with the labels of a client, as only the Job controller can: the NetworkPolicy admits no other."""
    security = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {
        "name": "sender",
        "image": "plimsoll-runner:e2e",
        "imagePullPolicy": "Never",
        "command": ["sleep", "600"],
        "securityContext": security,
    }
    labels = {"app.kubernetes.io/managed-by": "plimsoll", "app.kubernetes.io/component": "client"}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False}
    metadata = {"name": "sender", "namespace": namespace, "labels": labels}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    assert "is reserved for the objects that Plimsoll's operator creates" in cluster.refusal(pod)
    controller = "--as=system:serviceaccount:kube-system:job-controller"
    cluster.kubectl("create", "--filename=-", controller, text=json.dumps(pod))
    cluster.kubectl("wait", "--for=condition=Ready", "pod/sender", "-n", namespace, "--timeout=240s")


def resident(cluster: Cluster, namespace: str, *, write: bool = True) -> float:
    """Return which part of a file of that pod is in the page cache; write the file before, unless it is there."""
    program = ("/opt/plimsoll/bin/python", "-c", RESIDENT, *(["write"] if write else []))
    return float(cluster.kubectl("exec", "sender", "-n", namespace, "--", *program))


def drop(cluster: Cluster, namespace: str) -> str:
    """Return the helper's answer to a valid request, once it is this one's turn."""

    def accepted() -> str | None:
        status, answer = post(cluster, namespace, token(cluster, namespace, AUDIENCE))
        assert status in {200, 429}, answer
        return answer if status == 200 else None

    return cluster.until(accepted, seconds=300, what="the helper answers")


def post(cluster: Cluster, namespace: str, bearer: str = "") -> tuple[int, str]:
    """Return status and answer of a request from that pod."""
    program = ("/opt/plimsoll/bin/python", "-c", POST, URL, *([bearer] if bearer else []))
    status, _, answer = cluster.kubectl("exec", "sender", "-n", namespace, "--", *program).partition(" ")
    return int(status), answer
