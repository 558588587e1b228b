"""The part of a stored result that evaluating a round needs: a few KiB for each trial, of up to 256 KiB."""

from collections.abc import Mapping
from typing import Any

from plimsoll.api.result import BenchmarkResult

_OF_TRIAL = (
    "passNumber",
    "attempt",
    "epoch",
    "clients",
    "outcome",
    "startedAt",
    "finishedAt",
    "abort",
    "verdict",
    "operations",
    "probe",
)
_OF_OPERATION = ("operation", "ios", "bytes", "rates", "wholeRun", "sumOfRates", "latency")
_OF_STATUS = ("line", "verdict", "findings", "environment", "fingerprint", "final")
_HISTOGRAM = "histogram"


def projected(document: Mapping[str, Any]) -> BenchmarkResult:
    """Return a stored result without its distributions, series, hosts and summary.

    Raises:
        pydantic.ValidationError: the result is not of this version.

    """
    metadata, status = document["metadata"], document.get("status") or {}
    return BenchmarkResult.model_validate(
        {
            "apiVersion": document["apiVersion"],
            "kind": document["kind"],
            "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
            "spec": document["spec"],
            "status": {
                **_parts(status, _OF_STATUS),
                "trials": [_trial(one) for one in status.get("trials") or ()],
            },
        }
    )


def _trial(document: Mapping[str, Any]) -> Mapping[str, Any]:
    operations = [_operation(one) for one in document.get("operations") or ()]
    return {**_parts(document, _OF_TRIAL), "operations": operations}


def _operation(document: Mapping[str, Any]) -> Mapping[str, Any]:
    latency = {key: value for key, value in document["latency"].items() if key != _HISTOGRAM}
    return {**_parts(document, _OF_OPERATION), "latency": latency}


def _parts(document: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: document[name] for name in names if name in document}
