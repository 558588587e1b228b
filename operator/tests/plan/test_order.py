from hypothesis import given
from hypothesis import strategies as st

from plimsoll.plan.sweep import client_seed, shuffled

SEEDS = st.integers(0, 2**63 - 1)


@given(SEEDS, st.integers(0, 9), st.integers(1, 512))
def test_every_pass_is_a_permutation(seed: int, pass_number: int, points: int) -> None:
    assert sorted(shuffled(seed, pass_number=pass_number, points=points)) == list(range(points))


@given(SEEDS, st.integers(24, 64))
def test_passes_and_seeds_have_different_orders(seed: int, points: int) -> None:
    """With 24 points or more, two equal orders are less likely than 1 in 10**23."""
    orders = [shuffled(seed, pass_number=number, points=points) for number in range(10)]
    assert len(set(orders)) == len(orders)
    assert shuffled(seed + 1, pass_number=0, points=points) != orders[0]
    assert shuffled(seed, pass_number=0, points=points) == orders[0]


def test_order_is_the_same_in_every_version_of_python() -> None:
    assert shuffled(1, pass_number=0, points=8) == (2, 4, 3, 0, 7, 5, 6, 1)
    assert client_seed(1, point="w-000", pass_number=0, client=0) == 1144236148
    assert client_seed(1, point="w-000", pass_number=0, client=0, attempt=1) == 660317558


def test_every_point_may_come_first() -> None:
    first = {shuffled(7, pass_number=number, points=4)[0] for number in range(64)}
    assert first == {0, 1, 2, 3}


@given(SEEDS, st.text(max_size=36), st.integers(0, 19), st.integers(0, 999))
def test_client_seed_is_a_positive_31_bit_number(seed: int, point: str, pass_number: int, client: int) -> None:
    value = client_seed(seed, point=point, pass_number=pass_number, client=client)
    assert 1 <= value < 2**31
    assert value == client_seed(seed, point=point, pass_number=pass_number, client=client)


def test_clients_attempts_passes_points_and_runs_have_different_seeds() -> None:
    seeds = [
        client_seed(run, point=point, pass_number=pass_number, client=client, attempt=attempt)
        for run in (1, 2)
        for point in ("w-000", "w-001")
        for pass_number in range(10)
        for client in range(50)
        for attempt in range(2)
    ]
    # Of 4000 numbers of 31 bits, a pair is equal with a probability of 0.4 %: for these it was looked up.
    assert len(set(seeds)) == len(seeds)
