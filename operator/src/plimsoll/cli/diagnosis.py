"""The conclusions of `plimsoll doctor` about a cluster: one rule for each line, all pure."""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeVar

from plimsoll.api.environment import STATIC
from plimsoll.api.names import GROUP, RESULT_KIND, RUN_KIND, SUITE_KIND, Verdict
from plimsoll.api.quantity import parse_amount
from plimsoll.api.run import Gates
from plimsoll.api.storage import NamespacedName
from plimsoll.ceph.versions import age_problem
from plimsoll.cli.cluster_run import Load, generated_run
from plimsoll.kube.port import Object
from plimsoll.lifecycle.ceph.rook_facts import cluster_fact, why_unusable
from plimsoll.lifecycle.ceph.rook_survey import osds_of, rook_version
from plimsoll.lifecycle.children import label
from plimsoll.lifecycle.decision import Fact
from plimsoll.lifecycle.provisioning import rejection, why_no_devices
from plimsoll.lifecycle.render import client
from plimsoll.lifecycle.run import ENFORCED_PROFILE, Platform, Run, Settings, platform_of, run_of
from plimsoll.lifecycle.storage.registry import provider_of
from plimsoll.measure.text import count_text, first_few, listed, size_text
from plimsoll.plan.expand import make_plan

OLDEST_KUBERNETES = (1, 31)  # as in the chart's kubeVersion
TESTED_KUBERNETES = ("1.34", "1.35", "1.37")
KINDS = (RUN_KIND, SUITE_KIND, RESULT_KIND)
_CREATE_RUN = ("create", "benchmarkruns")
RIGHTS = {
    "view": (("list", "benchmarkresults"), ("get", "benchmarkruns"), ("list", "benchmarkruns")),
    "edit": (
        _CREATE_RUN,
        ("create", "benchmarksuites"),
        ("patch", "benchmarksuites"),
        ("delete", "benchmarkruns"),
    ),
}
"""What a person has to be allowed, by the ClusterRole that allows it."""

_DEFAULT_NAMESPACE = "plimsoll-system"
_RELEASE_NAMESPACE = "meta.helm.sh/release-namespace"
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_CHECK_CSI = "kubectl get csidrivers,csinodes; kubectl get daemonsets --all-namespaces   # and install the CSI driver"
_RESERVED = (f"{GROUP}/", "app.kubernetes.io/")
_UNOBSERVED_SECONDS = 30
_CLOCK_SECONDS = 2.0  # the API server writes times without fractions
_LEASE_SLACK_SECONDS = 5.0  # the clocks of the leader and of the API server differ
_TARGETS = ("StorageClass", "Rook", "Directory", "Device")
"""What the checks of what a run can measure begin with."""
_RESERVATIONS = {"Clocks here", "Load", "Block device"}  # checks that prevent no run
_TAINTS = {"NoSchedule", "NoExecute"}

T = TypeVar("T")


class State(StrEnum):
    """All is well, something does not work, these rights do not show it, or it is not in use."""

    OK = "ok"
    PROBLEM = "problem"
    UNKNOWN = "unknown"
    UNUSED = "unused"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line. `fix` is a command to paste, or to pass on to an administrator; empty if there is none."""

    state: State
    text: str
    fix: str = ""
    _: KW_ONLY
    check: str = ""


class Hidden(Exception):  # noqa: N818 - a rule raises it if it needs the answer
    """What was not answered; its text has the reason: `needs list nodes`, or an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The answers of a cluster to a person with certain rights."""

    version: str  # of this program
    kubernetes: str
    namespace: str
    user: str
    storage_class: str | None  # the only one that matters; None for all
    now: datetime  # the API server's time
    ahead_seconds: float  # of this machine's clock
    unserved: Sequence[str]  # Plimsoll's kinds that the API server does not serve
    refusal: str | Hidden = ""  # why a dry run of a run's creation was refused; empty if it was accepted
    pod_refusal: str | Hidden = ""  # the same of a client's pod
    rights: Mapping[tuple[str, str], bool] | Hidden
    namespaces: Sequence[Object] | Hidden  # of that name, if it exists
    definitions: Sequence[Object] | Hidden
    operators: Sequence[Object] | Hidden  # their Deployments
    settings: Settings | str | Hidden = ""  # of the operator; a text if they are invalid
    lease: Sequence[Object] | Hidden | None = None  # the operator's, if it exists; None if it needs none, or is unknown
    runs: Sequence[Object] | Hidden
    ceph_clusters: Sequence[Object] | Hidden
    osds: Sequence[Object] | Hidden  # their Deployments
    classes: Sequence[Object] | Hidden
    drivers: Sequence[Object] | Hidden  # CSIDrivers
    csi_nodes: Sequence[Object] | Hidden
    volumes: Sequence[Object] | Hidden  # PersistentVolumes that are available
    quotas: Sequence[Object] | Hidden
    nodes: Sequence[Object] | Hidden
    node_leases: Sequence[Object] | Hidden


Findings = Iterator[Finding]
Rule = Callable[[Facts], Findings]

_RULES: dict[str, Rule] = {}


def _rule(check: str) -> Callable[[Rule], Rule]:
    """Add a function that yields the lines of a check; their own `check` follows that name."""

    def add(rule: Rule) -> Rule:
        _RULES[check] = rule
        return rule

    return add


def diagnose(facts: Facts) -> Findings:
    """Yield the lines. A line that needs a right that the person does not have is unknown."""
    for check, rule in _RULES.items():
        try:
            for finding in rule(facts):
                yield replace(finding, check=f"{check} {finding.check}".strip())
        except Hidden as hidden:
            yield Finding(State.UNKNOWN, str(hidden), check=check)


def conclusion(findings: Sequence[Finding]) -> str:
    """Return in one line what a run can measure, or what prevents all of them."""
    targets = [finding for finding in findings if finding.check.startswith(_TARGETS)]
    problems = [finding for finding in findings if finding.state is State.PROBLEM and finding not in targets]
    harmless = [finding for finding in problems if _is_harmless(finding)]
    if blocking := [finding.check for finding in problems if finding not in harmless]:
        return f"Not ready: {listed(blocking)}."
    unchecked = listed([finding.check for finding in findings if finding.state is State.UNKNOWN])
    ready, broken = (
        [finding.check for finding in targets if finding.state is state] for state in (State.OK, State.PROBLEM)
    )
    if not ready:
        problem = f"Not ready: {listed(broken)}" if broken else "It is unknown what a run can measure"
        return f"{problem}; not checked: {unchecked}." if unchecked else f"{problem}."
    parts = (
        f"Ready to measure {listed(ready)}",
        f"not ready: {listed(broken)}" if broken else "",
        f"not checked: {unchecked}" if unchecked else "",
        f"but see {listed([finding.check for finding in harmless])}" if harmless else "",
    )
    return f"{'; '.join(filter(None, parts))}."


def _is_harmless(finding: Finding) -> bool:
    """Whether runs work despite a problem: fio may be too old only for Valid numbers, a right only for suites."""
    if finding.check.startswith("Rights to "):
        return " ".join(_CREATE_RUN) not in finding.text
    return finding.check in _RESERVATIONS or (finding.check == "fio" and Verdict.SUSPECT in finding.text)


def visible(answer: T | Hidden) -> T:
    if isinstance(answer, Hidden):
        raise answer
    return answer


def judged(problem: str, text: str, fix: str = "", *, check: str = "") -> Finding:
    """Return the problem with its fix if there is one; otherwise that all is well."""
    return Finding(State.PROBLEM if problem else State.OK, problem or text, fix if problem else "", check=check)


def _names(objects: Sequence[Object]) -> str:
    return first_few(sorted(obj["metadata"]["name"] for obj in objects), 5)


def _place(obj: Object) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


# Plimsoll itself


def operator_of(facts: Facts) -> Object | None:
    """Return the Deployment that serves the namespace, or any; None if there is none."""
    return next(iter([*_serving(facts), *_operators(facts)]), None)


def _operators(facts: Facts) -> Sequence[Object]:
    """Return the operators' Deployments, first the one of the CRDs' release: a tenant may have labelled another.

    Commands to paste name its namespace. Helm notes the release on the CRDs, which only an administrator can change.
    """
    crds = [] if isinstance(facts.definitions, Hidden) else [obj["metadata"] for obj in facts.definitions]
    homes = {(crd.get("annotations") or {}).get(_RELEASE_NAMESPACE) for crd in crds} - {None} or {_DEFAULT_NAMESPACE}
    return sorted(visible(facts.operators), key=lambda operator: operator["metadata"]["namespace"] not in homes)


def _serving(facts: Facts) -> Sequence[Object]:
    name = facts.namespace
    return [operator for operator in _operators(facts) if name in (watched_by(operator) or [name])]


def _container(operator: Object) -> Mapping[str, Any]:
    containers = operator["spec"]["template"]["spec"]["containers"]
    return next((each for each in containers if each["name"] == "operator"), containers[0])


def environment_of(operator: Object) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in _container(operator).get("env") or () if "value" in entry}


def watched_by(operator: Object) -> list[str]:
    option = "--namespace="
    return [text.removeprefix(option) for text in _container(operator).get("args") or () if text.startswith(option)]


def _helm(facts: Facts, *options: str) -> str:
    """Return the command that upgrades the release with the options, or with new images; it keeps all other values."""
    chosen = None if isinstance(facts.operators, Hidden) else operator_of(facts)
    release, namespace = "plimsoll", _DEFAULT_NAMESPACE
    if chosen is not None:
        release = label(chosen, "app.kubernetes.io/instance") or release
        namespace = chosen["metadata"]["namespace"]
    changes = " ".join(("--reset-then-reuse-values", *(options or ["--values values.yaml"])))
    return f"helm upgrade {release} charts/plimsoll --namespace {namespace} {changes}"


def _installation(facts: Facts) -> str:
    """Return the commands that install Plimsoll for the namespace; what upgrades it if there is an operator."""
    if not isinstance(facts.operators, Hidden) and operator_of(facts) is not None:
        return _helm(facts)
    return (
        "make images REGISTRY=REGISTRY PUSH=1 > values.yaml && "
        f"echo 'watchNamespaces: [{facts.namespace}]' >> values.yaml && helm upgrade --install plimsoll "
        f"charts/plimsoll --namespace {_DEFAULT_NAMESPACE} --create-namespace --values values.yaml"
    )


@_rule("Kubernetes")
def judge_kubernetes(facts: Facts) -> Findings:
    number = re.match(r"v?(\d+)\.(\d+)", facts.kubernetes)
    oldest = ".".join(map(str, OLDEST_KUBERNETES))
    is_old = number is not None and (int(number[1]), int(number[2])) < OLDEST_KUBERNETES
    problem = f"{facts.kubernetes} is older than {oldest}, the oldest version that Plimsoll supports"
    text = f"{facts.kubernetes} (tested with {', '.join(TESTED_KUBERNETES)}), as {facts.user}"
    yield judged(problem if is_old else "", text, f"upgrade Kubernetes to {oldest} or later")


@_rule("CRDs")
def judge_definitions(facts: Facts) -> Findings:
    if facts.unserved:
        yield judged(f"the API server does not serve {', '.join(facts.unserved)}", "", _installation(facts))
        return
    defined = visible(facts.definitions)
    versions = {label(obj, "app.kubernetes.io/version") for obj in defined} - {""}
    others = sorted(versions - {facts.version})
    problem = f"the CRDs have version {', '.join(others)}, this program {facts.version}" if others else ""
    text = f"version {facts.version}" if versions else "served; no label names their version"
    yield judged(problem, text, f"{_helm(facts)}   # with chart, images and program of one version")


@_rule("Operator")
def judge_operator(facts: Facts) -> Findings:
    chosen = operator_of(facts)
    if chosen is None:
        yield judged("no Deployment of Plimsoll's operator in any namespace", "", _installation(facts))
        return
    namespace, name = chosen["metadata"]["namespace"], chosen["metadata"]["name"]
    ready, wanted = (chosen.get("status") or {}).get("readyReplicas") or 0, chosen["spec"].get("replicas", 1)
    version, image = label(chosen, "app.kubernetes.io/version"), _container(chosen)["image"]
    problem, fix = "", f"kubectl --namespace {namespace} describe pods --selector app.kubernetes.io/component=operator"
    if version and version != facts.version:
        problem = f"{namespace}/{name} has version {version}, this program {facts.version}"
        fix = f"{_helm(facts)}   # with chart, images and program of one version"
    elif isinstance(facts.settings, str):
        problem = f"{namespace}/{name} has invalid settings: {facts.settings}"
        fix = f"{_helm(facts)}   # with that setting corrected in values.yaml"
    elif len(_serving(facts)) > 1:
        places = " and ".join(map(_place, _serving(facts)))
        problem, fix = f"{places} all serve this namespace", "uninstall all but one, or give each its watchNamespaces"
    elif not ready:
        problem = f"none of {count_text(wanted, 'replica')} of Deployment {namespace}/{name} is ready"
    yield judged(problem, f"{namespace}/{name}: {ready} of {wanted} ready, {image}", fix)


@_rule("Leader")
def judge_leader(facts: Facts) -> Findings:
    if facts.lease is None or (chosen := operator_of(facts)) is None:
        return
    spec = next((obj.get("spec") or {} for obj in visible(facts.lease)), {})
    holder, renewed, problem = spec.get("holderIdentity") or "", spec.get("renewTime"), ""
    age = (facts.now - datetime.fromisoformat(renewed)).total_seconds() if renewed else 0.0
    if not holder:
        problem = "no operator holds the Lease"
    elif age > float(spec.get("leaseDurationSeconds") or 0) + _LEASE_SLACK_SECONDS:
        problem = f"{holder} leads, but has not renewed the Lease for {age:.0f} s"
    place = f"--namespace {chosen['metadata']['namespace']} deployment/{chosen['metadata']['name']}"
    yield judged(problem, f"{holder} leads", f"kubectl logs --all-pods {place}")


# The person and the namespace


@_rule("Namespace")
def judge_namespace(facts: Facts) -> Findings:
    existing = next(iter(visible(facts.namespaces)), None)
    name, fix = facts.namespace, f"kubectl create namespace {facts.namespace}"
    problem = f"namespace {name} does not exist" if existing is None else ""
    if existing is not None and "deletionTimestamp" in existing["metadata"]:
        problem, fix = f"namespace {name} is being deleted", "use another one: --namespace NAME"
    yield judged(problem, name, fix)


@_rule("Watched")
def judge_watched(facts: Facts) -> Findings:
    chosen = operator_of(facts)
    if chosen is None:
        return
    namespaces = watched_by(chosen)
    problem = ""
    if namespaces and facts.namespace not in namespaces:
        problem = f"the operator watches only {first_few(namespaces, 5)}, so runs in {facts.namespace} never start"
    release = chosen["metadata"]["namespace"]
    values = ",".join([each for each in namespaces if each != release] + [facts.namespace])
    fix = _helm(facts, f"--set {shlex.quote(f'watchNamespaces={{{values}}}')}")
    yield judged(problem, "all namespaces" if not namespaces else f"{facts.namespace} is in watchNamespaces", fix)


@_rule("Runs")
def judge_observed(facts: Facts) -> Findings:
    """Show users who may not see the operator whether it works."""
    runs = visible(facts.runs)

    oldest = facts.now - timedelta(seconds=_UNOBSERVED_SECONDS)
    late = [
        run
        for run in runs
        if not run.get("status") and datetime.fromisoformat(run["metadata"]["creationTimestamp"]) < oldest
    ]
    if not runs:
        yield Finding(State.UNUSED, f"there is none in namespace {facts.namespace}")
        return
    problem = f"no operator has observed {_names(late)}" if late else ""
    fix = "ask an administrator whether the operator is running, and whether the chart's watchNamespaces has "
    yield judged(problem, f"the operator has observed {_names(runs)}", f"{fix}{facts.namespace}")


@_rule("Rights")
def judge_rights(facts: Facts) -> Findings:
    allowed, chosen = visible(facts.rights), None if isinstance(facts.operators, Hidden) else operator_of(facts)
    prefix = chosen["metadata"]["name"] if chosen else "plimsoll"
    account = facts.user.removeprefix("system:serviceaccount:")
    subject = f"--user={shlex.quote(facts.user)}" if account == facts.user else f"--serviceaccount={account}"
    for role, wanted in RIGHTS.items():
        missing = [f"{verb} {resource}" for verb, resource in wanted if not allowed[verb, resource]]
        problem = f"{facts.user} may not {', '.join(missing)} in namespace {facts.namespace}" if missing else ""
        name = f"{prefix}-{role}-{re.sub('[^-a-z0-9]+', '-', account.lower())}"
        binding = (
            f"kubectl --namespace {facts.namespace} create rolebinding {name} --clusterrole={prefix}-{role} {subject}"
        )
        text = ", ".join(f"{verb} {resource}" for verb, resource in wanted)
        yield judged(problem, text, binding, check=f"to {role}")


@_rule("New run")
def judge_acceptance(facts: Facts) -> Findings:
    refusal = visible(facts.refusal)
    fix = _helm(facts) if "field" in refusal else ""
    yield judged(f"refused: {refusal}" if refusal else "", "the API server accepts a run of this program", fix)


@_rule("New pod")
def judge_pod(facts: Facts) -> Findings:
    refusal = visible(facts.pod_refusal)
    fix = (
        f"kubectl --namespace {facts.namespace} describe resourcequotas,limitranges   # and set clients.resources and "
        "conductor.resources in the run, or the chart's podDefaults.resources"
    )
    yield judged(f"refused: {refusal}" if refusal else "", "the API server accepts a client's pod", fix)


@_rule("Pod Security")
def judge_pod_security(facts: Facts) -> Findings:
    level = label(next(iter(visible(facts.namespaces)), {"metadata": {}}), ENFORCED_PROFILE)
    no_devices = why_no_devices(facts.namespace, level)
    text = no_devices or "clients of Block volumes need baseline; all others fit restricted"
    yield Finding(State.OK, f"{f'enforces {level}' if level else 'no profile is enforced by a label'}: {text}")


@_rule("Quota")
def judge_quotas(facts: Facts) -> Findings:
    limited = visible(facts.quotas)
    if not limited:
        yield Finding(State.OK, "no ResourceQuota")
    for quota in limited:
        name, counts = quota["metadata"]["name"], {**quota["spec"], **(quota.get("status") or {})}
        hard, used = counts.get("hard") or {}, counts.get("used") or {}
        shown = {key: f"{key}: {used.get(key, 0)} of {limit} used" for key, limit in hard.items()}
        full = [text for key, text in shown.items() if parse_amount(used.get(key, 0)) >= parse_amount(hard[key])]
        problem = f"leaves no room for a run ({', '.join(full)})" if full else ""
        fix = f"kubectl --namespace {facts.namespace} edit resourcequota {name}"
        yield judged(problem, first_few([*shown.values()], 5), fix, check=name)


def _settings(facts: Facts) -> Settings:
    return facts.settings if isinstance(facts.settings, Settings) else Settings(runner_image="runner")


def _sample(facts: Facts) -> Run:
    """Return the run of `plimsoll run --storage-class`."""
    body = generated_run(facts.storage_class or "any", Load())
    body["metadata"] |= {"namespace": facts.namespace, "uid": "u", "creationTimestamp": facts.now.isoformat()}
    return run_of(body, _settings(facts))


def client_pod(facts: Facts) -> dict[str, Any] | None:
    """Return the manifest of a client's pod of such a run; None if the operator's settings do not permit the run."""
    run, settings = _sample(facts), _settings(facts)
    if run.document is None:
        return None
    plan = make_plan(run.document, seed=0, runner_image=settings.runner_image)
    template = client.job(run, plan, settings, client=0, attempt=0)["spec"]["template"]
    # Only the operator may set the others.
    metadata: dict[str, Any] = {
        field: {key: value for key, value in values.items() if not key.startswith(_RESERVED)}
        for field, values in template["metadata"].items()
    }
    metadata |= {"name": "plimsoll-doctor", "namespace": facts.namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


# Storage


@_rule("Rook")
def judge_rook_clusters(facts: Facts) -> Findings:
    clusters = facts.ceph_clusters
    by_name = {} if isinstance(clusters, Hidden) else {_place(obj): obj for obj in clusters}
    if isinstance(facts.settings, str):
        text = f"the operator's settings say which clusters are allowed: {facts.settings}"
        yield Finding(State.UNKNOWN, text)
        return
    settings = visible(facts.settings)
    places = sorted({*by_name, *settings.rook_clusters})
    if not places:
        yield Finding(State.UNUSED, "none is allowed, and none is visible")
    for place in places:
        namespace, _, name = place.partition("/")
        if problem := settings.rook_problem(NamespacedName(namespace=namespace, name=name), facts.namespace):
            allowed = [*settings.rook_clusters.get(place, ()), facts.namespace]
            fix = _helm(facts, f"--set-json {shlex.quote(f'rook.clusters={json.dumps({place: allowed})}')}")
            yield Finding(State.UNUSED, problem, fix, check=place)
        elif isinstance(clusters, Hidden):
            text = f"runs may use it; its health {clusters}"
            yield Finding(State.UNKNOWN, text, check=place)
        elif place not in by_name:
            problem, fix = (
                "runs may use it, but it does not exist",
                "correct the chart's rook.clusters, or install Rook",
            )
            # Values of a chart may be for several clusters of Kubernetes.
            state = (
                State.UNUSED if any(it in by_name for it in settings.clusters_of(facts.namespace)) else State.PROBLEM
            )
            yield Finding(state, problem, fix if state is State.PROBLEM else "", check=place)
        else:
            yield _rook_cluster(facts, by_name[place])


def _rook_cluster(facts: Facts, obj: Object) -> Finding:
    fact = cluster_fact(obj)
    visible_osds = () if isinstance(facts.osds, Hidden) else facts.osds
    osds = [osd for osd in visible_osds if osd["metadata"]["namespace"] == fact.namespace]
    hosts, rook = {osd.buckets.get("host") for osd in osds_of(osds)} - {None}, rook_version(osds)
    problem = age_problem(f"CephCluster {_place(obj)}", fact.ceph_version) or why_unusable(fact, Gates())
    capacity = ((obj.get("status") or {}).get("ceph") or {}).get("capacity") or {}
    total = capacity.get("bytesTotal")
    is_only = _settings(facts).clusters_of(facts.namespace) == [_place(obj)]
    parts = [
        f"Ceph {fact.version or 'of unknown version'}",
        f"Rook {rook}" if rook else "",
        fact.health,
        f"{count_text(len(osds), 'OSD')} on {count_text(len(hosts), 'host')}" if hosts else "",
        f"{size_text(capacity.get('bytesAvailable', 0))} of {size_text(total)} free" if total else "",
        "runs that name no cluster use it" if is_only else "",
    ]
    fix = f"kubectl --namespace {fact.namespace} describe cephcluster {fact.name}"
    return judged(problem, ", ".join(filter(None, parts)), fix, check=_place(obj))


@_rule("StorageClass")
def judge_storage_classes(facts: Facts) -> Findings:
    platform = platform_of(facts.kubernetes, visible(facts.classes))
    names = sorted(platform.storage_classes)
    if facts.storage_class is not None:
        names, problem = [facts.storage_class], _run_problem(facts, platform)
        if problem:
            yield judged(problem, "", "kubectl get storageclasses", check=facts.storage_class)
            return
    if not names:
        yield judged("there is none", "", "install a CSI driver with a StorageClass")
    for name in names:
        yield replace(_storage_class(facts, platform.storage_classes[name]), check=name)


def _run_problem(facts: Facts, platform: Platform) -> str:
    """Return why the operator would refuse a run on the StorageClass; empty if it would not."""
    settings, run = _settings(facts), _sample(facts)
    ending: Fact | None = rejection(run, settings)
    if ending is None and run.document is not None:
        ending = provider_of(run).blocker(run.document, platform)
    return ending.message if ending is not None else ""


def _storage_class(facts: Facts, obj: Object) -> Finding:
    name, provisioner = obj["metadata"]["name"], obj["provisioner"]
    is_default = (obj["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"
    expansion = "expandable" if obj.get("allowVolumeExpansion") else "not expandable"
    text = (
        f"{provisioner}, {obj.get('volumeBindingMode') or 'Immediate'}, {expansion}{', default' if is_default else ''}"
    )
    if provisioner == STATIC:
        available = [obj for obj in visible(facts.volumes) if obj["spec"].get("storageClassName") == name]
        problem = "" if available else f"no PersistentVolume of this static StorageClass is Available ({text})"
        more = f", {count_text(len(available), 'PersistentVolume')} Available"
        return judged(problem, text + more, "kubectl get persistentvolumes")
    drivers, nodes = (None if isinstance(seen, Hidden) else seen for seen in (facts.drivers, facts.csi_nodes))
    if drivers is None or nodes is None:
        return Finding(State.UNKNOWN, f"{text}; whether its CSI driver is installed needs list csidrivers and csinodes")
    count = sum(provisioner in {driver["name"] for driver in node["spec"].get("drivers") or ()} for node in nodes)
    problem, kind = "", "; no CSI driver, so whether its provisioner works is not checked"
    if count or provisioner in {driver["metadata"]["name"] for driver in drivers}:
        problem = "" if count else f"CSI driver {provisioner} is on no node, so no pod can mount its volumes"
        kind = f", CSI driver on {count} of {count_text(len(nodes), 'node')}"
    elif ".csi." in provisioner:
        problem = f"CSIDriver {provisioner} does not exist"
    return judged(problem, f"{text}{kind}", _CHECK_CSI)


# Nodes and clocks


@_rule("Nodes")
def judge_nodes(facts: Facts) -> Findings:
    everything = visible(facts.nodes)
    wanted = {"kubernetes.io/os": "linux", **_settings(facts).pod_defaults.node_selector}

    def is_usable(node: Object) -> bool:
        spec, conditions = node.get("spec") or {}, (node.get("status") or {}).get("conditions") or ()
        is_ready = any((entry["type"], entry["status"]) == ("Ready", "True") for entry in conditions)
        is_closed = spec.get("unschedulable") or any(taint["effect"] in _TAINTS for taint in spec.get("taints") or ())
        return is_ready and not is_closed and all(label(node, key) == value for key, value in wanted.items())

    usable = [node for node in everything if is_usable(node)]
    labels = ",".join(f"{key}={value}" for key, value in wanted.items())
    count = count_text(len(everything), "node")
    problem = "" if usable else f"none of {count} is ready, untainted and has {labels}"
    cpus = sum((parse_amount(node["status"]["allocatable"]["cpu"]) for node in usable), Decimal())
    architectures = sorted({label(node, "kubernetes.io/arch") for node in usable})
    text = f"{len(usable)} of {count} for pods, {cpus.normalize():f} CPUs, {', '.join(architectures)}"
    yield judged(problem, text, "kubectl get nodes --show-labels; kubectl describe nodes | grep Taints")


@_rule("Clocks")
def judge_clocks(facts: Facts) -> Findings:
    fix, ahead = "timedatectl set-ntp true", facts.ahead_seconds
    here = f"this machine's clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} the API server's"
    text = "this machine and the API server agree within 2 s"
    yield judged(here if abs(ahead) > _CLOCK_SECONDS else "", text, fix, check="here")
    offsets = dict(_node_offsets(visible(facts.node_leases)))
    wrong = [f"{name} by {offset:.0f} s" for name, offset in offsets.items() if abs(offset) > _CLOCK_SECONDS]
    text = f"{count_text(len(offsets), 'node')} within 2 s; every trial compares clocks to milliseconds"
    problem = f"differ from the API server's: {first_few(wrong, 5)}" if wrong else ""
    yield judged(problem, text, f"{fix}   # on these nodes", check="of nodes")


def _node_offsets(leases: Sequence[Object]) -> Iterator[tuple[str, float]]:
    """Yield how far the clock of each node is ahead: its kubelet writes a time, and the API server when it did."""
    for lease in leases:
        written = [entry["time"] for entry in lease["metadata"].get("managedFields") or () if "time" in entry]
        if (renewed := lease["spec"].get("renewTime")) and written:
            # The API server cuts the fraction off.
            ahead = datetime.fromisoformat(renewed) - datetime.fromisoformat(max(written)) - timedelta(seconds=0.5)
            yield lease["metadata"]["name"], ahead.total_seconds()
