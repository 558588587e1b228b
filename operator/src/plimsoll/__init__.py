"""Plimsoll finds how much load storage on Kubernetes carries, with numbers that can be trusted."""


def __getattr__(name: str) -> str:
    """Return `__version__`, computed on demand because that takes longer than some imports."""
    if name != "__version__":
        message = f"module {__name__} has no attribute {name}"
        raise AttributeError(message)
    from importlib.metadata import version  # noqa: PLC0415

    return version("plimsoll")
