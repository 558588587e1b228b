"""The kopf handlers of the operator. Importing this package registers them."""

from plimsoll.handlers import index, process, run, suite

__all__ = ["index", "process", "run", "suite"]
