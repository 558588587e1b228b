"""The matrix of a point over its trials."""

from dataclasses import replace

import pytest
from pydantic import ValidationError

from plimsoll.api.names import Verdict
from plimsoll.api.result import Matrix
from plimsoll.measure.matrix import MatrixCell, extended, matrix_of
from plimsoll.measure.trial import trial_of_rounds
from support.client_documents import document, measure

CELLS = tuple(
    MatrixCell(client=client, peer=peer, client_node=f"n{client}", peer_node=f"n{peer}", iops=0, bytes_per_second=rate)
    for client, peer, rate in ((1, 0, 300.0), (0, 1, 100.4), (0, 2, 200.0))
)


def one(cells: tuple[MatrixCell, ...] = CELLS) -> Matrix:
    found = matrix_of(cells)
    assert found is not None
    return found


def scaled(factor: float) -> Matrix:
    return one(tuple(replace(cell, bytes_per_second=factor * cell.bytes_per_second) for cell in CELLS))


def test_cells_are_ordered_and_name_the_nodes() -> None:
    matrix = one()
    assert (matrix.clients, matrix.peers, matrix.bytes_per_second) == ((0, 0, 1), (1, 2, 0), (100, 200, 300))
    assert matrix.nodes == {0: "n0", 1: "n1", 2: "n2"}
    assert (matrix.iops, matrix.least_iops, matrix.retransmits) == (None, None, None)
    assert matrix.counts_bytes


def test_no_cells_are_no_matrix() -> None:
    assert matrix_of(()) is None


def test_trials_that_count_extend_it_with_their_mean_and_least() -> None:
    matrix = extended(extended(extended(None, one()), scaled(2)), scaled(0.5))
    assert (matrix.trials, matrix.bytes_per_second) == (3, (117, 233, 350))
    assert matrix.least_bytes_per_second == (50, 100, 150)


def test_other_pairs_start_it_again() -> None:
    before = extended(one(), scaled(2))
    other = one(CELLS[:2])
    assert extended(before, other) == other


def test_operations_and_retransmits_are_means_too() -> None:
    cells = tuple(replace(cell, iops=100.0, retransmits=4) for cell in CELLS)
    more = tuple(replace(cell, iops=50.0, retransmits=8) for cell in CELLS)
    matrix = extended(one(cells), one(more))
    assert (matrix.iops, matrix.least_iops, matrix.retransmits) == ((75.0,) * 3, (50.0,) * 3, (6,) * 3)
    without = extended(one(cells), one())
    assert (without.iops, without.retransmits) == (None, None)


def test_an_outlier_of_any_trial_is_marked() -> None:
    marked = one((CELLS[0], replace(CELLS[1], is_outlier=True), CELLS[2]))
    assert marked.outliers == (0,)
    matrix = extended(extended(None, marked), one())
    assert [pair.is_outlier for pair in matrix.pairs()] == [True, False, False]


def test_matrix_starts_again_when_a_client_is_on_another_node() -> None:
    """The mean of two links would be shown as the rate of the second one."""
    moved = one(tuple(replace(cell, peer_node="n9") if cell.peer == 2 else cell for cell in CELLS))
    assert extended(extended(None, scaled(0.1)), moved) == moved


def test_lists_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValidationError, match="one value for each cell"):
        Matrix(trials=1, members=(), clients=(0, 1), peers=(1, 0), bytes_per_second=(1,))
    with pytest.raises(ValidationError, match="one value for each cell"):
        Matrix(trials=1, members=(), clients=(0,), peers=(1,), bytes_per_second=(1,), outliers=(1,))


def test_a_trial_of_one_round_is_judged_with_its_links() -> None:
    numbers = measure(document(0), document(1))
    assert trial_of_rounds([numbers]) == numbers
    cells = tuple(
        MatrixCell(client=client, peer=9, iops=0, bytes_per_second=rate)
        for client, rate in enumerate((100, 100, 100, 10))
    )
    judged = trial_of_rounds([replace(numbers, matrix=cells)])
    assert judged.verdict is Verdict.SUSPECT
    assert [finding.reason for finding in judged.findings] == ["LinkOutlier"]
    assert [cell.is_outlier for cell in judged.matrix] == [False, False, False, True]


@pytest.mark.parametrize("rounds", [1, 3])
def test_pairs_on_one_node_are_a_warning(rounds: int) -> None:
    numbers = measure(document(0), document(1))
    local = replace(CELLS[0], peer_node="n1")
    (warning,) = trial_of_rounds([replace(numbers, matrix=(local, *CELLS[1:])) for _ in range(rounds)]).warnings
    assert warning.startswith(f"{rounds} of {3 * rounds} pairs are on one node, and not in the rates")
