"""What the Pod Security Standards and kstatus say of objects."""

from collections.abc import Iterator, Mapping
from typing import Any

Pod = Mapping[str, Any]

_HOST = ("hostNetwork", "hostPID", "hostIPC")
_VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
_SAFE_SYSCTLS = {
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
}
_SECCOMP = {"RuntimeDefault", "Localhost"}


def baseline(spec: Pod) -> Iterator[str]:
    """Yield what the baseline profile forbids about a pod."""
    yield from (field for field in _HOST if spec.get(field))
    yield from (f"volume {volume['name']} of the host" for volume in spec["volumes"] if "hostPath" in volume)
    if spec.get("securityContext", {}).get("seccompProfile", {}).get("type") == "Unconfined":
        yield "pod: unconfined"
    sysctls = spec.get("securityContext", {}).get("sysctls", [])
    yield from (f"pod: sysctl {one['name']}" for one in sysctls if one["name"] not in _SAFE_SYSCTLS)
    for container in _containers(spec):
        security = container.get("securityContext", {})
        if security.get("privileged"):
            yield f"{container['name']}: privileged"
        if security.get("capabilities", {}).get("add"):
            yield f"{container['name']}: more capabilities"
        if security.get("procMount", "Default") != "Default":
            yield f"{container['name']}: procMount"
        if any(port.get("hostPort") for port in container.get("ports", [])):
            yield f"{container['name']}: port of the host"


def restricted(spec: Pod) -> Iterator[str]:
    """Yield what the restricted profile forbids about a pod."""
    yield from baseline(spec)
    for volume in spec["volumes"]:
        yield from (f"volume {volume['name']}: {kind}" for kind in volume.keys() - {"name"} - _VOLUMES)
    pod = spec.get("securityContext", {})
    for container in _containers(spec):
        own = container.get("securityContext", {})
        security = {**pod, **own}
        name = container["name"]
        if own.get("allowPrivilegeEscalation") is not False:
            yield f"{name}: privilege escalation"
        if security.get("runAsNonRoot") is not True:
            yield f"{name}: not runAsNonRoot"
        if security.get("runAsUser") == 0:
            yield f"{name}: uid 0"
        if security.get("seccompProfile", {}).get("type") not in _SECCOMP:
            yield f"{name}: seccomp"
        if "ALL" not in own.get("capabilities", {}).get("drop", []):
            yield f"{name}: keeps capabilities"


def unsaid(spec: Pod) -> Iterator[str]:
    """Yield what a pod leaves to the cluster: whether it gets a token, and how much its directories may hold."""
    if "automountServiceAccountToken" not in spec:
        yield "automountServiceAccountToken"
    directories = {volume["name"]: volume["emptyDir"] for volume in spec["volumes"] if "emptyDir" in volume}
    yield from (f"size of {name}" for name, directory in directories.items() if "sizeLimit" not in directory)
    # What is in it would count for the memory limit of the container.
    yield from (f"{name} in memory" for name, directory in directories.items() if directory.get("medium"))


def _containers(spec: Pod) -> list[Mapping[str, Any]]:
    return [*spec.get("initContainers", []), *spec["containers"]]


def kstatus(obj: Mapping[str, Any]) -> str:
    """Return `Terminating`, `InProgress`, `Failed` or `Current`."""
    metadata, status = obj["metadata"], obj.get("status", {})
    if "deletionTimestamp" in metadata:
        return "Terminating"
    observed = status.get("observedGeneration")
    if observed is not None and observed != metadata["generation"]:
        return "InProgress"
    true = {entry["type"] for entry in status.get("conditions", []) if entry["status"] == "True"}
    if "Reconciling" in true:
        return "InProgress"
    if "Stalled" in true:
        return "Failed"
    return "Current"
