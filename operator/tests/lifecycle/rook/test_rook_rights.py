"""The Roles that an administrator gives the operator where Ceph's keys are."""

from pathlib import Path
from typing import Any

import yaml

from plimsoll.lifecycle.ceph.rook_render import KEY_SECRETS

MANIFESTS = Path(__file__).parents[4] / "manifests"


def found_in(directory: str, kind: str) -> dict[str, Any]:
    """Return the one object of a kind."""
    documents = yaml.safe_load_all((MANIFESTS / directory / f"{directory}.yaml").read_text())
    (found,) = [document for document in documents if document["kind"] == kind]
    return dict(found)


def rules(directory: str) -> dict[str, dict[str, Any]]:
    """Return the rules of a Role by resource."""
    role = found_in(directory, "Role")
    return {resource: rule for rule in role["rules"] for resource in rule["resources"]}


def test_of_rooks_secrets_only_those_may_be_read_that_runs_have_made() -> None:
    found = rules("rook")["secrets"]
    assert found["resourceNames"] == list(KEY_SECRETS)
    assert found["verbs"] == ["get"]


def test_of_rooks_config_maps_only_the_monitors_may_be_read() -> None:
    assert rules("rook")["configmaps"]["resourceNames"] == ["rook-ceph-mon-endpoints"]


def test_nothing_of_rooks_may_be_changed_but_pools_file_systems_and_users() -> None:
    changed = {resource for resource, rule in rules("rook").items() if set(rule["verbs"]) - {"get", "list"}}
    assert changed == {"cephblockpools", "cephfilesystems", "cephclients"}


def test_without_rook_only_the_keyrings_that_are_named_may_be_read() -> None:
    names = ["plimsoll-keyring", "plimsoll-osd-bench"]
    assert rules("ceph") == {
        "secrets": {"apiGroups": [""], "resources": ["secrets"], "resourceNames": names, "verbs": ["get"]}
    }


def test_the_operator_is_the_one_who_gets_these_rights() -> None:
    for directory in ("rook", "ceph"):
        (subject,) = found_in(directory, "RoleBinding")["subjects"]
        assert subject == {"kind": "ServiceAccount", "name": "plimsoll", "namespace": "plimsoll-system"}
