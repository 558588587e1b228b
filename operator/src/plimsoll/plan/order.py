"""The order of points within a pass, every client's seed, and those of a suite's runs, derived from the recorded seed.

They are hashes and not random numbers, so that a seed yields the same order in every Python version.
"""

from hashlib import sha256

_SEEDS = 2**31 - 1


def _hash(*parts: int | str) -> bytes:
    return sha256("/".join(map(str, parts)).encode()).digest()


def shuffled(seed: int, *, pass_number: int, points: int) -> tuple[int, ...]:
    """Return the indices 0 to points-1 in the order of one pass."""
    return tuple(sorted(range(points), key=lambda point: _hash("order", seed, pass_number, point)))


def client_seed(seed: int, *, point: str, pass_number: int, client: int) -> int:
    """Return a tool's random seed, 1 to 2**31 - 1.

    It differs between clients, so that they do not find each other's blocks in a cache, and between passes. A repeated
    attempt has the seed of the first.
    """
    number = int.from_bytes(_hash("client", seed, point, pass_number, client)[:8], "big")
    return number % _SEEDS + 1


def child_seed(seed: int, *, variant: str, repeat: int) -> int:
    """Return the seed of a run of a suite, so that its repetitions differ in order and load."""
    return int.from_bytes(_hash("child", seed, variant, repeat)[:7], "big")


def run_seed(uid: str) -> int:
    """Return the seed of a run that specifies none; it depends only on the object's UID."""
    return int.from_bytes(_hash("run", uid)[:7], "big")
