"""The objects that carry documents: plan, state, session secret, results."""

from plimsoll.api.names import RESULT_KIND
from plimsoll.api.state import RunState
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render.common import PLAN_FILE, STATE_FILE, Json, empty_secret, manifest, metadata
from plimsoll.lifecycle.run import Run
from plimsoll.plan.document import Plan, Point
from plimsoll.plan.estimate import most_trials


def plan_config_map(run: Run, plan: Plan) -> Json:
    """Return the frozen plan. It is immutable: an upgrade of the operator cannot change a running plan."""
    return manifest(
        "ConfigMap",
        metadata(run, naming.plan_config_map(run.name), component="plan"),
        immutable=True,
        data={PLAN_FILE: plan.model_dump_json(indent=1)},
    )


def state_config_map(run: Run) -> Json:
    """Return the ConfigMap for the conductor's state."""
    state = metadata(run, naming.state_config_map(run.name), component="state")
    # A conductor of an earlier version, frozen in the plan, rejects unknown fields.
    text = RunState().model_dump_json(exclude={"gathered"})
    return manifest("ConfigMap", state, data={STATE_FILE: text})


def session_secret(run: Run) -> Json:
    """Return the session secret without data, which is generated at its creation."""
    return empty_secret(metadata(run, naming.session_secret(run.name, run.uid), component="session"))


def result(run: Run, plan: Plan, point: Point) -> Json:
    """Return a point's result before it is measured: its identity."""
    is_retained = run.document is not None and run.document.spec.results == "Retain"
    labels = {naming.LABEL_WORKLOAD: point.workload}
    name = naming.result(run.name, point.name)
    spec = {
        "run": run.name,
        "runUid": run.uid,
        "point": point.name,
        "workload": point.workload,
        "tool": point.tool,
        "label": point.label,
        "parameters": point.parameters,
        "clients": point.clients,
        "runtimeSeconds": point.runtime_seconds,
        "rampSeconds": point.ramp_seconds,
        "repetitions": most_trials(plan, point),
    }
    if point.line is not None:
        spec["line"] = point.line.model_dump(mode="json", by_alias=True)
    return manifest(
        RESULT_KIND, metadata(run, name, component="result", owned=not is_retained, labels=labels), spec=spec
    )
