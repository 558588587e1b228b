"""The Helm chart: rejected values, and rendered objects."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from chart.rendering import CHART, EVERYTHING, LOCAL_IMAGES, NAMESPACE, Document, Rendering, helm, pod_specs, render
from plimsoll import __version__
from plimsoll.api.kinds import KINDS
from plimsoll.api.run import load_run
from plimsoll.api.storage import NamespacedName
from plimsoll.lifecycle.run import Burning, Helper, Limits
from plimsoll.operator.main import settings_of
from support.apiserver import read_yaml
from support.tooling import restricted, unsaid

pytestmark = pytest.mark.chart
ROOT = CHART.parents[1]
COLD = {"enabled": True, "namespaces": ["bench"]}
NIGHT = {"from": "22:00", "to": "06:00"}
DIGEST = f"sha256:{'0' * 64}"


# -- what Helm says


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["defaults", "everything"])
def test_lint_finds_nothing(values: Document, tmp_path: Path) -> None:
    path = tmp_path / "values.yaml"
    path.write_text(yaml.safe_dump(values))
    served = [f"--set=metrics.{part}.enabled=false" for part in ("serviceMonitor", "podMonitor", "rules")]
    options = ["--kube-version", "1.31.0", "--values", str(LOCAL_IMAGES), "--values", str(path), *served]
    done = helm("lint", "--strict", str(CHART), *options)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"rok": {}}, "additional properties 'rok' not allowed"),
        ({"image": {"tga": "1"}}, "at '/image': additional properties 'tga' not allowed"),
        ({"runner": {"image": {"digest": "sha256:1"}}}, "at '/runner/image/digest': 'sha256:1' does not match pattern"),
        ({"image": {"repository": "a@sha256:1"}}, "at '/image/repository'"),
        ({"image": {"repository": ""}}, "image.repository is empty, and no image of Plimsoll is published yet"),
        ({"image": {"repository": ""}}, "such as registry.example.org/team/plimsoll-operator"),
        ({"runner": {"image": {"repository": ""}}}, "such as registry.example.org/team/plimsoll-runner"),
        ({"caches": COLD, "image": {"repository": ""}}, "image.repository is empty"),
        ({"kubeBurner": COLD | {"image": {"repository": ""}}}, "registry.example.org/team/plimsoll-kube-burner"),
        ({"image": {"pullPolicy": "Sometimes"}}, "value must be one of 'Always', 'IfNotPresent', 'Never'"),
        ({"crds": {"keep": False}}, "at '/deleteRunsOnUninstall/enabled': value must be true"),
        ({"crds": {"keep": "no"}}, "at '/crds/keep': got string, want boolean"),
        ({"deleteRunsOnUninstall": {"timeoutSeconds": 0}}, "at '/deleteRunsOnUninstall/timeoutSeconds': minimum"),
        ({"rook": {"clusters": {"rook-ceph": ["bench"]}}}, "'rook-ceph' does not match pattern"),
        ({"rook": {"clusters": {"rook-ceph/rook-ceph": "bench"}}}, "got string, want array"),
        ({"rook": {"clusters": {"rook-ceph/rook-ceph": ["ben*"]}}}, "'ben*' does not match pattern"),
        ({"ceph": {"keyrings": {"bench": []}}}, "minItems: got 0, want 1"),
        ({"kubeBurner": {"enabled": True}}, "at '/kubeBurner/namespaces': minItems: got 0, want 1"),
        ({"kubeBurner": {"maxObjects": 0}}, "at '/kubeBurner/maxObjects': minimum"),
        ({"kubeBurner": {"maxQps": 1001}}, "at '/kubeBurner/maxQps': maximum"),
        ({"kubeBurner": {"maxVolumeSize": 1}}, "at '/kubeBurner/maxVolumeSize': got number, want string"),
        ({"osdBench": True}, "at '/osdBench': got boolean, want object"),
        ({"caches": {"enabled": True}}, "at '/caches/namespaces': minItems: got 0, want 1"),
        ({"caches": {"namespaces": ["ben*"]}}, "'ben*' does not match pattern"),
        ({"caches": COLD | {"ceph": {"monitors": ["192.0.2.1"]}}}, "caches.ceph.keyringSecret is empty"),
        ({"caches": COLD | {"ceph": {"keyringSecret": "key"}}}, "caches.ceph.monitors is empty"),
        ({"podDefaults": {"hostNetwork": True}}, "additional properties 'hostNetwork' not allowed"),
        ({"podDefaults": {"affinity": {"podAffinity": {}}}}, "additional properties 'podAffinity' not allowed"),
        ({"podDefaults": {"env": [{"name": "LD_PRELOAD", "value": ""}]}}, "at '/podDefaults/env/0/name'"),
        ({"podDefaults": {"labels": {"plimsoll.dev/run-uid": ""}}}, "invalid propertyName 'plimsoll.dev/run-uid'"),
        ({"podDefaults": {"annotations": {"plimsoll.dev/a": ""}}}, "invalid propertyName 'plimsoll.dev/a'"),
        ({"limits": {"maxClients": -1}}, "at '/limits/maxClients': minimum"),
        ({"limits": {"maxVolumeSize": "big"}}, "at '/limits/maxVolumeSize': 'big' does not match pattern"),
        ({"maintenanceWindows": [NIGHT | {"days": ["Monday"]}]}, "at '/maintenanceWindows/0/days/0'"),
        ({"maintenanceWindows": [NIGHT | {"to": "25:00"}]}, "at '/maintenanceWindows/0/to'"),
        ({"maintenanceWindows": [NIGHT, NIGHT | {"to": "22:00"}]}, "maintenanceWindows[1]: from and to are both 22:00"),
        ({"queue": {"holdSeconds": 59}}, "at '/queue/holdSeconds': minimum: got 59, want 60"),
        ({"watchNamespaces": ["be*"]}, "'be*' does not match pattern"),
        ({"admission": {"runs": "no"}}, "at '/admission/runs': got string, want boolean"),
        ({"logFormat": "xml"}, "value must be one of 'json', 'plain'"),
        ({"metrics": {"podMonitor": {"interval": "15"}}}, "at '/metrics/podMonitor/interval'"),
        ({"metrics": {"rules": {"interval": "15s"}}}, "additional properties 'interval' not allowed"),
        ({"networkPolicies": {"operator": {"apiServerPorts": ["https"]}}}, "got string, want integer"),
        ({"networkPolicies": {"dnsPorts": []}}, "at '/networkPolicies/dnsPorts': minItems"),
        ({"networkPolicies": {"cephNetworks": ["public"]}}, "at '/networkPolicies/cephNetworks/0'"),
    ],
)
def test_values_that_cannot_be_meant_are_refused_with_their_place(values: Document, says: str) -> None:
    assert says in render(values).complaint


@pytest.mark.parametrize(
    ("part", "kind"), [("serviceMonitor", "ServiceMonitor"), ("podMonitor", "PodMonitor"), ("rules", "PrometheusRule")]
)
def test_without_the_prometheus_operator_its_kinds_are_refused_with_the_remedy(part: str, kind: str) -> None:
    complaint = render({"metrics": {part: {"enabled": True}}}, serves_monitoring=False).complaint
    assert (
        f"metrics.{part}.enabled is true, and this cluster does not serve monitoring.coreos.com/v1/{kind}" in complaint
    )
    assert f"--api-versions monitoring.coreos.com/v1/{kind}" in complaint


def test_conductors_are_not_scraped_by_whoever_wants_to() -> None:
    complaint = render({"metrics": {"podMonitor": {"enabled": True}}}).complaint
    assert "networkPolicies.conductorMetricsFrom is empty, so nothing may scrape conductors" in complaint


@pytest.mark.parametrize("namespaces", [[], ["lab", "bench"]])
def test_commands_in_the_notes_can_be_pasted(namespaces: list[str], tmp_path: Path) -> None:
    # Only an installation prints notes: here they are a value of an object.
    chart = shutil.copytree(CHART, tmp_path / "chart")
    (chart / "templates" / "NOTES.txt").rename(chart / "notes.txt")
    (chart / "templates" / "notes.yaml").write_text('notes: {{ tpl (.Files.Get "notes.txt") . | quote }}')
    values = ["--show-only", "templates/notes.yaml", "--kube-version", "1.31.0"]
    values += ["--values", str(LOCAL_IMAGES), "--values", "-"]
    done = helm("template", "plimsoll", str(chart), *values, text=yaml.safe_dump({"watchNamespaces": namespaces}))
    notes = read_yaml(done.stdout)["notes"].partition("enforce=restricted\n\nBenchmark a StorageClass;")[2]
    plugin, document = (notes.partition(f"{before}:\n\n")[2].partition("\n\n")[0] for before in ("`", "clients"))
    pasted = f"{plugin}\n{document}"
    kubectl = 'kubectl() { echo "# $*"; [[ $1 != apply ]] || cat; }\n'
    shell = subprocess.run(["bash"], input=kubectl + pasted, capture_output=True, text=True, check=True, timeout=10)
    assert shell.stderr == "", "such as of a document that has no end"
    assert load_run(shell.stdout).spec.workloads
    commands = [line for line in shell.stdout.splitlines() if line.startswith("# ")]
    assert len(commands) == (3 if namespaces else 4)
    assert all((namespaces or ["bench"])[0] in command for command in commands)


def test_definitions_that_go_need_runs_that_go_only_if_the_chart_has_them() -> None:
    assert render({"crds": {"enabled": False, "keep": False}}).of_kind("CustomResourceDefinition") == []


def test_what_the_administrator_limits_reaches_the_operator() -> None:
    windows = [NIGHT | {"days": ["Sat", "Sun"], "timeZone": "Europe/Berlin"}]
    values = {"limits": {"maxClients": 4, "maxVolumeSize": "10Gi"}, "maintenanceWindows": windows}
    environment = {"PLIMSOLL_RUNNER_IMAGE": "runner:1"}
    limited = Limits(max_clients=4, max_volume_size=10 * 2**30)
    for rendering, limits, count in ((render(), Limits(), 0), (render(values), limited, 1)):
        (container,) = rendering.one("Deployment")["spec"]["template"]["spec"]["containers"]
        rendered = {one["name"]: one["value"] for one in container["env"] if "value" in one}
        settings = settings_of(environment | rendered)
        assert settings.limits == limits
        assert len(settings.windows) == count


# -- values and their schema


def leaves(schema: Document, definitions: Document, path: str = "") -> Iterator[str]:
    """Yield the paths of values that a schema names."""
    schema = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    if "properties" not in schema:
        yield path
    for name, part in schema.get("properties", {}).items():
        yield from leaves(part, definitions, f"{path}.{name}".lstrip("."))


def default(values: Any, path: str) -> Any:
    for name in path.split("."):
        values = values[name]
    return values


def schema() -> Document:
    found: Document = json.loads((CHART / "values.schema.json").read_text())
    return found


def test_every_value_of_the_schema_has_a_default() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    # Optional fields of one object of Kubernetes, and what Helm itself puts there.
    without = {"global", "podDefaults.affinity.nodeAffinity"}
    without |= {f"affinity.{name}" for name in ("nodeAffinity", "podAffinity", "podAntiAffinity")}
    for path in set(leaves(schema(), schema()["$defs"])) - without:
        default(values, path)


def test_every_object_of_the_schema_is_closed() -> None:
    def objects(part: Any) -> Iterator[Document]:
        if isinstance(part, dict):
            if part.get("type") == "object" and "properties" in part:
                yield part
            for inner in part.values():
                yield from objects(inner)

    assert all(one["additionalProperties"] is False for one in objects(schema()))


def test_every_default_is_in_the_readme() -> None:
    readme = (CHART / "README.md").read_text()
    for path in set(leaves(schema(), schema()["$defs"])) - {"global"}:
        parents = [path.rsplit(".", cut)[0] for cut in range(path.count(".") + 1)]
        assert any(f"| `{one}` |" in readme for one in parents), path


def test_generated_files_are_what_their_sources_say() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "hack" / "chart.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


# -- what is rendered


POLICIES = (
    *("claims", "copies", "finalizer", "jobs", "labels", "lease", "members", "metadata"),
    *("names", "objects", "orphans", "rights", "runs", "storage"),
)


def test_the_defaults_are_operators_their_rights_and_their_kinds(defaults: Rendering) -> None:
    hooks = [one for one in defaults.objects if "helm.sh/hook" in one["metadata"].get("annotations", {})]
    assert {one["metadata"]["annotations"]["helm.sh/hook"] for one in hooks} == {"test"}
    assert sorted((one["kind"], one["metadata"]["name"]) for one in defaults.objects if one not in hooks) == [
        ("ClusterRole", "plimsoll"),
        ("ClusterRole", "plimsoll-edit"),
        ("ClusterRole", "plimsoll-view"),
        ("ClusterRoleBinding", "plimsoll"),
        ("CustomResourceDefinition", "benchmarkresults.plimsoll.dev"),
        ("CustomResourceDefinition", "benchmarkruns.plimsoll.dev"),
        ("CustomResourceDefinition", "benchmarksuites.plimsoll.dev"),
        ("Deployment", "plimsoll"),
        ("Namespace", "plimsoll-teardown"),
        ("PodDisruptionBudget", "plimsoll"),
        ("Role", "plimsoll-lease"),
        ("Role", "plimsoll-teardown"),
        ("RoleBinding", "plimsoll-lease"),
        ("RoleBinding", "plimsoll-teardown"),
        ("Service", "plimsoll-metrics"),
        ("ServiceAccount", "plimsoll"),
        *(("ValidatingAdmissionPolicy", f"plimsoll-{name}") for name in POLICIES),
        *(("ValidatingAdmissionPolicyBinding", f"plimsoll-{name}") for name in POLICIES),
    ]


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_there_are_as_many_operators_as_asked_for_and_a_drain_leaves_one(replicas: int) -> None:
    rendering = render({"replicas": replicas})
    spec = rendering.one("Deployment")["spec"]
    assert spec["replicas"] == replicas
    budgets = rendering.of_kind("PodDisruptionBudget")
    assert [budget["spec"]["maxUnavailable"] for budget in budgets] == [1] * (replicas > 1)
    assert all(budget["spec"]["selector"] == spec["selector"] for budget in budgets)


def test_operators_prefer_different_nodes_unless_told_otherwise(defaults: Rendering) -> None:
    spec = defaults.one("Deployment")["spec"]
    (term,) = spec["template"]["spec"]["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["podAffinityTerm"]["topologyKey"] == "kubernetes.io/hostname"
    assert term["podAffinityTerm"]["labelSelector"] == spec["selector"]
    chosen: Document = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    assert render({"affinity": chosen}).one("Deployment")["spec"]["template"]["spec"]["affinity"] == chosen


def test_the_operators_have_one_lease_and_rights_to_no_other(defaults: Rendering) -> None:
    (container,) = defaults.one("Deployment")["spec"]["template"]["spec"]["containers"]
    (place,) = [entry["value"] for entry in container["env"] if entry["name"] == "PLIMSOLL_LEASE"]
    (role,) = [role for role in defaults.of_kind("Role") if role["metadata"]["name"] == "plimsoll-lease"]
    named = {tuple(rule["verbs"]): rule.get("resourceNames") for rule in role["rules"]}
    namespace, _, name = place.partition("/")
    assert role["metadata"]["namespace"] == namespace
    assert named == {("create",): None, ("get", "patch"): [name]}


def test_images_are_of_this_version_unless_a_tag_or_a_digest_says_otherwise(defaults: Rendering) -> None:
    def images(rendering: Rendering) -> tuple[str, str]:
        (container,) = rendering.one("Deployment")["spec"]["template"]["spec"]["containers"]
        runner = next(entry["value"] for entry in container["env"] if entry["name"] == "PLIMSOLL_RUNNER_IMAGE")
        return container["image"], runner

    # As `make images` names them without a registry: nobody else can publish an image under these names.
    home = "plimsoll"
    assert images(defaults) == (f"{home}-operator:{__version__}", f"{home}-runner:{__version__}")
    named = {"image": {"tag": "7"}, "runner": {"image": {"tag": "7", "digest": DIGEST}}}
    assert images(render(named)) == (f"{home}-operator:7", f"{home}-runner@{DIGEST}")


def test_the_operator_understands_its_environment(everything: Rendering) -> None:
    (container,) = everything.one("Deployment")["spec"]["template"]["spec"]["containers"]
    environment = {entry["name"]: entry["value"] for entry in container["env"] if "value" in entry}
    settings = settings_of(environment)
    assert settings.rook_clusters == {
        "rook-ceph/a": ("bench",), "rook-ceph/b": ("*",), "other/c": ("bench", "lab")
    }  # fmt: skip
    assert settings.rook_options == {"rook-ceph/a": ("osd_mclock_profile", "osd_memory_target")}
    assert settings.disturb == {"rook-ceph/a": ("*",), "bench/key-1": ()}
    assert settings.osd_bench
    helper = NamespacedName(namespace="plimsoll-caches", name="plimsoll-caches")
    assert settings.caches == Helper(service=helper, namespaces=("bench",))
    assert settings.burning == Burning(
        service=NamespacedName(namespace="plimsoll-kube-burner", name="plimsoll-kube-burner"),
        namespaces=("bench",),
        max_objects=50,
        max_qps=20,
        max_volume_size=2**30,
    )
    assert environment["HTTPS_PROXY"] == "http://proxy:3128"


@pytest.mark.parametrize("keep", [True, False])
def test_definitions_are_those_of_all_kinds(keep: bool) -> None:  # noqa: FBT001 - a parameter of the test
    values = {} if keep else {"crds": {"keep": False}, "deleteRunsOnUninstall": {"enabled": True}}
    rendered = {one["metadata"]["name"]: one for one in render(values).of_kind("CustomResourceDefinition")}
    for kind in KINDS:
        own = read_yaml((ROOT / "crds" / kind.file_name).read_text())
        one = rendered.pop(own["metadata"]["name"])
        assert one["spec"] == own["spec"]
        assert ("helm.sh/resource-policy" in one["metadata"].get("annotations", {})) == keep
    assert rendered == {}


def test_only_pods_that_say_so_have_a_token_and_their_directories_are_limited(everything: Rendering) -> None:
    specs = [*pod_specs(everything), everything.one("DaemonSet", "plimsoll-caches")["spec"]["template"]["spec"]]
    assert [problem for spec in specs for problem in unsaid(spec)] == []
    assert all(spec["automountServiceAccountToken"] for spec in specs), "each of them asks the API server"
    accounts = everything.of_kind("ServiceAccount")
    assert len(accounts) == len(specs)
    assert not any(account["automountServiceAccountToken"] for account in accounts)


def test_every_pod_fits_the_restricted_profile(everything: Rendering) -> None:
    specs = list(pod_specs(everything))
    assert len(specs) == 4, "operator, helper, removal of runs, test"
    for spec in specs:
        assert list(restricted(spec)) == []
        assert all(container["securityContext"]["readOnlyRootFilesystem"] for container in spec["containers"])
        assert all(container["resources"]["limits"]["memory"] for container in spec["containers"])
        assert spec["imagePullSecrets"] == [{"name": "registry"}]


def test_every_pod_is_for_linux_and_hooks_end_without_a_sidecar(everything: Rendering) -> None:
    specs = [*pod_specs(everything), everything.one("DaemonSet", "plimsoll-caches")["spec"]["template"]["spec"]]
    assert [spec["nodeSelector"]["kubernetes.io/os"] for spec in specs] == ["linux"] * 5
    hook, test = (
        everything.one("Job", "plimsoll-remove-runs")["spec"]["template"],
        everything.one("Pod", "plimsoll-test"),
    )
    for pod in (hook, test):
        assert pod["metadata"]["labels"]["sidecar.istio.io/inject"] == "false"
        assert pod["metadata"]["annotations"]["linkerd.io/inject"] == "disabled"


def test_the_defaults_of_pods_reach_the_operator() -> None:
    for rendering, selector in ((render(), {}), (render({"podDefaults": {"nodeSelector": {"a": "b"}}}), {"a": "b"})):
        (container,) = rendering.one("Deployment")["spec"]["template"]["spec"]["containers"]
        environment = {variable["name"]: variable.get("value", "") for variable in container["env"]}
        assert settings_of(environment).pod_defaults.node_selector == selector


def test_monitors_find_what_they_are_made_for(everything: Rendering) -> None:
    monitor, service = everything.one("ServiceMonitor"), everything.one("Service", "plimsoll-metrics")
    wanted = monitor["spec"]["selector"]["matchLabels"]
    assert wanted.items() <= service["metadata"]["labels"].items()
    assert service["spec"]["selector"].items() <= _pod_labels(everything).items()
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}
    assert endpoint["honorLabels"] is True


def _pod_labels(rendering: Rendering) -> Document:
    labels: Document = rendering.one("Deployment")["spec"]["template"]["metadata"]["labels"]
    return labels


def test_rules_are_those_of_the_file(everything: Rendering) -> None:
    own = yaml.safe_load((CHART / "files" / "rules.yaml").read_text())
    assert everything.one("PrometheusRule")["spec"] == own
    assert own["groups"]


def test_every_dashboard_has_a_config_map(everything: Rendering) -> None:
    maps = [one for one in everything.of_kind("ConfigMap") if one["metadata"]["namespace"] == NAMESPACE]
    files = sorted((CHART / "files" / "dashboards").glob("*.json"))
    assert files
    found = {key: json.loads(text) for one in maps for key, text in one["data"].items()}
    assert found == {f"plimsoll-{path.name}": json.loads(path.read_text()) for path in files}
    for one in maps:
        assert one["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert one["metadata"]["annotations"] == {"grafana_folder": "Plimsoll"}


def test_the_network_policy_selects_the_operator_and_lets_through_what_it_needs(everything: Rendering) -> None:
    spec = everything.one("NetworkPolicy")["spec"]
    assert spec["podSelector"]["matchLabels"].items() <= _pod_labels(everything).items()
    out = {port["port"] for rule in spec["egress"] for port in rule["ports"]}
    assert out == {443, 6443, 53, 5353}
    (container,) = everything.one("Deployment")["spec"]["template"]["spec"]["containers"]
    inward = {port["port"] for rule in spec["ingress"] for port in rule["ports"]}
    assert inward == {port["name"] for port in container["ports"]}


def test_without_network_policies_the_chart_has_none_either() -> None:
    off = render(EVERYTHING | {"networkPolicies": {"enabled": False, "operator": {"enabled": True}}})
    assert off.of_kind("NetworkPolicy") == []
    assert off.of_kind("PodMonitor"), "nothing keeps a Prometheus away"


def test_another_release_has_other_names() -> None:
    names = {
        one["metadata"]["name"]
        for one in render({"deleteRunsOnUninstall": {"enabled": True}}, release="storage").objects
        if one["kind"] != "CustomResourceDefinition"
    }
    assert all(name.startswith("storage-plimsoll") for name in names)
