"""Whether what was measured stayed the same during a round: an upgrade between its runs is no noise."""

from collections.abc import Iterable, Iterator, Sequence

from plimsoll.api.environment import Environment, TextFact
from plimsoll.api.result import BenchmarkResult
from plimsoll.measure.checks.check import first_few


def changed_during(results: Iterable[BenchmarkResult]) -> Iterator[str]:
    """Yield what changed during a round, from the results of all its runs: sentences with remedies.

    Runs on other nodes may have another kernel without any change, so only runs on the same nodes are compared.
    """
    environments = [result.status.environment for result in results]
    versions = {version for one in environments for version in _ceph_versions(one)}
    if len(versions) > 1:
        yield (
            f"Ceph had several versions during the round ({first_few(sorted(versions))}); measure again after the "
            "upgrade"
        )
    kernels: dict[Sequence[str], set[str]] = {}
    for one in environments:
        if one.nodes and one.kernel:
            kernels.setdefault(one.nodes, set()).add(_text(one.kernel))
    changed = next((sorted(found) for found in kernels.values() if len(found) > 1), None)
    if changed:
        yield f"the kernel of a client changed during the round ({first_few(changed)}); measure again"


def _ceph_versions(environment: Environment) -> Iterator[str]:
    """Yield the versions of Ceph's daemons; several if they differ."""
    found = environment.ceph.versions if environment.ceph else None
    if isinstance(found, str):
        yield found
    elif found is not None:
        for counts in found.values():
            yield from counts


def _text(fact: TextFact) -> str:
    return fact if isinstance(fact, str) else ", ".join(fact)
