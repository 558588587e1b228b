"""The digest of what a suite measures: a round measures one digest. And that of what one run measures."""

import json
from collections.abc import Mapping
from functools import lru_cache

from pydantic import JsonValue

from plimsoll.api.errors import SpecError
from plimsoll.api.names import API_VERSION, RUN_KIND
from plimsoll.api.run import decode_run
from plimsoll.api.suite import SuiteSpec
from plimsoll.plan.expand import expand
from plimsoll.plan.fingerprint import digest

_CHANGEABLE = frozenset({"suspend", "cleanup", "results", "ttlSecondsAfterFinished"})
"""The fields of a run that users may change; see the rules of `RunSpec`."""


def suite_digest(spec: SuiteSpec) -> str:
    """Return the SHA-256 of run, variants and repeat, in hexadecimal; what the results are to show does not count."""
    return digest(spec.model_dump(mode="json", include={"run", "variants", "repeat"}))


def questions_digest(spec: SuiteSpec) -> str:
    """Return the SHA-256 of what the results are to show, in hexadecimal."""
    return digest(spec.model_dump(mode="json", include={"comparisons", "hypotheses"}))


def measured_digest(spec: Mapping[str, JsonValue]) -> str:
    """Return the SHA-256 of what a run with that specification measures, in hexadecimal; empty if it is invalid.

    It is the same before and after the API server has set defaults, and after a change that a run allows.
    """
    fixed = {name: value for name, value in spec.items() if name not in _CHANGEABLE}
    return _measured(json.dumps(fixed, sort_keys=True))


@lru_cache(maxsize=256)
def _measured(spec: str) -> str:
    """Return the digest of a specification as JSON. All runs of a variant have the same one."""
    metadata: JsonValue = {"name": "any"}
    try:
        run = decode_run({"apiVersion": API_VERSION, "kind": RUN_KIND, "metadata": metadata, "spec": json.loads(spec)})
        points = expand(run)
    except SpecError:
        return ""
    shared = run.spec.model_dump(mode="json", exclude={"workloads"})
    return digest(shared | {"points": [point.model_dump(mode="json") for point in points]})
