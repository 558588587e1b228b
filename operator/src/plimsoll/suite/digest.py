"""The digest of what a suite measures: a round measures one digest."""

from plimsoll.api.suite import SuiteSpec
from plimsoll.plan.fingerprint import digest


def suite_digest(spec: SuiteSpec) -> str:
    """Return the SHA-256 of run, variants and repeat, in hexadecimal; what the results are to show does not count."""
    return digest(spec.model_dump(mode="json", include={"run", "variants", "repeat"}))


def questions_digest(spec: SuiteSpec) -> str:
    """Return the SHA-256 of what the results are to show, in hexadecimal."""
    return digest(spec.model_dump(mode="json", include={"comparisons", "hypotheses"}))
