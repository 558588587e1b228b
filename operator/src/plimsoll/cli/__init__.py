"""The command line: the commands of users, and the programs that pods and `plimsoll run` start."""

import importlib
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from plimsoll.cli.streams import printable_streams

_COMMANDS = ("plan", "run", "watch", "results", "report", "layers", "compare", "noise", "percentile", "suite")
_PROGRAMS = ("operator", "conductor", "agent", "teardown", "burn")
_HELPERS = {"caches": "caches_command", "burner": "burner_command"}
_HOOKS = {"remove-runs": "remove_command", "check-installation": "check_command"}

EXIT_STOPPED = 128 + signal.SIGTERM
"""Exit code of a program that SIGTERM has ended, except the conductor."""

_CONDUCTOR_STOPPED = 3
"""`EXIT_INTERRUPTED` of `plimsoll.conductor.main`, which takes a while to import."""

PLUGIN = "kubectl plimsoll"
"""Name of the program when kubectl starts it as `kubectl-plimsoll`."""


class LazyGroup(click.Group):
    """A group that imports a command when it is used, so that an agent does not load tables and progress bars.

    A command is `module:name`, or the `command` of a module.
    """

    def __init__(self, *arguments: Any, modules: Mapping[str, str], **options: Any) -> None:  # noqa: ANN401 - click's
        """Create a group from the modules of its commands, by their names."""
        super().__init__(*arguments, **options)
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature is click's
        """Return the names of the commands, in the order of their declaration."""
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command; None if there is none of that name."""
        if cmd_name not in self._modules:
            return None
        module, _, name = self._modules[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name or "command")
        return command


class _Program(LazyGroup):
    """The program, under the name that the user typed."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Import the command. From now on SIGTERM ends a program of a pod, until it handles the signal itself."""
        if args[0] in {*_PROGRAMS, *_HELPERS}:
            code = _CONDUCTOR_STOPPED if args[0] == "conductor" else EXIT_STOPPED
            # Nothing has to be cleaned up yet. Without a handler, Linux does not deliver the signal to the first
            # process of a container, and any other process ends as if it had crashed.
            signal.signal(signal.SIGTERM, lambda *_: os._exit(code))
        return super().resolve_command(ctx, args)

    def main(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - the signature is click's
        """Run with the program name that the user typed, and print only printable characters."""
        if options.get("prog_name") is None and Path(sys.argv[0]).name == PLUGIN.replace(" ", "-"):
            options["prog_name"] = PLUGIN
        with printable_streams():
            return super().main(*arguments, **options)


_MODULES = {
    **{name: f"plimsoll.cli.{name}" for name in _COMMANDS},
    "report": "plimsoll.cli.results:report_command",
    "noise": "plimsoll.cli.compare:noise_command",
    **{name: f"plimsoll.programs.{name}" for name in _PROGRAMS},
    **{name: f"plimsoll.programs.helpers:{command}" for name, command in _HELPERS.items()},
    **{name: f"plimsoll.programs.hooks:{command}" for name, command in _HOOKS.items()},
}


@click.group(cls=_Program, modules=_MODULES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="plimsoll")
def main() -> None:
    """Find out how much load a storage system can safely carry."""
