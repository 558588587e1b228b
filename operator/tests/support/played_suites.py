"""A suite on an API server: its operator, which may die at any request, and runs whose ends and results are played."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from plimsoll.api.names import API_VERSION
from plimsoll.kube.port import Kind, Kube, Object
from plimsoll.lifecycle.run import Settings
from plimsoll.metrics.exposition import Instruments
from plimsoll.operator.suites import SuiteReconciler
from plimsoll.plan.fingerprint import digest
from support.pretend_suites import START, KilledError
from support.results import result, steady, trials_of

SUITE = Kind(api_version=API_VERSION, kind="BenchmarkSuite")
RUN = Kind(api_version=API_VERSION, kind="BenchmarkRun")
RESULT = Kind(api_version=API_VERSION, kind="BenchmarkResult")
SETTINGS = Settings(runner_image="runner:1", rook_clusters={"rook-ceph/rook-ceph": ("*",)})

_MOST_LOOKS = 50
_CHANGING = {"create": "create", "patch_status": "patch status of", "delete": "delete"}
_VERBS = {"get": "get", **dict.fromkeys(("list", "versions", "pages"), "list"), **_CHANGING}
"""What each request of a client asks of the API server."""


@dataclass(slots=True)
class Mortal:
    """A client whose process dies at a request that changes something, before or after it is performed.

    Attributes:
        kill_in: number of such requests until it dies; None if it lives.
        asked: verb and kind of every request.
        made: names of the objects that it created.

    """

    kube: Kube
    kill_in: int | None = None
    kill_after: bool = False
    asked: set[str] = field(default_factory=set)
    made: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def ask(about: Any, *arguments: Any, **options: Any) -> Any:
            self.asked.add(f"{_VERBS[name]} {about['kind'] if name == 'create' else about.kind}")
            request = partial(getattr(self.kube, name), about, *arguments, **options)
            if name not in _CHANGING:
                return request()
            creates = name == "create" and not options.get("dry_run")
            return self._mortally(request, about["metadata"]["name"] if creates else "")

        return ask

    async def _mortally(self, request: Callable[[], Any], created: str) -> Any:
        if self.kill_in is not None:
            self.kill_in -= 1
        dies = self.kill_in is not None and self.kill_in <= 0
        if dies and not self.kill_after:
            raise KilledError
        answer = await request()
        if created and answer:
            self.made.append(created)
        if dies:
            raise KilledError
        return answer


@dataclass(slots=True, kw_only=True)
class PlayedSuite:
    """One suite.

    Attributes:
        kube: of whoever plays users and runs.
        operator: the client of the operator.
        created: names of the runs of the suite, in the order in which they were seen first.
        finished: names of those that ended.

    """

    kube: Kube
    operator: Mortal
    namespace: str
    name: str = "sizes"
    now: datetime = START
    events: list[str] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    finished: set[str] = field(default_factory=set)
    has_invalid_point: bool = False  # whether runs have a second point, which is Invalid
    reconciler: SuiteReconciler = field(init=False)
    document: Object = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Have another operator process take over, which knows nothing."""
        self.operator.kill_in = None
        self.reconciler = SuiteReconciler(
            kube=self.operator,
            settings=SETTINGS,
            now=lambda: self.now,
            instruments=Instruments(),
            post=lambda _, event: self.events.append(f"{event.reason}: {event.message}"),
        )

    async def create(self, document: Mapping[str, Any]) -> None:
        metadata = {"name": self.name, "namespace": self.namespace}
        assert await self.kube.create({**document, "metadata": metadata})
        self.document = await self.suite()

    async def suite(self) -> Object:
        found = await self.kube.get(SUITE, self.name, self.namespace)
        assert found is not None
        return found

    async def status(self) -> Mapping[str, Any]:
        status: Mapping[str, Any] = (await self.suite()).get("status") or {}
        return status

    async def condition(self, kind: str) -> Mapping[str, Any]:
        return next((one for one in (await self.status()).get("conditions", ()) if one["type"] == kind), {})

    async def change(self, **spec: Any) -> None:
        await self.kube.patch(SUITE, self.name, self.namespace, {"spec": spec})

    async def annotate(self, name: str, text: str) -> None:
        annotations = {f"plimsoll.dev/{name}": text}
        await self.kube.patch(SUITE, self.name, self.namespace, {"metadata": {"annotations": annotations}})

    def pass_time(self, **duration: float) -> None:
        self.now += timedelta(**duration)

    async def runs(self) -> Sequence[Object]:
        return await self.kube.list(RUN, namespace=self.namespace)

    async def look(self) -> float | None:
        """Look once; return after how many seconds the operator looks again."""
        seconds, _ = await self.reconciler.look(self.document)
        known = [run["metadata"]["name"] for run in await self.runs()]
        self.created += [name for name in known if name not in self.created]
        return seconds

    async def settle(self) -> float:
        """Look until the operator only waits; return for how long."""
        for _ in range(_MOST_LOOKS):
            if seconds := await self.look():
                return seconds
        raise AssertionError("the operator never waits")

    async def unfinished(self) -> Object | None:
        return next((run for run in await self.runs() if not (run.get("status") or {}).get("conditions")), None)

    async def finish(self, rates: Mapping[str, float] | None = None) -> bool:
        """Have the active run end, with results if there is a rate for its variant; false if there is none."""
        run = await self.unfinished()
        if run is None:
            return False
        variant = run["metadata"]["labels"]["plimsoll.dev/variant"]
        rate = (rates or {}).get(variant)
        if rate is not None:
            await self._record(run, rate, variant)
            if self.has_invalid_point:
                await self._record(run, rate, variant, point="reads-001", verdict="Invalid")
        await end_run(self.kube, run, succeeded=rate is not None, has_invalid_point=self.has_invalid_point)
        self.finished.add(run["metadata"]["name"])
        return True

    async def measure_round(self, **rates: float) -> Mapping[str, Any]:
        """Have all runs of a round end; return the round's record."""
        repeats: dict[str, int] = {}
        for _ in range(_MOST_LOOKS):
            await self.settle()
            run = await self.unfinished()
            if run is None:
                newest: Mapping[str, Any] = (await self.status())["rounds"][0]
                return newest
            variant = run["metadata"]["labels"]["plimsoll.dev/variant"]
            number = repeats[variant] = repeats.get(variant, 0) + 1
            # Runs of the same scatter by 1 %.
            scattered = {name: rate * (1 + 0.01 * (number % 3 - 1)) for name, rate in rates.items()}
            await self.finish(scattered)
        raise AssertionError("the round never ends")

    async def _record(
        self, run: Object, rate: float, variant: str, *, point: str = "reads-000", verdict: str = "Valid"
    ) -> None:
        """Store the result of a point of the run, as its conductor does."""
        metadata = run["metadata"]
        identity: dict[str, Any] = {"tool": "fio", "parameters": {"blockSize": {"small": 4096}.get(variant, 65536)}}
        context = {"kernel": "6.1.0", "kubernetes": "v1.34.1"}
        found = result(trials_of(steady(rate, 3)), run=metadata["name"], point=point)
        fingerprint = {
            "identity": identity,
            "context": context,
            "identitySha256": digest(identity),
            "contextSha256": digest(context),
        }
        document = found.model_dump(mode="json", by_alias=True, exclude_none=True)
        document["metadata"] = {
            "name": document["metadata"]["name"],
            "namespace": self.namespace,
            "labels": {"plimsoll.dev/run": metadata["name"]},
            "ownerReferences": [
                {"apiVersion": API_VERSION, "kind": RUN.kind, "name": metadata["name"], "uid": metadata["uid"]}
            ],
        }
        document["spec"]["runUid"] = metadata["uid"]
        assert await self.kube.create(document)
        status = document["status"] | {"fingerprint": fingerprint, "verdict": verdict}
        await self.kube.patch_status(RESULT, document["metadata"]["name"], self.namespace, status)


async def end_run(kube: Kube, run: Object, *, succeeded: bool, has_invalid_point: bool = False) -> None:
    metadata = run["metadata"]
    ending = ("False", "InvalidResults") if has_invalid_point else ("True" if succeeded else "False", "Valid")
    endings = {"Succeeded": ending, "CleanedUp": ("True", "Removed")}
    conditions = [
        {
            "type": kind,
            "status": value,
            "reason": reason,
            "message": "",
            "observedGeneration": metadata["generation"],
            "lastTransitionTime": "2026-11-25T12:00:00Z",
        }
        for kind, (value, reason) in endings.items()
    ]
    points = {"total": 1 + has_invalid_point, "completed": 1 + has_invalid_point, "invalid": int(has_invalid_point)}
    status = {"observedGeneration": metadata["generation"], "conditions": conditions, "points": points}
    await kube.patch_status(RUN, metadata["name"], metadata["namespace"], status)
