import json
import re
from typing import Any

import pytest

from plimsoll.tools.kube_burner import MAX_SECONDS, KubeBurnerParameters, Place, files_of

PLACE = Place(
    namespace="plimsoll-burn-a", storage_class="fast", pod_image="runner:1", labels={"plimsoll.dev/run-uid": "u"}
)


def parameters(**fields: object) -> KubeBurnerParameters:
    return KubeBurnerParameters.model_validate(fields)


def job(**fields: object) -> dict[str, Any]:
    (found,) = json.loads(files_of(parameters(**fields), PLACE)["config.yml"])["jobs"]
    return dict(found)


def seen_by_kube_burner(template: str) -> Any:
    """A template without its placeholders, as kube-burner reads the kind of its object."""
    return json.loads(re.sub(r"\{\{.*\}\}", "", template))


def test_job_creates_what_was_ordered_in_a_namespace_with_labels() -> None:
    found = job(objects=50, qps=5)
    assert (found["jobIterations"], found["qps"], found["burst"], found["maxWaitTimeout"]) == (50, 5, 5, "300s")
    assert found["jobPause"] == "10s"
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    assert (found["namespace"], found["namespaceLabels"]) == ("plimsoll-burn-a", {**PLACE.labels, **restricted})
    assert [entry["objectTemplate"] for entry in found["objects"]] == ["pvc.yml", "pod.yml"]
    assert "churnConfig" not in found
    assert not found["preLoadImages"]
    assert not found["namespacedIterations"]
    assert job(burst=9)["burst"] == 9


def test_name_of_the_job_is_unique_because_kube_burner_deletes_namespaces_by_it() -> None:
    assert job()["name"] == PLACE.namespace


def test_helper_and_not_kube_burner_deletes_namespaces() -> None:
    config = json.loads(files_of(parameters(), PLACE)["config.yml"])
    assert config["global"]["gc"] is False


def test_churn_deletes_whole_namespaces() -> None:
    found = job(churn={"cycles": 2, "percent": 20})
    assert found["namespacedIterations"]
    assert found["churnConfig"] == {
        "mode": "namespaces",
        "cycles": 2,
        "percent": 20,
        "duration": "0s",
        "delay": "0s",
    }


def test_templates_are_readable_without_their_placeholders() -> None:
    files = files_of(parameters(volumeSize="1Gi"), PLACE)
    claim, pod = seen_by_kube_burner(files["pvc.yml"]), seen_by_kube_burner(files["pod.yml"])
    assert (claim["kind"], pod["kind"]) == ("PersistentVolumeClaim", "Pod")
    assert claim["spec"]["storageClassName"] == "fast"
    assert claim["spec"]["resources"] == {"requests": {"storage": "1Gi"}}
    assert claim["metadata"]["labels"] == pod["metadata"]["labels"] == PLACE.labels


def test_pod_mounts_the_claim_of_its_iteration() -> None:
    files = files_of(parameters(), PLACE)
    name = json.loads(files["pvc.yml"])["metadata"]["name"]
    (volume,) = json.loads(files["pod.yml"])["spec"]["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] == name == "pvc-{{.Iteration}}-{{.Replica}}"


def test_pod_has_no_rights_and_meets_the_restricted_standard() -> None:
    spec = json.loads(files_of(parameters(), PLACE)["pod.yml"])["spec"]
    (container,) = spec["containers"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["image"] == "runner:1"


def test_without_pods_there_is_no_template_and_no_measurement_of_pods() -> None:
    files = files_of(parameters(pods=False), PLACE)
    assert set(files) == {"config.yml", "pvc.yml"}
    assert json.loads(files["config.yml"])["global"]["measurements"] == [{"name": "pvcLatency"}]


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ({}, 1 + 420 + 10),
        ({"objects": 200, "qps": 2, "pods": False, "readySeconds": 60}, 100 + 180),
        ({"churn": {"cycles": 2}, "readySeconds": 60}, 1 + 3 * 180 + 10),
    ],
)
def test_limit_covers_creation_and_waiting(fields: dict[str, object], seconds: int) -> None:
    assert parameters(**fields).limit_seconds == seconds


@pytest.mark.parametrize(
    "fields",
    [
        {"objects": 5000, "qps": 1, "burst": 1, "pods": True, "churn": {"percent": 100, "cycles": 20}},
        {"readySeconds": 3600, "churn": {"cycles": 20}},
    ],
)
def test_a_measurement_that_may_take_most_of_a_day_is_refused(fields: dict[str, object]) -> None:
    """Nobody else can use kube-burner meanwhile."""
    with pytest.raises(ValueError, match=r"readySeconds: .*may take \d+ s, more than 14400 s"):
        parameters(**fields)


def test_defaults_may_take_minutes() -> None:
    assert parameters(objects=500, qps=20, churn={"cycles": 10}).limit_seconds < MAX_SECONDS
