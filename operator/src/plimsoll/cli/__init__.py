"""The command line: the commands of users, and the programs that pods and `plimsoll run` start."""

import sys
from pathlib import Path
from typing import Any

import click

from plimsoll.cli.lazy import LazyGroup

_COMMANDS = {
    "plan": "plimsoll.cli.plan",
    "run": "plimsoll.cli.run",
    "watch": "plimsoll.cli.watch",
    "results": "plimsoll.cli.results",
    "report": "plimsoll.cli.report",
    "layers": "plimsoll.cli.layers",
    "compare": "plimsoll.cli.compare",
    "noise": "plimsoll.cli.noise",
    "percentile": "plimsoll.cli.percentile",
    "suite": "plimsoll.cli.suite",
    "operator": "plimsoll.programs.operator",
    "conductor": "plimsoll.programs.conductor",
    "agent": "plimsoll.programs.agent",
    "teardown": "plimsoll.programs.teardown",
    "caches": "plimsoll.programs.caches",
    "burn": "plimsoll.programs.burn",
    "burner": "plimsoll.programs.burner",
    "remove-runs": "plimsoll.programs.remove_runs",
    "check-installation": "plimsoll.programs.check_installation",
}

PLUGIN = "kubectl plimsoll"
"""Name of the program when kubectl starts it as `kubectl-plimsoll`."""


class _Program(LazyGroup):
    """The program, under the name that the user typed."""

    def main(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - the signature is click's
        """Run with the program name that the user typed."""
        if options.get("prog_name") is None and Path(sys.argv[0]).name == PLUGIN.replace(" ", "-"):
            options["prog_name"] = PLUGIN
        return super().main(*arguments, **options)


@click.group(cls=_Program, modules=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="plimsoll")
def main() -> None:
    """Find out how much load a storage system can safely carry."""
