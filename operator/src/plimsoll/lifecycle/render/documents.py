"""The objects that carry documents: plan, state, session secret, results."""

from plimsoll.api.names import API_VERSION, RESULT_KIND
from plimsoll.api.state import RunState
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render.common import PLAN_FILE, STATE_FILE, Json, metadata
from plimsoll.lifecycle.run import Run
from plimsoll.plan.document import Plan, Point


def plan_config_map(run: Run, plan: Plan) -> Json:
    """Return the frozen plan. Immutable: an upgrade of the operator cannot change a running plan."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(run, naming.plan_config_map(run.name), component="plan"),
        "immutable": True,
        "data": {PLAN_FILE: plan.model_dump_json(indent=1)},
    }


def state_config_map(run: Run) -> Json:
    """Return the object in which the conductor will say what it is doing."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(run, naming.state_config_map(run.name), component="state"),
        "data": {STATE_FILE: RunState().model_dump_json()},
    }


def session_secret(run: Run) -> Json:
    """Return the session secret without its content, which whoever creates it makes."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(run, naming.session_secret(run.name, run.uid), component="session"),
        "immutable": True,
        "type": "Opaque",
    }


def result(run: Run, plan: Plan, point: Point) -> Json:
    """Return the result of a point before anything is measured: identity only."""
    retained = run.document is not None and run.document.spec.results == "Retain"
    return {
        "apiVersion": API_VERSION,
        "kind": RESULT_KIND,
        "metadata": metadata(
            run,
            naming.result(run.name, point.name),
            component="result",
            owned=not retained,
            labels={naming.LABEL_WORKLOAD: point.workload},
        ),
        "spec": {
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
            "repetitions": plan.repetitions,
        },
    }
