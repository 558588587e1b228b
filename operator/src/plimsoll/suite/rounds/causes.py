"""Why a round is due."""

from datetime import datetime

from plimsoll.api.names import GROUP
from plimsoll.api.suite import BenchmarkSuite
from plimsoll.api.suite_status import MAX_ANNOTATION_CHARACTERS, Cause
from plimsoll.suite.rounds.observed import Observed
from plimsoll.suite.rounds.state import State

REQUEST_ROUND = f"{GROUP}/request-round"
"""Annotation: each new text requests a round."""

_MAX_VERSION = 256
"""Maximum length of a version in the API."""


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
    version = version_of(seen)
    return bool(version and state.ceph_version and version != state.ceph_version)


def version_of(seen: Observed) -> str:
    """Return the version of Ceph, as far as the status remembers it; empty if unknown."""
    return seen.ceph_version[:_MAX_VERSION]


def text_of(seen: Observed, annotation: str) -> str:
    """Return the text of an annotation, as far as the status remembers it; empty if absent."""
    return seen.suite.annotations.get(annotation, "")[:MAX_ANNOTATION_CHARACTERS]
