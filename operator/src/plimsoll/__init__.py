"""Plimsoll finds how much load storage on Kubernetes carries, with numbers that can be trusted."""

from importlib.metadata import version

__version__ = version("plimsoll")
