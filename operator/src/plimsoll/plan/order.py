"""The order of points within a pass, and every client's seed, derived from the recorded seed.

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


def run_seed(uid: str) -> int:
    """Return the seed of a run that specifies none; it depends only on the object's UID."""
    return int.from_bytes(_hash("run", uid)[:7], "big")
