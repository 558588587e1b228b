"""Constraints on what a run sets for its pods: what breaks them."""

from collections.abc import Iterator
from typing import Any

from crd.manifests import BY_HAND, LONGER, Manifest, refused

_TERM = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
_MANY = {f"k{n}": "v" for n in range(33)}
_TEMPLATE = "spec.podTemplate"


def _of_terms(name: str, path: str, term: Any, says: str) -> Iterator[Manifest]:
    """Yield an invalid term of a node selector, as a requirement and as a preference."""
    required = {"nodeSelectorTerms": [term]}
    for kind, value, place in (
        ("required", required, "nodeSelectorTerms[0]"),
        ("preferred", [{"weight": 1, "preference": term}], "[0].preference"),
    ):
        affinity = {"nodeAffinity": {f"{kind}DuringSchedulingIgnoredDuringExecution": value}}
        yield refused(f"{kind} node {name}", f"{_TEMPLATE}.affinity", affinity, f"{place}.matchExpressions{path}", says)


def _of_expression(name: str, path: str, says: str, **changes: Any) -> Iterator[Manifest]:
    expression = {"key": "disk", "operator": "In", "values": ["ssd"], **changes}
    present = {key: value for key, value in expression.items() if value is not None}
    yield from _of_terms(name, f"[0].{path}", {"matchExpressions": [present]}, says)


def _of_affinity(name: str, kind: str, value: Any, path: str, says: str) -> Manifest:
    affinity = {"nodeAffinity": {f"{kind}DuringSchedulingIgnoredDuringExecution": value}}
    return refused(f"{kind} {name}", f"{_TEMPLATE}.affinity", affinity, path, says)


PODS = [
    *(
        refused(f"pull secret {name[:9]}", f"{_TEMPLATE}.imagePullSecrets", [{"name": name}], "[0].name", words)
        for name, words in (("Not_a_label", "should match"), (LONGER, "may not be more than 63"))
    ),
    refused("pull secret without a name", f"{_TEMPLATE}.imagePullSecrets", [{}], "[0].name", "Required value"),
    *(
        refused(f"conductor {number} {path}", f"spec.conductor.{path}", value, *says, model_accepts=BY_HAND)
        for number, (path, value, says) in enumerate(
            (
                ("nodeSelector", _MANY, ("nodeSelector", "at most 32 items")),
                ("nodeSelector.disk", "v" * 64, ("nodeSelector.disk", "more than 63")),
                *(
                    broken
                    for kind in ("requests", "limits")
                    for broken in (
                        (f"resources.{kind}", {f"r{n}": 1 for n in range(17)}, (kind, "at most 16 items")),
                        (f"resources.{kind}.memory", "1 GB", (f"{kind}.memory", "should match")),
                        (f"resources.{kind}.memory", "1" * 33, (f"{kind}.memory", "more than 32 bytes")),
                    )
                ),
            )
        )
    ),
    *(
        refused(f"pods {number} {path}", f"{_TEMPLATE}.{path}", value, *says, model_accepts=BY_HAND)
        for number, (path, value, says) in enumerate(
            (
                ("imagePullSecrets", [{"name": "s"}] * 17, ("imagePullSecrets", "at most 16 items")),
                ("labels", _MANY, ("labels", "at most 32 items")),
                ("labels.team", "v" * 64, ("labels.team", "more than 63")),
                ("annotations", _MANY, ("annotations", "at most 32 items")),
                ("annotations.team", "v" * 4097, ("annotations.team", "more than 4096")),
                ("priorityClassName", "p" * 254, ("priorityClassName", "more than 253")),
                ("runtimeClassName", "p" * 254, ("runtimeClassName", "more than 253")),
                ("tolerations", [{"key": "k"}] * 33, ("tolerations", "at most 32 items")),
                ("tolerations", [{"keys": "k"}], ('unknown field "spec.podTemplate.tolerations[0].keys"',)),
                ("tolerations", [{"key": "k" * 317}], ("tolerations[0].key", "more than 316")),
                ("tolerations", [{"operator": "Is"}], ("tolerations[0].operator", '"Exists"', '"Equal"')),
                ("tolerations", [{"value": "v" * 64}], ("tolerations[0].value", "more than 63")),
                ("tolerations", [{"effect": "No"}], ("tolerations[0].effect", '"NoExecute"')),
                ("tolerations", [{"tolerationSeconds": -1}], ("tolerationSeconds", "equal to 0")),
                ("tolerations", [{"tolerationSeconds": 315360001}], ("tolerationSeconds", "equal to 315360000")),
                ("env", [{"name": "NO_PROXY", "value": ""}] * 2, ("env[1]", "Duplicate value")),
                ("env", [{"name": "NO_PROXY", "value": ""}] * 7, ("env", "at most 6 items")),
            )
        )
    ),
    *(
        refused(f"pod label {name}", f"{_TEMPLATE}.labels", {name: "x"}, "podTemplate.labels", "must set neither")
        for name in ("plimsoll.dev/run-uid", "app.kubernetes.io/name", "batch.kubernetes.io/job-name", "job-name")
    ),
    *(
        refused(f"annotation {name}", f"{_TEMPLATE}.annotations", {name: "x"}, "must not set annotations below")
        for name in ("plimsoll.dev/assignment", "container.apparmor.security.beta.kubernetes.io/client")
    ),
    *(
        refused(f"pods' {name}", f"{_TEMPLATE}.{path}", value, *says)
        for name, path, value, says in (
            ("variable", "env", [{"name": "LD_PRELOAD", "value": "x"}], ("env[0].name", '"HTTPS_PROXY"')),
            ("variable without a name", "env", [{"value": "x"}], ("env[0].name", "Required value")),
            ("value", "env", [{"name": "NO_PROXY", "value": "v" * 4097}], ("env[0].value", "more than 4096")),
            ("variable without a value", "env", [{"name": "NO_PROXY"}], ("env[0].value", "Required value")),
            ("secret variable", "env", [{"name": "NO_PROXY", "value": "", "valueFrom": {}}], ("unknown field",)),
            ("affinity to pods", "affinity", {"podAntiAffinity": {}}, ("unknown field", "podAntiAffinity")),
        )
    ),
    *_of_terms("without expressions", "", {}, "Required value"),
    *_of_terms("with no expression", "", {"matchExpressions": []}, "should have at least 1 items"),
    *_of_terms("with many expressions", "", {"matchExpressions": _TERM["matchExpressions"] * 17}, "at most 16 items"),
    *_of_expression("without a key", "key", "Required value", key=None),
    *_of_expression("with a long key", "key", "more than 317", key="k" * 318),
    *_of_expression("without an operator", "operator", "Required value", operator=None),
    *_of_expression("with another operator", "operator", '"NotIn"', operator="Is"),
    *_of_expression("with many values", "values", "at most 64 items", values=["v"] * 65),
    *_of_expression("with a long value", "values[0]", "more than 63", values=["v" * 64]),
    _of_affinity("nodes without terms", "required", {}, "nodeSelectorTerms", "Required value"),
    _of_affinity("no node", "required", {"nodeSelectorTerms": []}, "nodeSelectorTerms", "at least 1 items"),
    _of_affinity(
        "many terms", "required", {"nodeSelectorTerms": [_TERM] * 17}, "nodeSelectorTerms", "at most 16 items"
    ),
    _of_affinity("many", "preferred", [{"weight": 1, "preference": _TERM}] * 17, "Execution", "at most 16 items"),
    _of_affinity("nothing", "preferred", [{"weight": 1}], "[0].preference", "Required value"),
    _of_affinity("without a weight", "preferred", [{"preference": _TERM}], "[0].weight", "Required value"),
    *(
        _of_affinity(f"by {weight}", "preferred", [{"weight": weight, "preference": _TERM}], "[0].weight", words)
        for weight, words in ((0, "greater than or equal to 1"), (101, "less than or equal to 100"))
    ),
]
