"""Rook's status of a CephCluster; the stand-in manages no daemons."""

import time
from typing import Any, Never

from release import Release
from worker import say

from kube import Api, ApiError, Object, now

import ceph

KIND = "CephCluster"
_KEY_CHECKS = "AUTH_INSECURE_"
_DEFAULT_INTERVAL_SECONDS = 60.0


def is_usable(found: Object, release: Release) -> bool:
    """Whether pools and users are reconciled: Rook waits while Ceph reports an error, now unless all are about keys."""
    reported = found.get("status", {}).get("ceph", {})
    if reported.get("health") in {"HEALTH_OK", "HEALTH_WARN"}:
        return True
    errors = [name for name, check in reported.get("details", {}).items() if check["severity"] == "HEALTH_ERR"]
    return release.is_new and bool(errors) and all(name.startswith(_KEY_CHECKS) for name in errors)


def ceph_version(api: Api) -> str:
    """Return the version of Ceph as Rook writes it, `18.2.7-0`."""
    return str(api.list(KIND)[0]["status"]["version"]["version"])


class Clusters:
    """Updates the status of the CephCluster objects, and mutes the health checks that they list."""

    def __init__(self, api: Api, release: Release, image: str) -> None:
        self._api = api
        self._release = release
        self._image = image
        self._muted: dict[str, int] = {}

    def run(self) -> Never:
        """Poll Ceph forever, at the interval of the object."""
        while True:
            interval = _DEFAULT_INTERVAL_SECONDS
            try:
                for found in self._api.list(KIND):
                    interval = _interval_seconds(found)
                    self.mute(found)
                    self._refresh(found)
            except (ApiError, ceph.CommandError) as error:
                say(f"{KIND}: {error}")
            time.sleep(interval)

    def mute(self, found: Object) -> None:
        """Mute and unmute health checks, once for each generation of an object; Rook 1.18 has no field for that."""
        uid, generation = found["metadata"]["uid"], found["metadata"]["generation"]
        if not self._release.is_new or self._muted.get(uid) == generation:
            return
        for command in mutes(found["spec"]):
            try:
                ceph.run("ceph", "health", *command)
            except ceph.CommandError as error:
                say(f"{KIND}: {error}")
        self._muted[uid] = generation

    def _refresh(self, found: Object) -> None:
        name, old = found["metadata"]["name"], found.get("status", {})
        status, usage, versions = (ceph.read("ceph", what) for what in ("status", "df", "versions"))
        classes = ceph.read("ceph", "osd", "crush", "class", "ls")
        before = old.get("ceph", {})
        reported = {name: before[name] for name in ("previousHealth", "lastChanged") if name in before}
        reported |= sampled(before, status, usage, versions)
        version = f"{next(iter(versions['mon'])).split()[2]}-0"
        if not old:
            self._api.patch_status(KIND, name, {"phase": "Progressing", "state": "Creating"})
        self._api.patch_status(
            KIND,
            name,
            {
                "ceph": replacing(before, reported),
                "observedGeneration": found["metadata"]["generation"],
                "storage": {
                    "deviceClasses": [{"name": each} for each in classes],
                    "osd": {"migrationStatus": {}, "storeType": {"bluestore": status["osdmap"]["num_osds"]}},
                },
                "version": {"image": self._image, "version": version},
                **success(found),
            },
        )


def mutes(spec: Object) -> list[tuple[str, ...]]:
    """Return the commands of `ceph health` that a specification asks for."""
    listed = spec.get("healthCheck", {}).get("muteHealthWarning", {})
    return [
        ("mute", name, "--sticky") if mute["policy"] == "mute" else ("unmute", name) for name, mute in listed.items()
    ]


def sampled(old: Object, status: Any, usage: Any, versions: Any) -> Object:  # noqa: ANN401 - any JSON
    """Return what Rook reports about Ceph, `status.ceph`, given its previous report and what Ceph answered."""
    health, checks = status["health"]["status"], status["health"]["checks"]
    report = {
        "fsid": status["fsid"],
        "health": health,
        "lastChecked": now(),
        "capacity": {
            "bytesTotal": usage["stats"]["total_bytes"],
            "bytesUsed": usage["stats"]["total_used_raw_bytes"],
            "bytesAvailable": usage["stats"]["total_avail_bytes"],
            "lastUpdated": now(),
        },
        "versions": {kind: counts for kind, counts in versions.items() if counts},
    }
    if checks:
        # Muted checks as well, and without saying so.
        report["details"] = {
            name: {"message": check["summary"]["message"], "severity": check["severity"]}
            for name, check in checks.items()
        }
    if old.get("health") not in {None, health}:
        report |= {"previousHealth": old["health"], "lastChanged": now()}
    return report


def replacing(old: Object, new: Object) -> Object:
    """Return the merge patch that makes of an old object a new one: what a patch does not name stays."""
    patch = dict.fromkeys(old) | new
    for name, value in new.items():
        if isinstance(value, dict) and isinstance(old.get(name), dict):
            patch[name] = replacing(old[name], value)
    return patch


def success(found: Object) -> Object:
    """Return what Rook reports about a cluster that it has created, or connected to if that is external."""
    phase, state, message = "Ready", "Created", "Cluster created successfully"
    if found["spec"].get("external", {}).get("enable"):
        phase, state, message = "Connected", "Connected", "Cluster connected successfully"
    before = {each["type"]: each for each in found.get("status", {}).get("conditions", [])}
    condition = {
        "type": phase,
        "status": "True",
        "reason": f"Cluster{state}",
        "message": message,
        "lastHeartbeatTime": now(),
        "lastTransitionTime": before.get(phase, {}).get("lastTransitionTime", now()),
    }
    return {"conditions": [condition], "message": message, "phase": phase, "state": state}


def _interval_seconds(found: Object) -> float:
    check = found["spec"].get("healthCheck", {}).get("daemonHealth", {}).get("status", {})
    return float(str(check.get("interval", f"{_DEFAULT_INTERVAL_SECONDS:.0f}s")).removesuffix("s"))
