"""The start of a run, in which the operator, who observes the pods, enforces the deadlines of clients and conductor.

The conductor is created once its clients have nodes. After all of them have registered, it enforces the deadlines
itself.
"""

from datetime import datetime

from plimsoll.lifecycle.observed import Observed
from plimsoll.plan.document import Plan


def all_pods_run(plan: Plan, seen: Observed) -> bool:
    """Whether the newest pod of every client is running."""
    pods = [seen.client_pod(client) for client in range(plan.members)]
    return all(pod is not None and pod.phase == "Running" for pod in pods)


def all_pods_are_scheduled(plan: Plan, seen: Observed) -> bool:
    """Whether the newest pod of every client has a node."""
    pods = [seen.client_pod(client) for client in range(plan.members)]
    return all(pod is not None and pod.node for pod in pods)


def is_provisioning(plan: Plan, seen: Observed) -> bool:
    """Whether the run still waits for volumes and pods, which may take `provisionSeconds`."""
    if seen.conductor_job is None:
        return True
    return is_gathering(plan, seen) and not all_pods_run(plan, seen)


def is_gathering(plan: Plan, seen: Observed) -> bool:
    """Whether the conductor's Job exists, but not all clients have registered with a conductor of it."""
    return plan.early_conductor and seen.conductor_job is not None and not seen.has_gathered


def pods_run_since(plan: Plan, seen: Observed) -> datetime | None:
    """Return since when the newest pods of all clients have been running; None if they are not."""
    pods = [seen.client_pod(client) for client in range(plan.members)]
    times = [pod.changed or pod.created for pod in pods if pod is not None and pod.phase == "Running"]
    return max(times) if len(times) == plan.members else None
