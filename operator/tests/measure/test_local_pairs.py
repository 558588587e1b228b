"""Pairs of clients on one node are not in the numbers of a trial, and nothing else is missing from them."""

from dataclasses import replace

import pytest

from plimsoll.api.names import Operation
from plimsoll.measure.sample import PeerRate
from plimsoll.measure.trial import TrialNumbers, measure_round, trial_of_rounds
from support.client_documents import document, facts, measurement, operation

NODES = {0: "a", 1: "b", 2: "a", 3: "b"}


def pair(client: int, *peers: int, rate: int = 100) -> TrialNumbers:
    """Return a round in which a client loads its peers; each gets this many bytes a second per number of its peer."""
    rates = tuple(PeerRate(peer=peer, bytes=rate * (peer + 1), seconds=1) for peer in peers)
    planned = replace(facts(1), clients=(client,), nodes=NODES)
    return measure_round(planned, {client: document(client, measurement(operation(10_000), peers=rates))})


def iops(numbers: TrialNumbers) -> float:
    return next((result.rates.iops for result in numbers.operations if result.operation is Operation.WRITE), 0.0)


def test_a_round_of_a_pair_on_one_node_is_not_in_the_mean() -> None:
    apart = pair(0, 1)
    assert iops(apart) > 0
    assert pair(0, 2).operations == ()
    together = trial_of_rounds([apart, pair(0, 2), pair(2, 3)])
    assert iops(together) == iops(apart)
    assert len(together.matrix) == 3
    assert [finding.reason for finding in together.findings if finding.reason == "LocalPairs"] == []


def test_of_a_client_with_pairs_of_both_kinds_the_part_between_nodes_counts() -> None:
    """Of 200, 300 and 400 bytes, those to client 2 stay on the node."""
    whole, part = pair(0, 1, 3), pair(0, 1, 2, 3)
    assert iops(part) / iops(whole) == pytest.approx(600 / 900, rel=1e-4)
    assert "LocalPairs" in [finding.reason for finding in trial_of_rounds([part]).findings]
