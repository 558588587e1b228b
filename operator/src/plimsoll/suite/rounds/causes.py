"""Why a round is due."""

from datetime import datetime

from plimsoll.api.names import GROUP
from plimsoll.api.suite import BenchmarkSuite
from plimsoll.api.suite_status import Cause
from plimsoll.suite.rounds.observed import Observed
from plimsoll.suite.rounds.state import State

REQUEST_ROUND = f"{GROUP}/request-round"
"""Annotation: each new text requests a round."""

_MAX_TEXT = 256
"""Characters of an annotation that count."""


def cause_due(seen: Observed, suite: BenchmarkSuite, state: State, due: datetime | None) -> Cause | None:
    """Return why a round is due, the first cause of several; None if none is. `due` is a schedule time."""
    if seen.suite.specification.digest != state.digest:
        return Cause.CHANGE
    if text_of(seen, REQUEST_ROUND) not in {"", state.requested}:
        return Cause.REQUESTED
    if due is not None:
        return Cause.SCHEDULED
    if suite.spec.triggers.ceph_version and has_other_version(seen, state):
        return Cause.CEPH_VERSION
    return None


def has_other_version(seen: Observed, state: State) -> bool:
    """Whether the cluster has another version of Ceph than the last round found."""
    return bool(seen.ceph_version and state.ceph_version and seen.ceph_version != state.ceph_version)


def text_of(seen: Observed, annotation: str) -> str:
    """Return the text of an annotation; empty if absent."""
    return seen.suite.annotations.get(annotation, "")[:_MAX_TEXT]
