"""Adds the administrator's and the author's settings for a run's pods to Plimsoll's."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from plimsoll.api.pods import PodTemplate
from plimsoll.lifecycle.render.common import Json
from plimsoll.lifecycle.run import Run, Settings

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_LINUX = {"kubernetes.io/os": "linux"}
_NO_SIDECAR_LABELS = {"sidecar.istio.io/inject": "false"}
_NO_SIDECAR_ANNOTATIONS = {"linkerd.io/inject": "disabled"}


def pod_template(
    spec: Json,
    settings: Settings,
    run: Run | None = None,
    *,
    labels: Mapping[str, str],
    annotations: Mapping[str, str] = _NOTHING,
    resources: Mapping[str, Any] = _NOTHING,
) -> Json:
    """Return the template of a Job's pod with one container.

    What the run sets (its pod template, `resources`, and the node selector in `spec`) overrides the administrator's
    defaults; `labels`, `annotations` and the operating system override both. Without `run`, only the defaults apply.
    """
    defaults = settings.pod_defaults
    template = run.document.spec.pod_template if run is not None and run.document is not None else PodTemplate()
    layers = (defaults, template)
    (container,) = spec["containers"]
    proxies = {variable.name: variable.value for layer in layers for variable in layer.env}
    container = {
        **container,
        "env": [*container["env"], *({"name": name, "value": value} for name, value in proxies.items())],
        "resources": _merged_resources((container["resources"], defaults.resources, resources)),
    }
    affinity = template.affinity or defaults.affinity
    to_nodes = affinity.model_dump(mode="json", by_alias=True, exclude_defaults=True) if affinity else {}
    optional = {
        "tolerations": [
            *spec.get("tolerations", ()),
            *(dict(given) for layer in layers for given in layer.tolerations),
        ],
        "affinity": {**spec.get("affinity", {}), **to_nodes},
        "imagePullSecrets": [{"name": secret.name} for layer in layers for secret in layer.image_pull_secrets],
        "priorityClassName": template.priority_class_name or defaults.priority_class_name,
        "runtimeClassName": template.runtime_class_name or defaults.runtime_class_name,
    }
    metadata = {
        "labels": {**_NO_SIDECAR_LABELS, **defaults.labels, **template.labels, **labels},
        "annotations": {**_NO_SIDECAR_ANNOTATIONS, **defaults.annotations, **template.annotations, **annotations},
    }
    complete = {
        **spec,
        "nodeSelector": {**defaults.node_selector, **spec.get("nodeSelector", {}), **_LINUX},
        **optional,
        "containers": [container],
    }
    return {
        "metadata": metadata,
        "spec": {name: value for name, value in complete.items() if value not in ([], {}, None, "")},
    }


def _merged_resources(layers: Iterable[Mapping[str, Any]]) -> Json:
    """Return requests and limits. A layer that names a resource replaces both its request and its limit."""
    merged: Json = {"requests": {}, "limits": {}}
    for layer in layers:
        named = {name for values in layer.values() for name in values or ()}
        for kind, values in merged.items():
            others = {name: value for name, value in values.items() if name not in named}
            merged[kind] = {**others, **(layer.get(kind) or {})}
    return {kind: values for kind, values in merged.items() if values}
