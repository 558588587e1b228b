"""The kopf shell of the operator: decode, call, write. Importing it registers the handlers."""

from plimsoll.handlers import index, process, run

__all__ = ["index", "process", "run"]
