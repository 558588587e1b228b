"""How messages about a run count things."""


def counted(number: int, noun: str) -> str:
    """Return a number of things: `1 claim`, `2 claims`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def are(number: int) -> str:
    """Return the verb that goes with so many things."""
    return "is" if number == 1 else "are"


def have(number: int) -> str:
    """Return the other verb that goes with so many things."""
    return "has" if number == 1 else "have"
