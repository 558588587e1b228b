"""The stages of a run and when it reaches them, from the changes of its objects in a watch. Does no I/O."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

_CONDUCTOR = "conductor"
_BEFORE_TRIALS = {"Gathering", "Preparing"}
_CLEAN = {"Removed", "StorageKept", "NothingCreated"}
_SECOND = 10**9


@dataclass(frozen=True)
class Change:
    """A version of an object, and when it arrived; Unix seconds."""

    seconds: float
    obj: dict[str, Any]


@dataclass(frozen=True)
class Stage:
    """A stage, and when the run reached it; Unix seconds."""

    name: str
    seconds: float


@dataclass
class _Known:
    """The newest version of each object of a run."""

    run: str
    clients: int
    objects: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def take(self, obj: dict[str, Any]) -> None:
        self.objects[obj["kind"], obj["metadata"]["name"]] = obj

    def of(self, kind: str) -> list[dict[str, Any]]:
        found = (obj for (each, _), obj in self.objects.items() if each == kind)
        return [obj for obj in found if _labels(obj).get("plimsoll.dev/run") == self.run]

    def client_pods(self) -> list[dict[str, Any]]:
        return [pod for pod in self.of("Pod") if "plimsoll.dev/client" in _labels(pod)]

    def conductor_pods(self) -> list[dict[str, Any]]:
        return [pod for pod in self.of("Pod") if _labels(pod).get("app.kubernetes.io/component") == _CONDUCTOR]

    def all_pods(self, what: Callable[[dict[str, Any]], bool]) -> bool:
        return sum(map(what, self.client_pods())) == self.clients

    def condition(self, kind: str) -> dict[str, str]:
        run = self.objects.get(("BenchmarkRun", self.run), {})
        return _condition(run, kind)

    def state(self) -> dict[str, Any]:
        """Return the conductor's state; empty while there is none."""
        obj = self.objects.get(("ConfigMap", f"{self.run}-state"), {})
        found: dict[str, Any] = json.loads(obj.get("data", {}).get("state.json") or "{}")
        return found


def stages(changes: Sequence[Change], trials: Sequence[dict[str, Any]], *, run: str, clients: int) -> list[Stage]:
    """Return the stages that a run has reached, in their planned order.

    `trials` come from its results, which date the first I/O more precisely than a watch.
    """
    known, reached = _Known(run, clients), dict[str, float]()
    for change in sorted(changes, key=lambda change: change.seconds):
        known.take(change.obj)
        for name, holds in _CHECKS.items():
            if name not in reached and holds(known):
                reached[name] = change.seconds
        if current := known.state().get("current"):
            reached.setdefault("first T0", float(current["startsAt"]))
    reached |= _of_trials(trials)
    return [Stage(name, reached[name]) for name in _ORDER if name in reached]


def rows(found: Sequence[Stage], begun: float) -> Iterator[tuple[str, float, float]]:
    """Yield each stage with the seconds since `begun`, and since the last of the stages before it."""
    before = begun
    for stage in found:
        yield stage.name, stage.seconds - begun, max(0.0, stage.seconds - before)
        before = max(before, stage.seconds)


def _of_trials(trials: Sequence[dict[str, Any]]) -> dict[str, float]:
    measured = [trial for trial in trials if "window" in trial]
    if not measured:
        return {}
    first = min(measured, key=lambda trial: int(trial["window"]["startNanoseconds"]))
    return {
        "start of first trial's window": first["window"]["startNanoseconds"] / _SECOND,
        "end of last trial's window": max(trial["window"]["endNanoseconds"] for trial in measured) / _SECOND,
        "last trial judged": max(datetime.fromisoformat(trial["finishedAt"]).timestamp() for trial in measured),
    }


def _is_scheduled(pod: dict[str, Any]) -> bool:
    return _condition(pod, "PodScheduled").get("status") == "True"


def _has_started(pod: dict[str, Any]) -> bool:
    states = [container.get("state", {}) for container in pod.get("status", {}).get("containerStatuses", [])]
    return bool(states) and all(state.keys() & {"running", "terminated"} for state in states)


def _has_succeeded(pod: dict[str, Any]) -> bool:
    return bool(pod.get("status", {}).get("phase") == "Succeeded")


def _condition(obj: dict[str, Any], kind: str) -> dict[str, str]:
    conditions: list[dict[str, str]] = obj.get("status", {}).get("conditions") or []
    return next((condition for condition in conditions if condition["type"] == kind), {})


def _labels(obj: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = obj["metadata"].get("labels") or {}
    return found


def _are_bound(known: _Known) -> bool:
    claims = known.of("PersistentVolumeClaim")
    return len(claims) == known.clients and all(claim.get("status", {}).get("phase") == "Bound" for claim in claims)


def _is_prefilled(known: _Known) -> bool:
    state = known.state()
    return bool(state.get("epoch")) and state["phase"] not in _BEFORE_TRIALS and not state["missing"]


_CHECKS: dict[str, Callable[[_Known], bool]] = {
    "admitted": lambda known: known.condition("Admitted").get("status") == "True",
    "clients' pods created": lambda known: known.all_pods(lambda _: True),
    "conductor's pod created": lambda known: bool(known.conductor_pods()),
    "PVCs bound": _are_bound,
    "pods scheduled": lambda known: known.all_pods(_is_scheduled),
    "conductor's container started": lambda known: any(map(_has_started, known.conductor_pods())),
    "conductor active": lambda known: bool(known.state().get("epoch")),
    "containers started": lambda known: known.all_pods(_has_started),
    "clients registered": lambda known: len(known.state().get("registered", ())) == known.clients,
    "prefill done": _is_prefilled,
    "conductor succeeded": lambda known: any(map(_has_succeeded, known.conductor_pods())),
    "Measured": lambda known: known.condition("Measured").get("status") == "True",
    "finished and clean": lambda known: known.condition("CleanedUp").get("reason") in _CLEAN,
}

_ORDER = (
    *("admitted", "clients' pods created", "conductor's pod created", "PVCs bound", "pods scheduled"),
    *("conductor's container started", "conductor active", "containers started", "clients registered"),
    *("prefill done", "first T0", "start of first trial's window", "end of last trial's window", "last trial judged"),
    *("conductor succeeded", "Measured", "finished and clean"),
)
