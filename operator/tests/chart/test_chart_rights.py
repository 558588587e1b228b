"""What the chart allows the operator, its users and its helpers."""

import json
import re

import pytest

from chart.rendering import CHART, NAMESPACE, Rendering, pod_specs, render

pytestmark = pytest.mark.chart
ROOT = CHART.parents[1]
TEARDOWN = "plimsoll-teardown"


def test_no_role_has_a_wildcard(everything: Rendering) -> None:
    for role in [*everything.of_kind("ClusterRole"), *everything.of_kind("Role")]:
        for rule in role["rules"]:
            named = [*rule["verbs"], *rule.get("resources", ()), *rule.get("apiGroups", ())]
            assert "*" not in named
            assert not {"escalate", "bind", "impersonate"} & set(named)


def test_secrets_are_read_by_name_or_in_the_namespace_of_teardowns(everything: Rendering) -> None:
    for role in [*everything.of_kind("ClusterRole"), *everything.of_kind("Role")]:
        for rule in role["rules"]:
            if "secrets" in rule.get("resources", ()) and set(rule["verbs"]) != {"create"}:
                assert rule.get("resourceNames") or role["metadata"].get("namespace") == TEARDOWN
                assert set(rule["verbs"]) <= {"get", "create", "delete"}


def test_each_rook_namespace_has_one_role(everything: Rendering) -> None:
    roles = [role for role in everything.of_kind("Role") if role["metadata"]["name"] == "plimsoll-rook"]
    assert sorted(role["metadata"]["namespace"] for role in roles) == ["other", "rook-ceph"]
    assert roles[0]["rules"] == roles[1]["rules"]


def test_keyrings_are_readable_where_and_as_they_are_named(everything: Rendering) -> None:
    roles = [role for role in everything.of_kind("Role") if role["metadata"]["name"] == "plimsoll-keyring"]
    named = {role["metadata"]["namespace"]: role["rules"][0]["resourceNames"] for role in roles}
    assert named == {"bench": ["plimsoll-keyring"], "lab": ["one", "two"]}


def _rules(rendering: Rendering, name: str) -> list[str]:
    return sorted(json.dumps(rule, sort_keys=True) for rule in rendering.one("ClusterRole", name)["rules"])


def test_with_namespaces_the_operator_looks_after_these_and_its_own_and_has_no_rights_in_others(
    defaults: Rendering,
) -> None:
    some = render({"watchNamespaces": ["bench", "lab", NAMESPACE], "deleteRunsOnUninstall": {"enabled": True}})
    expected = [f"--namespace={name}" for name in (NAMESPACE, "bench", "lab")]
    args = {pod["containers"][0]["args"][0]: pod["containers"][0]["args"] for pod in pod_specs(some)}
    for program in ("operator", "remove-runs"):
        assert [argument for argument in args[program] if argument.startswith("--namespace")] == expected
    bound = [one["metadata"]["namespace"] for one in some.of_kind("RoleBinding") if "-runs" in one["metadata"]["name"]]
    assert sorted(bound) == sorted(2 * ["bench", "lab", NAMESPACE])
    assert [one["metadata"]["name"] for one in some.of_kind("ClusterRoleBinding")] == ["plimsoll"]
    everywhere = {name for rule in some.one("ClusterRole")["rules"] for name in rule.get("resources", ())}
    assert everywhere == {"storageclasses", "persistentvolumes", "namespaces", "customresourcedefinitions"}
    assert sorted([*_rules(some, "plimsoll"), *_rules(some, "plimsoll-runs")]) == _rules(defaults, "plimsoll")


def test_without_any_it_looks_after_all(defaults: Rendering) -> None:
    (operator,) = [pod for pod in pod_specs(defaults) if pod["containers"][0]["args"][0] == "operator"]
    assert not any(argument.startswith("--namespace") for argument in operator["containers"][0]["args"])


def test_viewers_change_nothing_and_editors_write_no_numbers(defaults: Rendering) -> None:
    (view,) = defaults.one("ClusterRole", "plimsoll-view")["rules"]
    assert set(view["verbs"]) == {"get", "list", "watch"}
    edit = {
        resource: set(rule["verbs"])
        for rule in defaults.one("ClusterRole", "plimsoll-edit")["rules"]
        for resource in rule["resources"]
    }
    assert set(edit) == {"benchmarkruns", "benchmarksuites", "benchmarkresults"}
    # A binding to this role alone is enough for `kubectl apply` and for every command of the plugin.
    assert all(verbs > set(view["verbs"]) for verbs in edit.values())
    assert edit["benchmarkresults"] - set(view["verbs"]) == {"delete", "deletecollection"}


def test_built_in_roles_include_those_of_users_unless_that_is_not_wanted(defaults: Rendering) -> None:
    def aggregated(rendering: Rendering, name: str) -> set[str]:
        labels = rendering.one("ClusterRole", name)["metadata"]["labels"]
        return {label.rpartition("-")[2] for label in labels if "aggregate-to" in label}

    assert aggregated(defaults, "plimsoll-view") == {"view", "edit", "admin"}
    assert aggregated(defaults, "plimsoll-edit") == {"edit", "admin"}
    without = render({"rbac": {"aggregateClusterRoles": False}})
    assert aggregated(without, "plimsoll-view") | aggregated(without, "plimsoll-edit") == set()


CALLED = {"persistentvolumeclaims": "claims", "customresourcedefinitions": "crds"}


def test_every_kind_that_the_operator_may_touch_is_documented(everything: Rendering) -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
    table = page.partition("\n## Who may do what\n")[2].partition("\n## ")[0]
    words = set(re.findall(r"[a-z]+", table.lower()))
    roles = [everything.one("ClusterRole"), *everything.of_kind("Role")]
    resources = {
        name.partition("/")[0] for role in roles for rule in role["rules"] for name in rule.get("resources", ())
    }
    assert {CALLED.get(name, name) for name in resources} - words == set()
