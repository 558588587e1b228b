"""Which Jobs somebody with the operator's token cannot create, on a real API server with the rights of the chart."""

from collections.abc import Callable
from typing import Any

import pytest

from chart.admission import ROOK, Installation, collection, create, refused
from chart.rendering import Document
from plimsoll.lifecycle import naming
from support.fake_kube import copy_of
from support.specs import UID, ceph_run, made_for_ceph

pytestmark = [pytest.mark.chart, pytest.mark.crd]

OTHER_UID = "00000000-0000-4000-8000-000000000000"


def job(component: str = "client", name: str = "rook-images") -> Document:
    found = (obj for obj in made_for_ceph(ceph_run(name)) if obj["kind"] == "Job")
    return copy_of(next(dict(obj) for obj in found if obj["metadata"]["labels"][naming.LABEL_COMPONENT] == component))


Change = Callable[[Document], object]


def pod(**changes: Any) -> Change:
    return lambda job: job["spec"]["template"]["spec"].update(changes)


def template(**metadata: Document) -> Change:
    def change(job: Document) -> None:
        for field, value in metadata.items():
            job["spec"]["template"]["metadata"].setdefault(field, {}).update(value)

    return change


def container(**changes: Any) -> Change:
    return lambda job: job["spec"]["template"]["spec"]["containers"][0].update(changes)


def security(**changes: Any) -> Change:
    return lambda job: job["spec"]["template"]["spec"]["containers"][0]["securityContext"].update(changes)


def volume(name: str = "more", **source: Any) -> Change:
    """Add a volume, or replace the one of that name."""

    def change(job: Document) -> None:
        pod = job["spec"]["template"]["spec"]
        pod["volumes"] = [*(one for one in pod["volumes"] if one["name"] != name), {"name": name, **source}]

    return change


def session(*keys: str, uid: str = UID) -> Change:
    """Mount these keys of a session Secret, as `key` or `key=path`."""
    items = [{"key": key.partition("=")[0], "path": key.rpartition("=")[2]} for key in keys]
    return volume("session", secret={"secretName": f"plimsoll-session-{uid}", **({"items": items} if items else {})})


def of_one_key(kind: str, name: str, key: str, path: str) -> Document:
    """Return a projected volume with one key of a ConfigMap or a Secret."""
    return {"sources": [{kind: {"name": name, "items": [{"key": key, "path": path}]}}]}


def arguments(*more: str) -> Change:
    return lambda job: job["spec"]["template"]["spec"]["containers"][0]["args"].extend(more)


def secret(name: str) -> Change:
    return volume(secret={"secretName": name})


def projected(**source: Any) -> Change:
    return volume(projected={"sources": [source]})


def token(**fields: Any) -> Change:
    return projected(serviceAccountToken={"path": "token", **fields})


def variable(**fields: Any) -> Change:
    return lambda job: job["spec"]["template"]["spec"]["containers"][0]["env"].append(fields)


def mounted(path: str, name: str = "scratch") -> Change:
    def change(job: Document) -> None:
        mounts = job["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
        mounts.append({"name": name, "mountPath": path})

    return change


DEFAULT = {"seccompProfile": {"type": "RuntimeDefault"}}
EXEC = {"exec": {"command": ["sh", "-c", "id"]}}
OWN_SECRETS = "mounts only the Secrets of its run and those that the operator may read"
ONLY_VOLUMES = "mounts only its plan, its session, ceph.conf and keyrings, the run's PVCs"
SESSION = "a conductor mounts tls.crt, tls.key and token.key, and a client tls.crt and one token"
PLACES = "mounts each of its volumes, as a whole, at the directory for the volume's name"
OPTIONS = "plimsoll agent has no other arguments than agent --assignment=/etc/plimsoll/assignment/assignment.json"
ONE_POD = "only the pods that the Job controller creates for it, one at a time"
HOST = "has no access to its node"
PROFILES = "the runtime's default seccomp and AppArmor profiles"
MARKS = "pods of runs have the UID of their run, and no reserved labels or annotations and no finalizers"
PRIVILEGES = "has no capabilities"
TOKENS = "only a conductor has a token"
IMAGES = "one container, with an image of runner, registry.example.com:5000/earlier/runner"
PROGRAM = "runs plimsoll agent, and no other command, hook or probe"
VARIABLES = "sets only its own environment variables"
DEFAULTS = "leaves these fields of its pod and container to their defaults: "
JOBS: dict[str, tuple[Change, str]] = {
    "another account": (pod(serviceAccountName="admin"), TOKENS),
    "an account that ends alike": (pod(serviceAccountName="train-conductor"), TOKENS),
    "another run's conductor": (pod(serviceAccountName="plimsoll-other-conductor"), TOKENS),
    "a token": (pod(automountServiceAccountToken=True), TOKENS),
    "a token in a volume": (token(), ONLY_VOLUMES),
    "a token for the caches": (token(audience="plimsoll-caches"), ONLY_VOLUMES),
    "the host's network": (pod(hostNetwork=True), HOST),
    "the host's processes": (pod(hostPID=True), HOST),
    "the host's memory": (pod(hostIPC=True), HOST),
    "a port of the host": (container(ports=[{"containerPort": 80, "hostPort": 80}]), HOST),
    "a node": (pod(nodeName="control-plane"), HOST),
    "the host's files": (volume(hostPath={"path": "/"}), ONLY_VOLUMES),
    "a server's files": (volume(nfs={"server": "192.0.2.1", "path": "/"}), ONLY_VOLUMES),
    "another's volume": (volume(persistentVolumeClaim={"claimName": "data-db-0"}), ONLY_VOLUMES),
    "a Secret": (secret("database"), OWN_SECRETS),
    "a projected Secret": (projected(secret={"name": "database"}), OWN_SECRETS),
    "another run's Secret": (secret(f"plimsoll-session-{OTHER_UID}"), OWN_SECRETS),
    "a Secret as a variable": (
        variable(name="PLIMSOLL_X", valueFrom={"secretKeyRef": {"name": "database", "key": "password"}}),
        VARIABLES,
    ),
    "a Secret as a proxy": (
        variable(name="HTTPS_PROXY", valueFrom={"secretKeyRef": {"name": "database", "key": "password"}}),
        VARIABLES,
    ),
    "a variable like a proxy": (variable(name="ALL_PROXY", value="http://evil.example.com"), VARIABLES),
    "a Secret as variables": (container(envFrom=[{"secretRef": {"name": "database"}}]), VARIABLES),
    "other modules": (variable(name="PYTHONPATH", value="/data"), VARIABLES),
    "other libraries": (variable(name="LD_PRELOAD", value="/data/evil.so"), VARIABLES),
    "another configuration": (variable(name="CEPH_CONF", value="/data/ceph.conf"), VARIABLES),
    "another program's file": (mounted("/opt/plimsoll/bin"), PLACES),
    "a way out": (mounted("/etc/plimsoll/../../opt"), PLACES),
    "another image": (container(image="evil:1"), f"{IMAGES}, not evil:1"),
    "an image whose name does something to terminals": (container(image="evil\x1b[2J:1"), f"{IMAGES}, not another;"),
    "an image with a long name": (container(image=f"{'e' * 301}:1"), f"{IMAGES}, not another;"),
    "an image with a tag that is none": (container(image="runner:\u202e1"), f"{IMAGES}, not another;"),
    "an image that begins alike": (container(image="runner.example.com/evil:1"), "admission.allowedRepositories"),
    "an image of a registry that begins alike": (container(image="runner:5000/evil"), IMAGES),
    "an assignment of another file": (container(args=["agent", "--assignment=/data/own.json"]), OPTIONS),
    "another session": (arguments("--secret=/etc/plimsoll/x"), OPTIONS),
    "another fio": (arguments("--fio=/etc/plimsoll/x/run.sh"), OPTIONS),
    "an assignment by a variable": (variable(name="PLIMSOLL_ASSIGNMENT", value="/data/own.json"), VARIABLES),
    "another fio by a variable": (variable(name="PLIMSOLL_FIO", value="/etc/plimsoll/x/run.sh"), VARIABLES),
    "another token for kube-burner": (
        variable(name="PLIMSOLL_BURN_TOKEN", value="/etc/plimsoll/session/token"),
        VARIABLES,
    ),
    "another helper for kube-burner": (
        variable(name="PLIMSOLL_BURN_HELPER", value="https://evil.example.com:8080"),
        VARIABLES,
    ),
    "a helper for kube-burner from an annotation": (
        variable(
            name="PLIMSOLL_BURN_HELPER", valueFrom={"fieldRef": {"fieldPath": "metadata.annotations['plimsoll.dev/x']"}}
        ),
        VARIABLES,
    ),
    "kube-burner for another run": (variable(name="PLIMSOLL_BURN_RUN_UID", value=OTHER_UID), VARIABLES),
    "another helper for the caches": (
        variable(name="PLIMSOLL_CACHES_HELPER", value="http://evil.example.com:8080"),
        VARIABLES,
    ),
    "another address of a helper": (
        pod(hostAliases=[{"ip": "192.0.2.1", "hostnames": ["plimsoll-caches.plimsoll-caches.svc"]}]),
        f"{DEFAULTS}hostAliases",
    ),
    "other name servers": (pod(dnsPolicy="None", dnsConfig={"nameservers": ["192.0.2.1"]}), "dnsConfig"),
    "the node's name servers": (pod(dnsPolicy="Default"), f"{DEFAULTS}dnsPolicy"),
    "the name of another pod": (pod(hostname="db-0", subdomain="db"), DEFAULTS),
    "a terminal": (container(stdin=True, tty=True), DEFAULTS),
    "an empty file over another": (
        container(terminationMessagePath="/opt/plimsoll/lib/ssl.py"),
        f"{DEFAULTS}terminationMessagePath",
    ),
    "a variable of an annotation": (
        variable(name="LD_PRELOAD", valueFrom={"fieldRef": {"fieldPath": "metadata.annotations['plimsoll.dev/x']"}}),
        VARIABLES,
    ),
    "a script of a ConfigMap": (volume("x", configMap={"name": "evil-plan", "defaultMode": 0o555}), ONLY_VOLUMES),
    "a mounted script of a ConfigMap": (
        lambda job: (volume("x", configMap={"name": "evil-plan"})(job), mounted("/etc/plimsoll/x", "x")(job)),
        PLACES,
    ),
    "an assignment of a ConfigMap": (volume("assignment", configMap={"name": "evil-plan"}), ONLY_VOLUMES),
    "another ceph.conf": (
        volume("ceph", projected=of_one_key("configMap", "evil-plan", "plan.json", "ceph.conf")),
        ONLY_VOLUMES,
    ),
    "a ceph.conf of a Secret": (
        volume("ceph", projected=of_one_key("secret", f"plimsoll-client-keyring-{UID}", "keyring", "ceph.conf")),
        ONLY_VOLUMES,
    ),
    "all of a ConfigMap as ceph.conf": (
        volume("ceph", projected={"sources": [{"configMap": {"name": "images-ceph"}}]}),
        ONLY_VOLUMES,
    ),
    "another ConfigMap as ceph.conf": (
        volume("ceph", projected=of_one_key("configMap", "theirs", "ceph.conf", "ceph.conf")),
        ONLY_VOLUMES,
    ),
    "another ConfigMap as plan": (volume("plan", configMap={"name": "theirs"}), ONLY_VOLUMES),
    "a part of a volume": (
        lambda job: job["spec"]["template"]["spec"]["containers"][0]["volumeMounts"][0].update(subPath="token"),
        PLACES,
    ),
    "a token as that for kube-burner": (mounted("/etc/plimsoll/burner", "session"), PLACES),
    "all keys of a session": (session(), SESSION),
    "the key of all tokens": (session("tls.crt", "token.key=token"), SESSION),
    "a conductor's keys": (session("tls.crt", "tls.key"), SESSION),
    "a session under another name": (secret(f"plimsoll-session-{UID}"), SESSION),
    "a projected session": (
        volume(
            "session",
            projected={
                "sources": [
                    *of_one_key("configMap", "evil-plan", "tls.crt", "tls.crt")["sources"],
                    *of_one_key("secret", f"plimsoll-session-{UID}", "token.key", "token")["sources"],
                ]
            },
        ),
        SESSION,
    ),
    "a keyring as a session": (volume("session", secret={"secretName": f"plimsoll-client-keyring-{UID}"}), SESSION),
    "10000 pods": (lambda job: job["spec"].update(parallelism=10000, completions=10000), ONE_POD),
    "10000 pods in turn": (lambda job: job["spec"].update(completions=10000), ONE_POD),
    "the priority of Kubernetes' own pods": (
        pod(priorityClassName="system-node-critical"),
        "no PriorityClass of Kubernetes' own pods",
    ),
    "a command": (container(command=["sh", "-c", "id"]), PROGRAM),
    "another program": (container(args=["run", "/data/evil.yaml"]), PROGRAM),
    "a conductor's program": (container(args=["conductor"]), PROGRAM),
    "a hook": (container(lifecycle={"postStart": EXEC}), PROGRAM),
    "a probe": (container(livenessProbe=EXEC), PROGRAM),
    "another directory": (container(workingDir="/data"), PROGRAM),
    "another container": (
        lambda job: job["spec"]["template"]["spec"]["containers"].append({"name": "second", "image": "runner:1"}),
        IMAGES,
    ),
    "a container before": (pod(initContainers=[{"name": "first", "image": "runner:1"}]), IMAGES),
    "no seccomp in the pod": (pod(securityContext={"seccompProfile": {"type": "Unconfined"}}), PROFILES),
    "no profile at all": (pod(securityContext={}), PROFILES),
    "no seccomp": (security(seccompProfile={"type": "Unconfined"}), PROFILES),
    "no AppArmor": (security(appArmorProfile={"type": "Unconfined"}), PROFILES),
    "another label of SELinux": (security(seLinuxOptions={"type": "spc_t"}), PROFILES),
    "a sysctl": (
        pod(securityContext={**DEFAULT, "sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]}),
        PROFILES,
    ),
    "privileges": (security(privileged=True, allowPrivilegeEscalation=True), PRIVILEGES),
    "more privileges later": (security(allowPrivilegeEscalation=True), PRIVILEGES),
    "capabilities": (security(capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]}), PRIVILEGES),
    "root": (security(runAsUser=0, runAsNonRoot=False), PRIVILEGES),
    "others' pods": (
        lambda job: job["spec"].update(manualSelector=True, selector={"matchLabels": {naming.LABEL_RUN_UID: UID}}),
        ONE_POD,
    ),
    "pods of another program": (template(labels={"app.kubernetes.io/name": "bank"}), MARKS),
    "pods of a Service for a component": (
        lambda job: job["spec"]["template"]["metadata"]["labels"].update({naming.LABEL_COMPONENT: "database"}),
        MARKS,
    ),
    "pods that are never gone": (
        lambda job: job["spec"]["template"]["metadata"].update(finalizers=["example.com/never"]),
        MARKS,
    ),
    "pods of another run": (
        lambda job: job["spec"]["template"]["metadata"]["labels"].update({naming.LABEL_RUN_UID: OTHER_UID}),
        MARKS,
    ),
    "AppArmor as before": (
        lambda job: job["spec"]["template"]["metadata"]["annotations"].update(
            {"container.apparmor.security.beta.kubernetes.io/client": "unconfined"}
        ),
        MARKS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", JOBS)
def test_it_creates_no_job_that_no_run_needs(cluster: Installation, case: str) -> None:
    change, words = JOBS[case]
    changed = job()
    change(changed)
    refused(create(cluster.operator, changed, dry_run=True), words)


OF_RUNS: dict[str, tuple[Change, str]] = {
    "a label": (template(labels={"app": "bank"}), MARKS),
    "an annotation": (template(annotations={"k8s.v1.cni.cncf.io/networks": "rook-ceph/public"}), MARKS),
    "a runtime": (pod(runtimeClassName="weak"), f"{DEFAULTS}runtimeClassName"),
}
"""What the author of a run decides about its pods."""


@pytest.mark.parametrize("case", OF_RUNS)
def test_only_pods_of_runs_get_what_their_author_wants(cluster: Installation, case: str) -> None:
    change, words = OF_RUNS[case]
    for component in ("client", "conductor", "teardown"):
        changed = job(component)
        change(changed)
        answer = create(cluster.operator, changed, dry_run=True)
        if component == "teardown":
            refused(answer, words)
        else:
            answer.expect(201)


def test_teardowns_get_what_the_administrator_wants(cluster: Installation) -> None:
    for change in (
        template(labels={"example.com/cost": "bench"}, annotations={"example.com/network": "public"}),
        template(labels={"sidecar.istio.io/inject": "true"}, annotations={"linkerd.io/inject": "enabled"}),
        pod(runtimeClassName="trusted", nodeSelector={"kubernetes.io/os": "linux"}, priorityClassName="low"),
        variable(name="https_proxy", value="http://proxy:3128"),
    ):
        changed = job("teardown")
        change(changed)
        create(cluster.operator, changed, dry_run=True).expect(201)


def test_a_job_in_rooks_namespace_gets_no_administrators_key(cluster: Installation) -> None:
    """As a job of the operator, with the keyring of Ceph's administrator, which Rook stores there."""
    for name in ("rook-ceph-admin-keyring", "rook-ceph-mon"):
        changed = job("conductor")
        changed["metadata"]["namespace"] = ROOK
        changed["spec"]["template"]["spec"]["containers"][0]["args"][1] = f"--namespace={ROOK}"
        secret(name)(changed)
        refused(create(cluster.operator, changed, dry_run=True), OWN_SECRETS)


def test_a_conductor_gets_no_token_of_another_account(cluster: Installation) -> None:
    for change in (pod(serviceAccountName="train-conductor"), pod(serviceAccountName="plimsoll-other-conductor")):
        changed = job("conductor")
        change(changed)
        refused(create(cluster.operator, changed, dry_run=True), TOKENS)


API_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            arguments(f"--caches-token={API_TOKEN}"),
            "plimsoll conductor has no other arguments than conductor --namespace=",
        ),
        (arguments("--results=/data"), "plimsoll conductor has no other arguments"),
        (arguments("--namespace=kube-system"), "plimsoll conductor has no other arguments"),
        (arguments("--plan=/data/plan.json"), "plimsoll conductor has no other arguments"),
        (variable(name="PLIMSOLL_CACHES_TOKEN", value=API_TOKEN), VARIABLES),
        (variable(name="PLIMSOLL_RESULTS", value="/data"), VARIABLES),
        (session("tls.crt", "tls.key", "token.key=token"), SESSION),
        (session("tls.crt", "token-0=token"), SESSION),
        (volume("caches-token", secret={"secretName": f"plimsoll-conductor-keyring-{UID}"}), ONLY_VOLUMES),
        (volume("caches-token", projected={"sources": [{"serviceAccountToken": {"path": "token"}}]}), ONLY_VOLUMES),
    ],
)
def test_a_conductor_sends_its_own_token_to_nobody(cluster: Installation, change: Change, words: str) -> None:
    """It would send the file of `--caches-token` to its agents."""
    changed = job("conductor")
    change(changed)
    refused(create(cluster.operator, changed, dry_run=True), words)


def test_a_teardown_gets_no_secret_of_another_run(cluster: Installation) -> None:
    changed = job("teardown")
    secret(f"plimsoll-teardown-{OTHER_UID}")(changed)
    refused(create(cluster.operator, changed, dry_run=True), OWN_SECRETS)


def test_a_keyring_is_mounted_where_the_administrator_lists_it(cluster: Installation) -> None:
    """`ceph.keyrings` has it for one namespace."""
    keyring = job("client", "ceph")
    create(cluster.operator, keyring, dry_run=True).expect(201)
    keyring["metadata"]["namespace"] = ROOK
    refused(create(cluster.operator, keyring, dry_run=True), "add others to the chart's ceph.keyrings")


def test_the_policies_bind_nobody_else(cluster: Installation) -> None:
    changed = job()
    for change, _ in (JOBS["another image"], JOBS["the host's network"], JOBS["a Secret"]):
        change(changed)
    for server in (cluster.administrator, cluster.tenant):
        forgetful = copy_of(changed)
        del forgetful["metadata"]["labels"], forgetful["spec"]["template"]["metadata"]["labels"]
        with_own = server.request("POST", f"{collection(forgetful)}?dryRun=All", forgetful)
        assert with_own.code == 201, with_own.message
